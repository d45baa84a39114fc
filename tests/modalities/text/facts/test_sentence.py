"""Texts of any kind: places, order, bounds."""

import sys
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.text.facts import facts_and_form, facts_of
from modalities.text.facts.sentence import LONGEST_TEXT, cut, vocabulary

_PIECES = sorted(
    vocabulary(
        "at five half past seven no not don't twenty first two and a half hours percent $5 7:30 pm may march 3rd next "
        "friday tomorrow on off , . - / : a b o double as in boy i mean point minus quarter to 2026 05 21 one hundred "
        "thousand"
    )
)
talk = st.lists(st.sampled_from(_PIECES), max_size=40).map(" ".join)


@given(st.one_of(st.text(max_size=300), talk))
def test_facts_of_any_text_lie_in_it_and_in_order(text: str) -> None:
    """Whatever the text: no error, and every place is a place of it."""
    facts = facts_of(text)
    assert all(0 <= one.start < one.stop <= len(text) for one in facts)
    assert [one.start for one in facts] == sorted(one.start for one in facts)
    assert facts == facts_of(text)


@given(st.text(max_size=300))
def test_tokens_are_pieces_of_the_text(text: str) -> None:
    """Each token's place holds what it says, but for case and marks."""
    for token in cut(text).tokens:
        assert text[token.start : token.stop].lower()[:1] == token.value[:1]


def test_text_beyond_the_longest_is_not_read() -> None:
    """A bound that holds for every reader."""
    padding = "x" * LONGEST_TEXT
    assert facts_of(f"five {padding} six")[0].value == "5"
    assert len(facts_of(f"five {padding} six")) == 1


_AGAIN_AND_AGAIN = (
    *(
        "five ",
        "a ",
        "1",
        "1,",
        "twenty first ",
        "no, ",
        "not ",
        "half past ",
        "b o ",
        "double ",
        "and a half ",
        "1/",
    ),
    *(
        "1:1",
        "i mean ",
        "point ",
        "on the ",
        "minus ",
        "may ",
        "don't ",
        "x",
        "'",
        "as in ",
        "five, no, ",
        "can you ",
    ),
)


@pytest.mark.parametrize("piece", _AGAIN_AND_AGAIN)
def test_reading_takes_time_in_proportion_to_the_text(piece: str) -> None:
    """No text makes a reader go over it again and again: eight times the text takes nowhere near 64 times as long.

    Counted in lines of Python that ran, so that the machine and what else it does make no difference."""
    text = piece * LONGEST_TEXT
    assert _lines_run(text[:LONGEST_TEXT]) < 8 * 3 * _lines_run(text[: LONGEST_TEXT // 8]) + 2_000


def _lines_run(text: str) -> int:
    """How many lines, and steps of comprehensions in them, reading a text takes."""
    count = 0

    def tracer(frame: FrameType, event: str, argument: object) -> object:
        nonlocal count
        count += event == "line"
        return tracer

    facts_and_form("warm")
    before = sys.gettrace()
    sys.settrace(tracer)  # type: ignore[arg-type]  # typeshed asks for a tracer that returns itself
    try:
        facts_and_form(text)
    finally:
        sys.settrace(before)
    return count
