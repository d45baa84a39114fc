"""What a scenario expects, and what is said where it is not so."""

import msgspec
import pytest

from orchestrator.recording.expectations import check
from orchestrator.recording.scenario import Expected, ScenarioFaulty, parse
from orchestrator.recording.story import Said, Story, Told


def told(type: str, at_us: int = 2_000_000, **event: object) -> Told:
    return Told(at_us, type, {"type": type, **event})


EVIDENCE = {"name": "fact", "value": 1, "about": "15 against 50"}
STORY = Story(
    said=(
        Said("item_1", 1_000_000, "user", "Book a table for fifteen."),
        Said("item_2", 2_000_000, "assistant", "Fifteen or fifty?"),
        Said("item_3", 3_000_000, "user", "Fifty."),
        Said("item_4", 4_000_000, "assistant", "Booked for fifty."),
    ),
    told=(
        told("chorale.verdict", unit=1, verdict="freeze", evidence=[EVIDENCE]),
        told("chorale.verdict", unit=1, verdict="freeze", evidence=[]),
        told("chorale.verdict", unit=2, verdict="accept", evidence=[]),
        told("chorale.rolled_back", 5_000_000, unit=3, evidence=[]),
    ),
    slots={"party_size": "50"},
    lasted_us=6_000_000,
)  # fmt: skip


def misses(**expected: object) -> list[str]:
    return [miss.what for miss in check(msgspec.convert(expected, Expected), STORY)]


@pytest.mark.parametrize(
    "expected",
    [
        {},
        {"words": ["book a table for fifteen", "fifty"]},
        {"words": ["book the table for fifteen", "fifty"], "tolerances": {"word_errors": 0.2}},
        {"words": ["book a table for fifteen"], "tolerances": {"extra_turns": 1}},
        {"slots": {"party_size": "50", "day": None}},
        {"conflicts": 1},
        {"conflicts": [{"verdict": "freeze", "about": "15 against", "within": [1, 3]}]},
        {"rollbacks": 1, "errors": 0},
        {"replies": 2},
        {"replies": [{"number": 2, "contains": ["BOOKED"], "lacks": ["fifteen"], "matches": "for f.*y"}]},
        {"replies": [{"contains": ["or fifty"]}]},
    ],
)
def test_what_is_so_is_accepted(expected: dict[str, object]) -> None:
    """Nothing is missed where the story is as expected; what is not named is not looked at."""
    assert misses(**expected) == []


@pytest.mark.parametrize(
    ("expected", "missed"),
    [
        ({"words": ["book a table for fifty", "fifty"]}, ["words"]),
        ({"words": ["book the table for fifteen", "fifty"], "tolerances": {"word_errors": 0.1}}, ["words"]),
        ({"words": ["book a table for fifteen"]}, ["words"]),
        (
            {"words": ["book a table for fifteen", "fifty", "now"], "tolerances": {"extra_turns": 1}},
            ["words"],
        ),
        ({"slots": {"party_size": "15"}}, ["slot party_size"]),
        ({"slots": {"party_size": None}}, ["slot party_size"]),
        ({"slots": {"day": "friday"}}, ["slot day"]),
        ({"conflicts": 0}, ["conflicts"]),
        ({"conflicts": 2}, ["conflicts"]),
        ({"conflicts": [{"verdict": "ask"}]}, ["conflict"]),
        ({"conflicts": [{"about": "16 against"}]}, ["conflict"]),
        ({"conflicts": [{"within": [3, 4]}]}, ["conflict"]),
        ({"rollbacks": 0}, ["rollbacks"]),
        ({"errors": 1}, ["errors"]),
        ({"replies": 1}, ["replies"]),
        ({"replies": [{"number": 1, "contains": ["booked"]}]}, ["reply 1"]),
        ({"replies": [{"number": 1, "lacks": ["or"]}]}, ["reply 1"]),
        ({"replies": [{"number": 3}]}, ["reply 3"]),
        ({"replies": [{"matches": "sixty"}]}, ["a reply"]),
    ],
)
def test_what_is_not_so_is_missed(expected: dict[str, object], missed: list[str]) -> None:
    """Each expectation can fail, by itself."""
    assert misses(**expected) == missed


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("expect: {}", "inputs"),
        ("inputs: [{at: 1}]\nexpect: {}", "input 1"),
        ("inputs: [{at: 1, text: a, speech: 1}]\nexpect: {}", "input 1"),
        ("inputs: [{at: 1, text: a}]\nexpect: {words: 3}", "expect.words"),
        ("inputs: [{at: 1, text: a}]\nexpect: {wrods: []}", "wrods"),
        ("inputs: [{at: 1, text: a}]\nexpect: {replies: [{matches: '('}]}", "matches|replies"),
        ("inputs: [", "YAML"),
    ],
)
def test_a_faulty_scenario_names_its_fault(text: str, named: str) -> None:
    """Whoever wrote it finds the place."""
    with pytest.raises(ScenarioFaulty, match=named):
        parse(text, "one.session.yaml")
