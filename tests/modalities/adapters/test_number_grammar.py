"""Numbers between bounds, as JSON writes them."""

import random
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from modalities.adapters.grammar import NOTHING, after, may_end
from modalities.adapters.number_grammar import integers, multiples, numbers
from tests.modalities.adapters.json_schemas import drawn

TENTHS = st.integers(-400, 400).map(lambda n: Decimal(n) / 10)


@given(st.integers(-1500, 1500), st.integers(0, 300))
def test_integers_are_exactly_those_between_the_bounds(low: int, width: int) -> None:
    """Every integer from bound to bound is in, its neighbours and leading zeros are out."""
    language = integers(low, low + width)
    around = range(low - 12, low + width + 13)
    inside = [n for n in around if may_end(after(language, str(n)))]
    assert inside == list(range(low, low + width + 1))
    assert not may_end(after(language, f"0{abs(low) or 1}"))
    assert not may_end(after(language, "-0"))


@given(st.integers(-200, 200), st.integers(0, 100), st.integers(2, 40))
def test_integers_of_a_step_are_exactly_its_multiples(low: int, width: int, step: int) -> None:
    """Where they are few, all multiples are in and nothing else."""
    language = integers(low, low + width, step)
    inside = [n for n in range(low - 5, low + width + 6) if may_end(after(language, str(n)))]
    assert inside == [n for n in range(low, low + width + 1) if n % step == 0]
    assert (language is NOTHING) == (inside == [])


@given(TENTHS | st.none(), TENTHS | st.none(), st.booleans(), st.booleans(), st.integers())
def test_numbers_keep_to_their_bounds(
    one: Decimal | None, other: Decimal | None, open_low: bool, open_high: bool, chance: int
) -> None:
    """Every number that may be written lies between the bounds, and on one only where it belongs to them."""
    low, high = (one, other) if one is None or other is None else (min(one, other), max(one, other))
    language = numbers(low, high, open_low, open_high)
    if low is not None and low == high and (open_low or open_high):
        assert language is NOTHING
        return
    value = Decimal(drawn(language, random.Random(chance)))
    assert low is None or value > low or (value == low and not open_low)
    assert high is None or value < high or (value == high and not open_high)


@given(st.sampled_from(["0.5", "0.25", "3", "0.1"]), TENTHS | st.none(), st.integers())
def test_multiples_are_multiples_above_their_bound(step: str, low: Decimal | None, chance: int) -> None:
    """What is listed is a multiple, in bounds, without an exponent."""
    text = drawn(multiples(Decimal(step), low, None), random.Random(chance))
    assert Decimal(text) % Decimal(step) == 0
    assert low is None or Decimal(text) >= low
    assert "e" not in text.lower()
