"""Words with their times become segments, and these subtitles that players read."""

import re

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.scheduling.work import Transcribed, WordFound
from orchestrator.transports.subtitles import LONGEST_CHARACTERS, LONGEST_S, Segment, segments_of, srt, vtt

SAID = "Hello there, Ann. How are you?"


def words(text: str, step_s: float = 0.5, pauses: dict[int, float] | None = None) -> Transcribed:
    """A transcript whose words follow each other, later ones behind the pauses in front of them."""
    found, at_s = [], 0.0
    for number, word in enumerate(text.split()):
        at_s += (pauses or {}).get(number, 0.0)
        found.append(WordFound(word, at_s, at_s + step_s, 0.9))
        at_s += step_s
    return Transcribed("j", text, tuple(found))


def times(found: Transcribed, start_s: float = 0.0) -> list[tuple[float, float, str]]:
    return [(one.start_s, one.stop_s, one.text) for one in segments_of(found, start_s, start_s + 1_000)]


def test_segments_are_sentences_at_the_times_of_their_words() -> None:
    """Counted from the file's beginning, whatever piece they come from."""
    assert times(words(SAID), 10.0) == [(10.0, 11.5, "Hello there, Ann."), (11.5, 13.0, "How are you?")]


def test_segment_ends_where_somebody_pauses() -> None:
    """A second of silence separates what no mark does."""
    assert times(words("one two three", pauses={2: 1.0})) == [(0.0, 1.0, "one two"), (2.0, 2.5, "three")]


def test_segment_is_no_longer_than_a_subtitle() -> None:
    """Neither in characters nor in time."""
    long = " ".join(["word"] * 100)
    for step_s in (0.1, 2.0):
        found = segments_of(words(long, step_s), 0.0, 1_000.0)
        assert len(found) > 3
        assert all(len(one.text) <= LONGEST_CHARACTERS for one in found)
        assert all(one.stop_s - one.start_s <= LONGEST_S for one in found)
        assert " ".join(one.text for one in found) == long


def test_segment_without_words_is_its_piece() -> None:
    """A recogniser that tells no times has at least those of the sound that it was given; silence has no segment."""
    assert segments_of(Transcribed("j", " hi "), 2.0, 3.0)[0].text == "hi"
    assert times(Transcribed("j", "hi"), 2.0) == [(2.0, 1002.0, "hi")]
    assert segments_of(Transcribed("j", " "), 0.0, 1.0) == []


def test_segments_of_a_language_without_spaces_are_its_text() -> None:
    """Words are found in the text; nothing is put between them."""
    found = Transcribed(
        "j", "你好。再见", (WordFound("你好", 0.0, 0.5, 1.0), WordFound("再见", 0.5, 1.0, 1.0))
    )
    assert [one.text for one in segments_of(found, 0.0, 1.0)] == ["你好。", "再见"]


@given(
    st.text("ab .,!?-'\n", max_size=300),
    st.lists(st.tuples(st.text("ab'-?", max_size=6), st.floats(0, 100), st.floats(0, 100)), max_size=40),
)
def test_segments_hold_all_of_the_text(text: str, found: list[tuple[str, float, float]]) -> None:
    """Whatever a recogniser says of its words, even of words that are not in the text: each letter of the text comes
    once, in order, and no segment ends before it begins or outside of its piece."""
    said = Transcribed("j", text, tuple(WordFound(word, start, stop, 1.0) for word, start, stop in found))
    segments = segments_of(said, 5.0, 50.0)
    assert "".join("".join(one.text for one in segments).split()) == "".join(text.split())
    assert all(5.0 <= one.start_s <= one.stop_s <= 50.0 for one in segments)


def test_subrip_is_numbered_and_has_commas() -> None:
    """Hours count on; an empty line inside a text would end it."""
    one = Segment(3_599.9996, 3_725.05, "a\n\nb", Transcribed("j", ""))
    assert srt([one, one]) == (
        "1\n01:00:00,000 --> 01:02:05,050\na b\n\n2\n01:00:00,000 --> 01:02:05,050\na b\n\n"
    )


def test_webvtt_has_a_head_and_no_marks_of_its_own_in_texts() -> None:
    """What looks like mark-up is text; an arrow cannot be taken for times."""
    one = Segment(0.0, 1.5, "<b> & --> c", Transcribed("j", ""))
    assert vtt([one]) == "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\n&lt;b&gt; &amp; --&gt; c\n\n"
    assert re.fullmatch(r"WEBVTT\n\n", vtt([]))


def test_subtitle_of_a_moment_lasts_all_the_same() -> None:
    """Recognisers give words without length: a player leaves out what ends when it begins."""
    moment = Segment(1.0, 1.0, "yes", Transcribed("j", "yes"))
    assert "00:00:01.000 --> 00:00:01.001" in vtt([moment])
    assert "00:00:01,000 --> 00:00:01,001" in srt([moment])
