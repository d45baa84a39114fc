"""Numbers as they are said and typed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.text.normalize import number_words
from tests.modalities.text.facts.reading import told, where


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("turn the volume to eleven", "11"),
        ("set it to twenty-five", "25"),
        ("nine hundred and eighty nine", "989"),
        ("seventy two thousand and four songs", "72004"),
        ("1,200 songs", "1200"),
        ("3 million", "3000000"),
        ("two point seven five", "2.75"),
        ("two and a half", "2.5"),
        ("three quarters", "0.75"),
        ("point five", "0.5"),
        ("minus ten degrees", "-10"),
        ("room 101", "101"),
    ],
)
def test_number_has_one_value_however_it_is_said(text: str, value: str) -> None:
    """Words, digits, decimals and fractions."""
    assert told(text) == [("number", value)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("play the second song", "2"),
        ("the 21st one", "21"),
        ("the twenty first", "21"),
        ("the 20 third", "23"),
    ],
)
def test_ordinal_is_its_number(text: str, value: str) -> None:
    """Twenty-first, 21st and a half-typed "20 first" are one; "one" behind an ordinal counts nothing."""
    assert told(text) == [("ordinal", value)]


@pytest.mark.parametrize("text", ["the new one", "one of these", "this one please", "wait a second"])
def test_number_word_that_counts_nothing_is_none(text: str) -> None:
    """ "One" for a thing and "a second" for a moment are no numbers."""
    assert told(text) == []


def test_numbers_parted_by_punctuation_stay_apart() -> None:
    """Twenty, five is a list; twenty five is a number."""
    assert told("twenty, five") == [("number", "20"), ("number", "5")]
    assert told("fifteen or fifty") == [("number", "15"), ("number", "50")]


def test_number_knows_its_place() -> None:
    """The span is the words of the number, as the text has them."""
    assert where("Play Nine Hundred and eighty-nine, now", "number") == ["Nine Hundred and eighty-nine"]


@given(st.integers(0, 999_999))
def test_number_in_words_and_in_digits_is_the_same_fact(value: int) -> None:
    """Whatever the number, saying it equals typing it."""
    assert told(f"take {number_words(value)} apples") == told(f"take {value} apples")


@given(st.integers(2_100, 999_999), st.integers(0, 999))
def test_number_with_decimals_survives(whole: int, decimals: int) -> None:
    """Trailing zeros are no part of a value."""
    text = f"{whole}.{decimals:03d}".rstrip("0").rstrip(".")
    assert told(f"take {whole}.{decimals:03d} apples") == [("number", text)]
