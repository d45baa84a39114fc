"""Questions, and what answers to them mean."""

import pytest

from consistency.asking import chosen, differing, question, spliced
from consistency.observation import Fact, Observation
from tests.consistency.saying import said, slot, typed

SPOKEN = said("set a timer for fifty minutes", 1.0)
TYPED = typed("set a timer for fifteen minutes", 2.0)


def far(a: Observation, b: Observation) -> float:
    return 1.0


def test_question_names_the_words_that_differ() -> None:
    """A person hears the two readings and nothing else."""
    asked = question(SPOKEN, TYPED)
    assert asked.readings == ("fifty", "fifteen")
    assert asked.text == "Sorry, fifty or fifteen?"


def test_question_falls_back_to_slots_then_words_then_whole_texts() -> None:
    """Whatever differs can be named."""
    one, other = said("x", 1.0, tokens=(slot("time", "7"),)), said("y", 1.0, tokens=(slot("time", "8"),))
    assert differing(one, other) == ("7", "8")
    assert differing(said("fly to Austin today", 1.0), said("fly to Boston today", 1.0)) == (
        "Austin",
        "Boston",
    )
    assert differing(said("call mum", 1.0), said("play some jazz", 1.0)) == ("call mum", "play some jazz")


def test_nobody_is_asked_about_one_value_in_two_spellings() -> None:
    """Time and day are filled in; the time is the same, written in another way: the day is what is asked about."""

    def read(text: str) -> tuple[Fact, ...]:
        return (Fact("time", "7:40", 0, len(text)),) if text in ("7:40", "7.40") else ()

    heard = said("at 7.40 on Monday", 1.0, tokens=(slot("time", "7.40"), slot("day", "Monday")))
    form = typed("time = 7:40, day = Sunday", 2.0, tokens=(slot("time", "7:40"), slot("day", "Sunday")))
    assert question(heard, form, read).text == "Sorry, Monday or Sunday?"


@pytest.mark.parametrize(
    ("answer", "which"),
    [
        ("fifteen", 1),
        ("Fifty, please.", 0),
        ("15", 1),
        ("the first one", 0),
        ("the latter", 1),
        ("what?", None),
        ("fifteen or fifty, I do not care", None),
    ],
)
def test_question_is_answered_by_words_facts_or_place(answer: str, which: int | None) -> None:
    """An answer may repeat a reading, say its number otherwise, or point at it."""
    assert chosen(question(SPOKEN, TYPED), said(answer, 5.0), far) == which


def test_question_is_answered_by_what_is_close_to_one_reading_only() -> None:
    """Where no word decides, the distance may."""
    asked = question(said("call mum", 1.0, id="a"), said("play some jazz", 1.0, id="b"))
    near_first = {asked.a.id: 0.1, asked.b.id: 0.9}
    assert chosen(asked, said("ring my mother", 5.0), lambda one, _: near_first[one.id]) == 0
    assert chosen(asked, said("ring my mother", 5.0), lambda one, _: 0.1) is None


def test_splicing_puts_the_others_facts_into_what_was_heard() -> None:
    """A typed correction of one word is held against the sound as a whole sentence."""
    assert spliced(SPOKEN, typed("no, 15", 3.0)) == "set a timer for 15 minutes"
    assert spliced(SPOKEN, typed("no, tomorrow", 3.0)) is None
    assert spliced(said("fifty", 1.0), typed("15", 3.0)) is None


def test_question_about_amounts_is_answered_by_the_number_alone() -> None:
    """The number is enough for fifteen minutes; a number of both readings says nothing."""
    one = said("set 2 timers for 50 minutes", 1.0, tokens=(slot("duration", "50 minutes"),))
    asked = question(one, said("set 2 timers for 15 minutes", 1.0, tokens=(slot("duration", "15 minutes"),)))
    assert chosen(asked, said("15", 5.0), far) == 1
    assert chosen(asked, said("2", 5.0), far) is None
