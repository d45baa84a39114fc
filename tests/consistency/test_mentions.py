"""What a text says about a value: that it is so, that it is otherwise, or nothing."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consistency.mentions import ABSENT, AGAINST, UNKNOWN_DAY, alike, support, value_of
from consistency.observation import Fact
from consistency.ontology import SlotSpec, ValueKind
from consistency.reading import read, words_of
from consistency.related import relation

FRIDAY = datetime.date(2019, 3, 1)


def facts_of(text: str) -> tuple[Fact, ...]:
    known = {
        "2019-03-04": (Fact("date", "2019-03-04"),),
        "next monday": (Fact("weekday", "monday"), Fact("relative_day", "week+1")),
        "tomorrow": (Fact("relative_day", "+1"),),
        "2019-03-02": (Fact("date", "2019-03-02"),),
        "17:30": (Fact("time", "17:30"), Fact("half_day", "pm")),
        "half past five": (Fact("time", "5:30"),),
        "half past five in the morning": (Fact("time", "5:30"), Fact("half_day", "am")),
        "one thousand two hundred dollars": (Fact("money", "USD 1200.00"),),
    }
    return known.get(text, ())


def borne_out(kind: ValueKind, value: str, text: str, today: datetime.date | None = FRIDAY) -> float:
    slot = SlotSpec(
        "s", "", kind, {"checking": ("current account",), "savings": ()} if kind == "category" else {}
    )
    return support(value_of(value, facts_of(value)), slot, read(text, facts_of(text)), relation, today)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("date", "2019-03-04", "next monday"),
        ("date", "2019-03-02", "tomorrow"),
        ("date", "2019-03-04", "on the four of march"),
        ("time", "17:30", "half past five"),
        ("money", "1200", "one thousand two hundred dollars"),
        ("number", "2014", "from fourteen"),
        ("number", "2014", "a song five years old"),
        ("number", "2", "a couple of tickets"),
        ("category", "checking", "from my current account"),
        ("place", "New York", "in the big apple"),
        ("place", "Seattle, WA", "from seattle"),
        ("name", "The Metropolitan Hotel", "the metropolitan"),
        ("text", "Japanese", "some ramen"),
    ],
)
def test_value_in_other_words_is_borne_out(kind: ValueKind, value: str, text: str) -> None:
    """Days by the calendar, times by the clock's face, numbers by what they are worth, names by what people say."""
    assert borne_out(kind, value, text) >= 0.85


@pytest.mark.parametrize(
    ("kind", "value", "text", "most"),
    [
        ("date", "2019-03-02", "next monday", AGAINST),
        ("time", "17:30", "half past five in the morning", 0.3),
        ("money", "1300", "one thousand two hundred dollars", ABSENT),
        ("number", "5", "two tickets", AGAINST),
        ("category", "checking", "from savings", AGAINST),
        ("place", "Boston", "from Austin", ABSENT),
        ("name", "Khadija", "send it to Jasbir", ABSENT),
    ],
)
def test_another_value_is_not_borne_out(kind: ValueKind, value: str, text: str, most: float) -> None:
    """Less than nothing where the text has another value of the kind."""
    assert borne_out(kind, value, text) <= most


def test_weekday_is_neither_for_nor_against_where_today_is_unknown() -> None:
    """Without a calendar nobody can tell."""
    assert borne_out("date", "2019-03-04", "next monday", None) == UNKNOWN_DAY
    assert borne_out("date", "2019-03-02", "next monday", None) == UNKNOWN_DAY


def test_yes_and_no_are_borne_out_by_what_they_are_about() -> None:
    """By the slot's name, or a word of its description."""
    slot = SlotSpec("has_wifi", "Whether there is wireless internet", "boolean")
    for text in ("one with wi-fi", "with internet please"):
        assert support(value_of("True", ()), slot, read(text, ()), relation, None) > 0.9
    assert support(value_of("True", ()), slot, read("okay then", ()), relation, None) < 0.4


@given(st.text("abcdeé ", max_size=12), st.text("abcdeé ", max_size=12))
def test_alike_is_symmetric_and_one_for_equals(one: str, other: str) -> None:
    """A similarity of spellings in [0, 1]."""
    assert alike(one, one) == 1.0
    assert alike(one, other) == pytest.approx(alike(other, one), abs=0.12)
    assert 0.0 <= alike(one, other) <= 1.0


def test_words_write_numbers_as_digits_and_drop_possessives() -> None:
    """So that "twenty-one", "21" and "21st" are one word."""
    assert words_of("Twenty-one of Bob's friends, the 21st and the third") == (
        "21", "of", "bob", "friends", "the", "21", "and", "the", "3"
    )  # fmt: skip


@given(st.text(max_size=2_000))
def test_reading_any_text_is_bounded(text: str) -> None:
    """No text breaks the reader, and none makes it long."""
    assert len(read(text, ()).text) <= 600
