"""Words beside a value name its slot."""

from consistency.everyday import is_kept_in, said_for
from consistency.mentions import value_of
from consistency.reading import read
from consistency.roles import beside, rivals_of, role_words
from tests.consistency import dialogue as talk
from tests.consistency.dialogue import TRAINS, train


def test_beside_are_the_words_before_a_name_and_those_behind_a_number() -> None:
    """Three before, two behind; of a number only those behind; nothing where the value is not said."""
    text = read("please book from Boston to Austin for two people today", ())
    assert beside(value_of("Austin", ()), text, False) == (("from", "boston", "to"), ("for", "2"))
    assert beside(value_of("2", ()), text, True) == ((), ("people", "today"))
    assert beside(value_of("Salem", ()), text, False) == ((), ())


def test_role_words_come_from_the_name_the_description_and_what_is_given() -> None:
    """A slot whose name says nothing is known by its description."""
    assert {"from", "leaving"} <= role_words("origin", ())
    assert {"to", "going"} <= role_words("s1", (), "place", "City to which it goes, the destination")
    assert "towards" not in role_words("s1", ())
    assert "via" in role_words("s1", ("via",))


def test_number_with_another_slot_s_noun_is_rolled_back() -> None:
    """ "Two bags" are no travelers."""
    assert talk.connectivity("with two bags", train("travelers", "2")) < 0.6
    assert talk.connectivity("two people with three bags", train("travelers", "2")) > 0.6


def test_rivals_are_slots_that_could_hold_such_a_value() -> None:
    """A place is no rival of a number."""
    assert {slot.name for slot in rivals_of(TRAINS.slots["travelers"], TRAINS)} == {"bags"}
    assert "destination" in {slot.name for slot in rivals_of(TRAINS.slots["origin"], TRAINS)}


def test_everyday_words_stand_for_values_that_people_seldom_name() -> None:
    """A dish is its kitchen; small is compact."""
    assert ("ramen",) in said_for("Japanese")
    assert said_for("unheard of") == ()
    assert is_kept_in("small", ("Compact", "Standard"))
    assert not is_kept_in("Boston", ("Compact", "Standard"))
