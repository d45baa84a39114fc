"""What a speaker takes back."""

import pytest

from tests.modalities.text.facts.reading import told


@pytest.mark.parametrize(
    ("text", "withdrawn", "stands"),
    [
        ("at five, no, six", "time:5:00", ("time", "6:00")),
        ("at five no six", "time:5:00", ("time", "6:00")),
        ("at five, no, at six", "time:5:00", ("time", "6:00")),
        ("not at six, at seven", "time:6:00", ("time", "7:00")),
        ("fifteen, not fifty", "number:50", ("number", "15")),
        ("not fifty but fifteen", "number:50", ("number", "15")),
        ("set it to twenty, I mean thirty", "number:20", ("number", "30")),
        ("on monday, no wait, tuesday", "weekday:monday", ("weekday", "tuesday")),
        ("two tickets, make it three", "number:2", ("number", "3")),
        ("$5, sorry, 6", "money:USD 5.00", ("money", "USD 6.00")),
    ],
)
def test_correction_leaves_only_the_corrected_value(
    text: str, withdrawn: str, stands: tuple[str, str]
) -> None:
    """The withdrawn one is told as such, and denies nothing."""
    assert sorted(told(text)) == sorted([("withdrawn", withdrawn), stands])


def test_correction_keeps_the_half_of_the_day() -> None:
    """Five pm, no, six: six pm."""
    facts = told("at five pm, no, six")
    assert ("time", "18:00") in facts
    assert ("half_day", "pm") in facts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("book a flight to Boston, no, Austin", "boston"),
        ("no, not Boston, Austin", "boston"),
        ("Austin, not Boston", "boston"),
        ("not boston but austin", "boston"),
        ("i want to go to boston, sorry, austin", "boston"),
        ("turn it up, no, down", "up"),
        ("remind me to call john, actually call mary", "call john"),
        ("turn on the light, no, turn it off", "turn on the light"),
    ],
)
def test_correction_of_names_withdraws_words(text: str, words: str) -> None:
    """Where no fact stands, the words do."""
    assert told(text) == [("withdrawn", words)]


@pytest.mark.parametrize(
    "text",
    [
        "no, i want six",
        "i will not be there",
        "not today",
        "please do not",
        "is it monday or tuesday",
        "no, not now",
    ],
)
def test_no_that_corrects_nothing_withdraws_nothing(text: str) -> None:
    """An answer, a negation, a choice."""
    assert told(text, "withdrawn") == []
