"""Slips of the fingers."""

import pytest

from consistency.slips import is_slip


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("traffic", "trraffic", True),
        ("please", "pelase", True),
        ("please", "pease", True),
        ("minutes", "minites", True),
        ("john", "joan", False),
        ("lights", "nights", True),
        ("nine", "none", False),
        ("cat", "cats", False),
        ("alarm", "alarm", False),
        ("alarm", "charm", False),
    ],
)
def test_is_slip_takes_one_typing_error(one: str, other: str, expected: bool) -> None:
    """One letter too many, two swapped, another letter in a long word; symmetric."""
    assert is_slip(one, other) is is_slip(other, one) is expected
