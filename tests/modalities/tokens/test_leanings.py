"""Which way words point, and what of a text is not wanted."""

import pytest

from modalities.tokens.leanings import DENIED, OPPOSED, SAME_SIDE, as_meant, is_denied, leaning


def test_leaning_towards_an_opposite_is_further() -> None:
    """On against off loses, on and on gains, and a denial is another thing than its lack."""
    on = leaning("turn the lights on")
    assert on.towards(leaning("lights off")) == -OPPOSED
    assert on.towards(leaning("switch on the lamp")) == SAME_SIDE
    assert on.towards(leaning("what time is it")) == 0.0
    assert leaning("no rain please").towards(leaning("some rain")) == -DENIED
    assert leaning("don't play music").towards(leaning("play some music")) == -OPPOSED
    assert leaning("don't play music").towards(leaning("stop the music")) == SAME_SIDE
    assert leaning("unlock the door").towards(leaning("lock the front door")) == -OPPOSED


def test_leaning_of_a_preposition_is_none() -> None:
    """ "In" says where, mostly."""
    assert leaning("the weather in Rome").towards(leaning("a restaurant in Boston")) == 0.0


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("No, wait, what's the time", "what's the time"),
        ("hey, please lock the door", "lock the door"),
        ("in Boston, no, Austin", "in Austin"),
        ("no", "no"),
        ("No-frills airlines", "No-frills airlines"),
        ("No lights in the hallway please", "No lights in the hallway please"),
        ("no more alarms on Sunday", "no more alarms on Sunday"),
        ("no turn off the lights", "turn off the lights"),
        ("no I want jazz", "I want jazz"),
    ],
)
def test_meaning_is_without_manners_and_what_was_taken_back(text: str, meant: str) -> None:
    """Only what is asked for is compared; where nothing else is there, all of it."""
    assert as_meant(text) == meant


@pytest.mark.parametrize(
    ("text", "value", "denied"),
    [
        ("a table, but not on Friday", "Friday", True),
        ("any day but Sunday", "Sunday", True),
        ("anything but pizza", "pizza", True),
        ("without the kitchen", "kitchen", True),
        ("except for the garage", "garage", True),
        ("five people instead of three", "three", True),
        ("why not Friday", "Friday", False),
        ("don't wake me up tomorrow", "tomorrow", False),
        ("no, Friday", "Friday", False),
        ("a table on Friday", "Friday", False),
    ],
)
def test_value_right_behind_a_denial_is_not_wanted(text: str, value: str, denied: bool) -> None:
    """The denial has to be of the value, not of the verb; a proposal is none."""
    assert is_denied(text, text.index(value)) is denied


@pytest.mark.parametrize(
    ("text", "forbids"),
    [
        ("don't unlock the back door", True),
        ("do not turn off the lights in the hall, please", True),
        ("never open the garage", True),
        ("no lights in the kitchen", True),
        ("I don't want any music", True),
        ("can you not play rock music for the next hour?", True),
        ("don't make the bedroom red and the hall blue", True),
        ("don't wait but turn on the lights", False),
        ("unlock the back door", False),
        ("don't wait, turn on the lights", False),
        ("I can't see a thing, give me some light", False),
        ("don't forget to call mom", False),
        ("why don't you play some jazz", False),
        ("never mind the rain, book it", False),
    ],
)
def test_leaning_forbids_where_nothing_else_is_asked_for(text: str, forbids: bool) -> None:
    """A sentence that goes on to ask for something, or proposes it, forbids nothing."""
    assert leaning(text).forbids is forbids
