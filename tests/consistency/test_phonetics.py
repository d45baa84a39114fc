"""How alike spellings sound."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consistency.phonetics import distance

_WORDS = st.text("abcdefghijklmnopqrstuvwxyz ", max_size=16)


@pytest.mark.parametrize(
    ("one", "near", "far"),
    [
        ("fifteen", "fifty", "eleven"),
        ("austin", "boston", "chicago"),
        ("limelight", "lime light", "alarm"),
        ("knight", "night", "day"),
        ("phone", "fone", "lamp"),
    ],
)
def test_distance_orders_words_as_ears_do(one: str, near: str, far: str) -> None:
    """What recognisers confuse is nearer than what they do not."""
    assert distance(one, near) < 0.5 * distance(one, far)


@given(_WORDS, _WORDS)
def test_distance_is_symmetric_and_bounded(one: str, other: str) -> None:
    """The same both ways, in [0, 1], nothing to itself."""
    assert distance(one, other) == distance(other, one)
    assert 0.0 <= distance(one, other) <= 1.0
    assert distance(one, one) == 0.0
