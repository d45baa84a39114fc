"""What may have been said instead, by the values that a domain lists."""

import pytest

from consistency.rivals import MOST, rivals
from tests.consistency.saying import said

CITIES = ("Newark", "Denver", "Tucson")


def test_rival_stands_in_the_place_of_the_words_that_sound_most_like_it() -> None:
    """The rest of the text stays as it was recognised; the nearest by sound comes first."""
    first, *_ = rivals(said("Find a flight from Denver to New York on Saturday.", 1.0), {"city": CITIES})
    assert first.text == "Find a flight from Denver to Newark on Saturday."
    assert (first.slot, first.value, first.replaced, first.present) == ("city", "Newark", "New York", False)


def test_rival_says_whether_it_replaces_a_listed_value() -> None:
    """Only what beats another value under the sound may take its place."""
    found = rivals(said("call Joan", 1.0), {"who": ("Joan", "John")})
    assert [(one.value, one.present) for one in found] == [("John", True)]


def test_value_that_is_said_has_no_rival_in_itself() -> None:
    """What stands in the text, in whatever letters, is not put there once more."""
    assert rivals(said("denver please", 1.0), {"city": ("Denver",)}) == ()


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("transfer $40 now", "transfer $14 now"),
        ("a timer for 50 minutes", "a timer for 15 minutes"),
        ("sixteen of them", "sixty of them"),
    ],
)
def test_number_is_exchanged_for_the_one_that_it_is_mistaken_for(text: str, other: str) -> None:
    """Without any list."""
    assert [one.text for one in rivals(said(text, 1.0), {})] == [other]


def test_rivals_are_few_and_in_one_order_however_much_is_listed() -> None:
    """Each costs a forced score."""
    listed = {"name": tuple(f"m{vowel}r{end}" for vowel in "aeiou" for end in ("y", "ie", "ey"))}
    found = rivals(said("call merry", 1.0), listed)
    assert len(found) == MOST
    assert [one.far for one in found] == sorted(one.far for one in found)
    turned = {"name": tuple(reversed(listed["name"]))}
    assert rivals(said("call merry", 1.0), turned) == found
