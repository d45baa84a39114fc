"""Slots in two values."""

from dataclasses import replace

import pytest

from consistency.observation import Fact, Token
from consistency.slots import apart, fills, kept, mended, respelled, same_value
from tests.consistency.saying import form, said, slot

AT_SEVEN = said("a table at seven", 1.0, tokens=(slot("time", "7"), slot("place", "here")))


def read(text: str) -> tuple[Fact, ...]:
    """Clock times of these tests."""
    times = {
        "19:00": "19:00",
        "seven pm": "19:00",
        "seven": "7:00",
        "eight": "8:00",
        "7": "7:00",
        "8": "8:00",
    }
    found = tuple(
        Fact("time", value, text.index(words), text.index(words) + len(words))
        for words, value in times.items()
        if f" {words} " in f" {text} "
    )
    return (*found, Fact("half_day", "pm")) if text.endswith(" pm") else found


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("The kitchen", "kitchen", True),
        ("Luigi's", "luigi's ", True),
        ("19:00", "seven pm", True),
        ("7", "seven", True),
        ("7", "8", False),
        ("Austin", "Boston", False),
        ("seven", "seven eight", False),
        ("7", "7 pm", True),
        ("", "", True),
    ],
)
def test_values_are_the_same_in_letters_or_in_facts(one: str, other: str, same: bool) -> None:
    """From either side; facts that only one of them has make them others."""
    assert same_value(one, other, read) is same
    assert same_value(other, one, read) is same


def test_slots_are_apart_where_neither_value_of_the_other_is_the_same() -> None:
    """A slot that is filled twice agrees with either; what is asked for is no value."""
    ((one, other),) = apart(AT_SEVEN, form(2.0, time="8"), read)
    assert (one.value, other.value) == ("7", "8")
    twice = replace(form(2.0), tokens=(Token("", "time", "8"), Token("", "time", "seven")))
    assert apart(AT_SEVEN, twice, read) == ()
    asked = replace(form(2.0), tokens=(Token("", "time", "8", "request"),))
    assert apart(AT_SEVEN, asked, read) == ()


def test_text_is_written_with_the_others_values_where_its_own_stand() -> None:
    """By the place where a value was found, by its letters, or by its facts; an inferred one was not said."""
    eight = form(2.0, time="8")
    placed = replace(AT_SEVEN, tokens=(Token("book", "time", "7", start=11, stop=16),))
    assert respelled(placed, apart(placed, eight)) == "a table at 8"
    by_letters = said("at 7 then", 1.0, tokens=(slot("time", "7"),))
    assert respelled(by_letters, apart(by_letters, eight)) == "at 8 then"
    by_facts = replace(AT_SEVEN, facts=read(AT_SEVEN.text))
    assert respelled(by_facts, apart(by_facts, eight, read), read) == "a table at 8"
    inferred = said("a table", 1.0, tokens=(slot("time", "7"),))
    assert respelled(inferred, apart(inferred, eight, read), read) is None


def test_reading_that_is_mended_has_the_others_values_and_its_own_other_slots() -> None:
    """Its facts are those of the new text."""
    eight = form(2.0, id="form", time="8")
    found = apart(AT_SEVEN, eight, read)
    one = mended(AT_SEVEN, eight, found, "a table at 8", read)
    assert [(token.slot, token.value) for token in one.tokens] == [("time", "8"), ("place", "here")]
    assert [fact.value for fact in one.facts] == ["8:00"]
    assert fills(one, found, read)
    assert not fills(AT_SEVEN, found, read)


def test_loser_keeps_the_slots_that_the_winner_does_not_name_otherwise() -> None:
    """Its words say more than one thing."""
    assert [token.slot for token in kept(AT_SEVEN, form(2.0, time="8"), read)] == ["place"]
    assert kept(AT_SEVEN, form(2.0, time="seven"), read) == AT_SEVEN.tokens
