"""Lengths of time, money and percentages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.text.normalize import number_words
from tests.modalities.text.facts.reading import told


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("ninety minutes", 5_400),
        ("an hour and a half", 5_400),
        ("one and a half hours", 5_400),
        ("1.5 hours", 5_400),
        ("1 hour 30 minutes", 5_400),
        ("an hour and thirty minutes", 5_400),
        ("1h30", 5_400),
        ("half an hour", 1_800),
        ("a quarter of an hour", 900),
        ("three quarters of an hour", 2_700),
        ("a couple of hours", 7_200),
        ("two hours and a half", 9_000),
        ("a 15-minute timer", 900),
        ("a thirty second timer", 30),
        ("5 minutes 30 seconds", 330),
        ("90s", 90),
        ("two weeks", 1_209_600),
    ],
)
def test_duration_is_told_in_seconds(text: str, seconds: int) -> None:
    """Every way of saying a length of time gives the same number."""
    assert told(text) == [("duration", str(seconds))]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$15.50", "USD 15.50"),
        ("fifteen dollars and fifty cents", "USD 15.50"),
        ("fifteen dollars fifty", "USD 15.50"),
        ("$1,200", "USD 1200.00"),
        ("twenty bucks", "USD 20.00"),
        ("ninety nine cents", "USD 0.99"),
        ("five pounds", "GBP 5.00"),
        ("€3", "EUR 3.00"),
        ("2 million dollars", "USD 2000000.00"),
    ],
)
def test_money_is_told_with_its_currency(text: str, value: str) -> None:
    """Signs, words and cents."""
    assert told(text) == [("money", value)]


@pytest.mark.parametrize("text", ["50%", "fifty percent", "50 per cent", "fifty %"])
def test_percentage_is_its_number(text: str) -> None:
    """A sign or a word."""
    assert told(text) == [("percent", "50")]


@given(st.integers(2, 59), st.integers(2, 59))
def test_duration_in_words_equals_its_sum_in_seconds(hours: int, minutes: int) -> None:
    """Two parts add up."""
    said = f"{number_words(hours)} hours and {number_words(minutes)} minutes"
    assert told(said) == [("duration", str(hours * 3_600 + minutes * 60))]
