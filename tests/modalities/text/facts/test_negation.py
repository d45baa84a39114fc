"""What a text denies."""

import pytest

from tests.modalities.text.facts.reading import told


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("don't call me", "call"),
        ("do not open the door", "open"),
        ("dont play jazz", "play"),
        ("i don't want any jazz", "jazz"),
        ("never play that again", "play"),
        ("set no alarm", "alarm"),
        ("coffee without milk", "milk"),
        ("i cannot hear you", "hear"),
        ("don't need no help", "help"),
    ],
)
def test_negation_is_told_with_what_it_denies(text: str, denied: str) -> None:
    """One fact for the negation, one for its scope."""
    assert told(text, "negation", "negated") == [("negation", "not"), ("negated", denied)]


@pytest.mark.parametrize(
    "text",
    [
        "don't forget to wake me",
        "why don't you play something",
        "it's nice, isn't it",
        "no, thanks",
        "no, i want tea",
        "no problem",
        "tell me whether or not it rains",
        "call him if you don't mind",
        "no more than five",
        "not only jazz",
        "never mind",
    ],
)
def test_negation_that_denies_nothing_is_none(text: str) -> None:
    """Manners, tags, proposals, answers."""
    assert told(text, "negation") == []


@pytest.mark.parametrize("text", ["it's not without risk", "i can't not go", "i will never not like it"])
def test_two_negations_of_one_clause_cancel(text: str) -> None:
    """Parity: an even number of them denies nothing."""
    assert told(text, "negation") == []


def test_negations_of_two_clauses_both_stand() -> None:
    """Joined by "and" they do not cancel."""
    assert told("don't call me and don't wake me", "negation") == 2 * [("negation", "not")]
