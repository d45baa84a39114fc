"""Days as they are said and written."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.modalities.text.facts.reading import told, where


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("May twenty-first", "--05-21"),
        ("the twenty first of may", "--05-21"),
        ("on 21/5", "--05-21"),
        ("5/21", "--05-21"),
        ("5/6", "5/6"),
        ("5/5", "--05-05"),
        ("the 3rd of June 2026", "2026-06-03"),
        ("Dec 24th", "--12-24"),
        ("december twenty fourth twenty twenty six", "2026-12-24"),
        ("2026-05-21", "2026-05-21"),
        ("12/25/26", "2026-12-25"),
        ("march seven", "--03-07"),
        ("in march", "--03"),
        ("august", "--08"),
        ("may 2027", "2027-05"),
    ],
)
def test_date_has_one_value_however_it_is_said(text: str, value: str) -> None:
    """What is not said is open; what may be day or month stays both."""
    assert told(text) == [("date", value)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("today", "+0"),
        ("tomorrow", "+1"),
        ("the day after tomorrow", "+2"),
        ("yesterday", "-1"),
        ("the day before yesterday", "-2"),
        ("this weekend", "weekend+0"),
        ("next week", "week+1"),
        ("last month", "month-1"),
    ],
)
def test_relative_day_counts_from_today(text: str, value: str) -> None:
    """Days by number, longer spans by name."""
    assert told(text) == [("relative_day", value)]


def test_weekday_is_its_name_and_next_is_a_week() -> None:
    """Next Friday says more than Friday."""
    assert told("on Fri") == told("friday") == told("on fridays") == [("weekday", "friday")]
    assert told("next Friday") == [("relative_day", "week+1"), ("weekday", "friday")]


def test_tonight_is_today_and_evening() -> None:
    """Two facts of one word."""
    assert told("tonight") == [("half_day", "pm"), ("relative_day", "+0")]
    assert sorted(told("this evening")) == told("tonight")


@pytest.mark.parametrize(
    ("text", "value"),
    [("nineteen eighty four", "1984"), ("in 1984", "1984"), ("two thousand and ten", "2010")],
)
def test_year_is_a_number_of_this_age(text: str, value: str) -> None:
    """Said in pairs or in full."""
    assert told(text) == [("year", value)]


@pytest.mark.parametrize("text", ["i may be late", "march to the store", "the sun is out"])
def test_words_that_name_no_day_are_none(text: str) -> None:
    """May, march and sun are words too."""
    assert told(text) == []


def test_date_knows_its_place() -> None:
    """With article and year."""
    assert where("Meet me on the 3rd of June 2026, ok", "date") == ["the 3rd of June 2026"]


@given(st.dates(date(1950, 1, 1), date(2090, 12, 31)))
def test_date_in_words_equals_its_iso_form(day: date) -> None:
    """For every day of a century and a half."""
    assert told(f"book it for {day:%B} {day.day} {day.year}") == told(f"book it for {day.isoformat()}")
