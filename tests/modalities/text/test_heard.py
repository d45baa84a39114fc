from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.text.heard import TYPICAL_SAMPLES_PER_CHARACTER, Segment, heard_prefix

TEXT = "Hello there my friend. How are you today?"
SEGMENTS = (Segment(0, 22, 22_000, True), Segment(23, 41, 18_000, True))
SECOND_MS = 24


def test_heard_prefix_of_a_reply_cut_after_its_first_sentence_is_that_sentence() -> None:
    """F-I1: part A was played, part B was not: B is not in the history."""
    assert heard_prefix(TEXT, SEGMENTS, 22_000) == "Hello there my friend."


@pytest.mark.parametrize(
    ("played", "heard"),
    [
        (0, ""),
        (40 * SECOND_MS, ""),
        (400 * SECOND_MS, "Hello"),
        (21_999, "Hello there my"),
        (22_001, "Hello there my friend."),
        (26_500, "Hello there my friend. How"),
        (39_999, "Hello there my friend. How are you"),
        (40_000, TEXT),
    ],
)
def test_heard_prefix_cut_anywhere_is_exactly_what_was_heard(played: int, heard: str) -> None:
    """F-I2: at 0, 40, 400 ms, inside, at the end: whole words that were played, and nothing where nothing was."""
    assert heard_prefix(TEXT, SEGMENTS, played) == heard


def test_heard_prefix_beyond_the_sound_is_all_of_it() -> None:
    """F-I4: an offset that exceeds the audio sent is clamped, not refused."""
    assert heard_prefix(TEXT, SEGMENTS, 10**9) == TEXT
    assert heard_prefix(TEXT, SEGMENTS, -5) == ""


def test_heard_prefix_of_text_without_sound_is_empty() -> None:
    """A reply that was written but not yet spoken was not heard."""
    assert heard_prefix(TEXT, (), 10**6) == ""
    assert heard_prefix(TEXT, (Segment(0, 22, 0, True), Segment(23, 41, 0, False)), 10**6) == ""


def test_heard_prefix_of_a_sentence_still_being_made_never_counts_as_whole() -> None:
    """All that exists of a sentence was played, but more of it is to come: the estimate takes the voice's own pace."""
    running = (SEGMENTS[0], Segment(23, 41, 9_000, False))
    assert heard_prefix(TEXT, running, 22_000 + 9_000) == "Hello there my friend. How are"
    alone = (Segment(0, 22, 5 * TYPICAL_SAMPLES_PER_CHARACTER, False),)
    assert heard_prefix(TEXT, alone, 10**6) == "Hello"


def test_heard_prefix_skips_a_sentence_that_made_no_sound() -> None:
    """A failed synthesis between two sentences was not heard by itself, but keeps its place before what was."""
    segments = (Segment(0, 22, 22_000, True), Segment(23, 30, 0, True), Segment(31, 41, 10_000, True))
    assert heard_prefix(TEXT, segments, 22_000) == "Hello there my friend."
    assert heard_prefix(TEXT, segments, 32_000) == TEXT


words = st.lists(st.text(alphabet="abcé", min_size=1, max_size=9), min_size=1, max_size=12).map(" ".join)
sentences = st.lists(st.tuples(words, st.integers(0, 90_000), st.booleans()), min_size=1, max_size=6)


def _laid_out(parts: list[tuple[str, int, bool]]) -> tuple[str, list[Segment]]:
    text = "  ".join(sentence for sentence, _, _ in parts)
    starts = [0, *accumulate(len(sentence) + 2 for sentence, _, _ in parts)]
    segments = [
        Segment(start, start + len(sentence), samples, complete)
        for start, (sentence, samples, complete) in zip(starts, parts, strict=False)
    ]
    return text, segments


@given(sentences, st.integers(-10, 600_000), st.integers(0, 50_000))
def test_heard_prefix_grows_by_whole_words(
    parts: list[tuple[str, int, bool]], played: int, more: int
) -> None:
    """It is a prefix that ends with a word, and more playing never takes a word back."""
    text, segments = _laid_out(parts)
    heard = heard_prefix(text, segments, played)
    assert text.startswith(heard)
    assert heard == heard.rstrip()
    assert heard == "" or heard == text or text[len(heard)].isspace()
    assert heard_prefix(text, segments, played + more).startswith(heard)


@given(sentences)
def test_heard_prefix_of_all_sound_is_all_text(parts: list[tuple[str, int, bool]]) -> None:
    """When every sentence is complete, has sound and was played, the whole reply was heard."""
    text, segments = _laid_out([(sentence, samples + 1, True) for sentence, samples, _ in parts])
    assert heard_prefix(text, segments, sum(segment.samples for segment in segments)) == text
