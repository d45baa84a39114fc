"""Times of day as they are said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.text.normalize import number_words
from tests.modalities.text.facts.reading import told, where


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("wake me at half past seven", "7:30"),
        ("it's half seven", "7:30"),
        ("a quarter to eight", "7:45"),
        ("a quarter past three", "3:15"),
        ("ten to six", "5:50"),
        ("twelve minutes past nine", "9:12"),
        ("meet me at seven thirty", "7:30"),
        ("seven thirty", "7:30"),
        ("seven oh five", "7:05"),
        ("at 7:30", "7:30"),
        ("at 730", "7:30"),
        ("at 7.30", "7:30"),
        ("wake me at 7.30.", "7:30"),
        ("at six o'clock", "6:00"),
        ("at seven", "7:00"),
        ("lunch at 12 13.", "12:13"),
    ],
)
def test_time_without_its_half_of_the_day_stays_open(text: str, time: str) -> None:
    """Nothing is guessed."""
    assert told(text) == [("time", time)]


@pytest.mark.parametrize(
    ("text", "time", "half"),
    [
        ("7:30 pm", "19:30", "pm"),
        ("7.30 p.m.", "19:30", "pm"),
        ("at 19:30", "19:30", "pm"),
        ("at 7:30 p.m.", "19:30", "pm"),
        ("seven thirty p m", "19:30", "pm"),
        ("eight in the evening", "20:00", "pm"),
        ("a quarter to eight in the evening", "19:45", "pm"),
        ("twenty past nine in the morning", "09:20", "am"),
        ("6am", "06:00", "am"),
        ("06:15", "06:15", "am"),
        ("three at night", "03:00", "am"),
        ("eleven at night", "23:00", "pm"),
        ("12 am", "00:00", "am"),
        ("12 pm", "12:00", "pm"),
        ("noon", "12:00", "pm"),
        ("twelve midnight", "00:00", "am"),
        ("a quarter to noon", "11:45", "am"),
    ],
)
def test_time_with_its_half_of_the_day_is_closed(text: str, time: str, half: str) -> None:
    """By am and pm, by a part of the day, or by an hour over twelve."""
    assert told(text) == [("half_day", half), ("time", time)]


@pytest.mark.parametrize(
    ("text", "half"),
    [
        ("my morning alarm", "am"),
        ("in the afternoon", "pm"),
        ("every night", "pm"),
        ("in the evenings", "pm"),
    ],
)
def test_part_of_the_day_alone_tells_its_half(text: str, half: str) -> None:
    """Without any time."""
    assert told(text) == [("half_day", half)]


@pytest.mark.parametrize("text", ["good morning", "i am at home", "what a day"])
def test_words_that_tell_no_time_are_none(text: str) -> None:
    """A greeting, a verb."""
    assert told(text) == []


def test_time_range_gives_both_ends() -> None:
    """ "Six to eight" is not six minutes to eight."""
    assert told("from six to eight") == [("time", "6:00"), ("time", "8:00")]


def test_number_behind_a_preposition_is_no_time_where_it_counts_something() -> None:
    """At ten percent, by two."""
    assert told("at ten percent") == [("percent", "10")]
    assert told("six divided by two") == [("number", "6"), ("number", "2")]


def test_time_knows_its_place() -> None:
    """With the half of the day, without what is around it."""
    assert where("Tomorrow at half past seven in the evening, please", "time") == [
        "half past seven in the evening"
    ]


@given(st.integers(1, 12), st.integers(10, 59), st.sampled_from(["am", "pm"]))
def test_time_said_equals_time_typed(hour: int, minute: int, half: str) -> None:
    """For every time of day."""
    said = told(f"call me at {number_words(hour)} {number_words(minute)} {half}")
    assert said == told(f"call me at {hour}:{minute} {half}")
    if half == "pm" and hour < 12:
        assert said == told(f"call me at {hour + 12}:{minute}")


@pytest.mark.parametrize(
    "text", ["that costs 7.30", "at 7.30 percent", "at 7.5", "at 7.75", "7.30 metres", "at 31.20"]
)
def test_a_number_with_a_point_is_a_time_only_where_it_can_be_one(text: str) -> None:
    """Two digits of minutes behind "at" or before a half of the day; prices, lengths and shares stay numbers."""
    assert "time" not in {kind for kind, _ in told(text)}
