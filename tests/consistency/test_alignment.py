"""Words of two texts that answer to one another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consistency.alignment import Step, align
from consistency.wording import wording
from tests.consistency.texts import said, typed

_TEXTS = st.lists(
    st.sampled_from(
        [
            "set an alarm",
            "for nine am",
            "ten",
            "tomorrow",
            "friday",
            "please",
            "don't",
            "turn on",
            "off",
            "in berlin",
            "the",
        ]
    ),
    max_size=6,
).map(" ".join)


def _steps(one: str, other: str) -> list[tuple[str, str, str]]:
    found = align(wording(said(one)), wording(typed(other)))
    return [
        (step.kind, _text(step, 0), _text(step, 1))
        for step in found
        if step.kind != "equal" and step.weight > 0.1
    ]


def _text(step: Step, side: int) -> str:
    return " ".join(unit.text for unit in (step.ours, step.theirs)[side])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("set an alarm for nine am", "Set an alarm for 9 a.m.", []),
        ("set an alarm for nine am", "set an alarm for nine pm", [("fact", "nine am", "nine pm")]),
        ("wake me at seven thirty", "wake me at 7:30 please", []),
        ("check the traffic", "check the trraffic", [("slip", "traffic", "trraffic")]),
        ("play a movie", "play a film", [("synonym", "movie", "film")]),
        ("the brightness of the room", "the brighter of the room", [("form", "brightness", "brighter")]),
        ("play lime light by rush", "play limelight by rush", [("form", "lime light", "limelight")]),
        ("tomorrow book a taxi", "book a taxi tomorrow", [("moved", "tomorrow", "tomorrow")]),
        ("call anna", "call", [("lost", "anna", "")]),
        ("fly to austin", "fly to boston", [("other", "austin", "boston")]),
    ],
)
def test_align_tells_how_words_answer(one: str, other: str, expected: list[tuple[str, str, str]]) -> None:
    """Other forms, slips, synonyms, joins and moves are told apart from other words; facts compare by value."""
    assert _steps(one, other) == expected


def test_align_days_of_one_week_are_other_days() -> None:
    """That both are of next week does not make Friday a Monday."""
    assert [kind for kind, _, _ in _steps("meet next friday", "meet next monday")] == ["fact"]


@given(_TEXTS, _TEXTS)
def test_align_uses_each_word_once(one: str, other: str) -> None:
    """Every unit of both texts stands in exactly one step."""
    ours, theirs = wording(said(one)), wording(typed(other))
    steps = align(ours, theirs)
    assert sorted(unit.text for step in steps for unit in step.ours) == sorted(
        unit.text for unit in ours.units
    )
    assert sorted(unit.text for step in steps for unit in step.theirs) == sorted(
        unit.text for unit in theirs.units
    )


@given(_TEXTS)
def test_align_a_text_with_itself_finds_nothing(text: str) -> None:
    """Identical texts have equal steps only."""
    assert {step.kind for step in align(wording(said(text)), wording(said(text)))} <= {"equal"}
