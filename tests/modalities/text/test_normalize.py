import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.text.normalize import normalize, number_words, word_error_rate, word_errors


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("15", "fifteen"),
        ("1,234", "one thousand two hundred thirty-four"),
        ("205 pages", "two hundred and five pages"),
        ("75.5", "seventy five point five"),
        ("$5", "five dollars"),
        ("$1.50", "one dollar fifty cents"),
        ("20%", "twenty percent"),
        ("May 3rd", "may third"),
        ("the 21st", "the twenty-first"),
        ("2:30", "two thirty"),
        ("7:00", "seven"),
        ("8:05", "eight oh five"),
        ("in 1984", "in nineteen eighty four"),
        ("in 2005", "in two thousand five"),
        ("the 1990s", "the nineteen nineties"),
        ("268-441-8", "two six eight four four one eight"),
        ("4125550", "four one two five five five zero"),
        ("007", "zero zero seven"),
        ("10,000,001", "ten million one"),
        ("OK, Mr. Smith!", "okay mister smith"),
        ("It’s", "it's"),
        ("Café — fin", "café fin"),
    ],
)
def test_normalize_writes_numbers_and_signs_as_they_are_said(written: str, spoken: str) -> None:
    """Digits and words, signs and names, curly and straight quotes come to the same words."""
    assert normalize(written) == normalize(spoken)


def test_normalize_leaves_fillers_out_unless_asked() -> None:
    """Hesitations do not count as errors, but can."""
    assert normalize("Um, I, uh, think so. Hmm.") == ["i", "think", "so"]
    assert normalize("Um, yes", keep_fillers=True) == ["um", "yes"]


@pytest.mark.parametrize(
    ("reference", "hypothesis", "rate"),
    [
        ("the cat sat", "the cat sat", 0.0),
        ("the cat sat", "The Cat, sat!", 0.0),
        ("the cat sat", "the bat sat", 1 / 3),
        ("the cat sat", "cat sat down", 2 / 3),
        ("fifteen minutes", "50 minutes", 0.5),
        ("fifteen minutes", "15 minutes", 0.0),
        ("yes", "", 1.0),
        ("", "", 0.0),
        ("", "ghost words", 1.0),
        ("one", "one two three", 2.0),
    ],
)
def test_word_error_rate_counts_changed_dropped_and_added_words(
    reference: str, hypothesis: str, rate: float
) -> None:
    """Errors over the words of the reference; words invented from silence are an error of 1."""
    assert word_error_rate(reference, hypothesis) == pytest.approx(rate)


word_lists = st.lists(st.sampled_from("abcd"), max_size=12)


@given(word_lists, word_lists, word_lists)
def test_word_errors_are_a_distance(one: list[str], two: list[str], three: list[str]) -> None:
    """Zero only for equals, the same both ways, no shorter by a detour, never beyond the longer list."""
    assert (word_errors(one, two) == 0) == (one == two)
    assert word_errors(one, two) == word_errors(two, one)
    assert word_errors(one, three) <= word_errors(one, two) + word_errors(two, three)
    assert abs(len(one) - len(two)) <= word_errors(one, two) <= max(len(one), len(two))


@given(st.integers(0, 10**15 - 1))
def test_normalize_reads_grouped_numbers_like_their_words(value: int) -> None:
    """Any number with commas is the words that `number_words` gives it."""
    assert normalize(f"{value:,}") == normalize(number_words(value))


@given(st.text(max_size=100))
def test_normalize_is_stable(text: str) -> None:
    """Normalised words are in their final form: normalising them again changes nothing."""
    words = normalize(text, keep_fillers=True)
    assert normalize(" ".join(words), keep_fillers=True) == words


@given(st.text(alphabet="0123456789.,:$%'-sth ", max_size=60))
def test_normalize_reads_any_digits_without_failing(text: str) -> None:
    """No arrangement of digits and signs raises, and no digit is left."""
    assert not any(character.isdigit() for word in normalize(text) for character in word)


@pytest.mark.corpus
def test_word_error_rate_agrees_with_the_recorded_ones() -> None:
    """Over the recorded clips the rate is the one written beside them, spelled and run-together words aside."""
    folder = Path(os.environ["CHORALE_SPEECH_DATA"])
    rows = [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]
    judged = [row for row in rows if row.get("wer_tiny_en") is not None and row.get("transcript")]
    differing = [
        row["file"]
        for row in judged
        if row["category"] != "spelled"
        and abs(word_error_rate(row["transcript"], row["hyp_tiny_en"]) - row["wer_tiny_en"]) > 0.006
    ]
    assert len(judged) > 200
    assert len(differing) <= 0.04 * len(judged), differing
