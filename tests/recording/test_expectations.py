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
        told("chorale.verdict", unit=3, verdict="ask", evidence=[]),
        told("chorale.verdict", unit=3, verdict="ask", evidence=[EVIDENCE]),
        told("chorale.verdict", unit=3, verdict="roll_back", evidence=[]),
        told("chorale.rolled_back", 5_000_000, unit=3, evidence=[]),
    ),
    slots={"party_size": "50"},
    lasted_us=6_000_000,
    intent="book_table",
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
        {"slots": {"party_size": "50"}, "other_slots": 0},
        {"other_slots": 1},
        {"intent": "book_table"},
        {"freezes": 1, "questions": 1},
        {"verdict": "roll_back"},
        {"verdict": {1: "freeze", 2: "accept", 3: "roll_back"}},
        {"conflicts": 2},
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
        ({"slots": {}, "other_slots": 0}, ["other slots"]),
        ({"intent": "cancel_table"}, ["intent"]),
        ({"intent": None}, ["intent"]),
        ({"freezes": 0}, ["freezes"]),
        ({"freezes": 2}, ["freezes"]),
        ({"questions": 0}, ["questions"]),
        ({"verdict": "accept"}, ["verdict"]),
        (
            {"verdict": {1: "accept", 3: "ask", 4: "accept"}},
            [f"verdict on turn {unit}" for unit in (1, 3, 4)],
        ),
        ({"conflicts": 0}, ["conflicts"]),
        ({"conflicts": 1}, ["conflicts"]),
        ({"conflicts": [{"verdict": "suspect"}]}, ["conflict"]),
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


INPUT = "inputs: [{at: 1, text: a}]\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "1: expected fields (name: value), got nothing"),
        ("inputs: [", "1: not YAML"),
        ("expect: {}", "1: inputs: expected inputs, or a journal to take them from"),
        (INPUT, "1: a field is missing; expected expect"),
        (
            "inputs:\n- {at: 1}\nexpect: {}",
            "2: inputs[1]: expected one of audio, speech, text, tokens, event",
        ),
        ("inputs:\n- {at: 1, text: a, speech: 1}\nexpect: {}", "2: inputs[1]: expected one of audio"),
        ("inputs:\n- at: x\n  text: a\nexpect: {}", "2: inputs[1].at: expected a number, got a text"),
        ("inputs:\n- at: -1\n  text: a\nexpect: {}", "2: inputs[1].at: expected seconds from 0 on"),
        (
            "inputs:\n- at: 1\n  text: a\n  intent: b\nexpect: {}",
            "4: inputs[1].intent: expected beside tokens",
        ),
        (
            "inputs: [{at: 1, tokens: {party: 50}}]\nexpect: {}",
            "expected a text, got a whole number; put it in quotes",
        ),
        (
            "inputs: [{at: 1, event: {text: a}}]\nexpect: {}",
            "1: inputs[1].event: expected a client event, with a type",
        ),
        (INPUT + "expect:\n  words: 3", "3: expect.words: expected a list, got a whole number"),
        (INPUT + "expect:\n  wrods: []", "3: expect.wrods: there is no such field; do you mean words?"),
        (INPUT + "expect: {}\nexpect: {}", "3: expect: stands twice"),
        (INPUT + "expect:\n  freezes: -1", "3: expect.freezes: expected a number from 0 on, got -1"),
        (INPUT + "expect: {verdict: frozen}", "2: expect.verdict: expected one of accept, ask, freeze"),
        (
            INPUT + "expect:\n  conflicts:\n  - {verdict: ask}\n  - {within: [2, 1]}",
            "5: expect.conflicts[2].within: expected [from, to] in seconds",
        ),
        (
            INPUT + "expect: {replies: [{matches: '('}]}",
            "2: expect.replies[1].matches: expected a regular expr",
        ),
        (INPUT + "expect: {replies: [{number: 0}]}", "2: expect.replies[1].number: expected 1 for the first"),
        (INPUT + "expect: {tolerances: {word_errors: -1}}", "2: expect.tolerances.word_errors: expected"),
        (
            INPUT + "script: {takes: {asrr: 1}}\nexpect: {}",
            "2: script.takes.asrr: expected one of asr, underst",
        ),
    ],
)
def test_a_faulty_scenario_names_its_line_and_field_and_what_was_expected(text: str, told: str) -> None:
    """Whoever wrote it finds the place, and need not look up what may stand there."""
    with pytest.raises(ScenarioFaulty) as caught:
        parse(text, "one.session.yaml")
    assert str(caught.value).startswith("one.session.yaml:")
    assert told in str(caught.value)
