"""Weights follow what is missed and always sum to one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.scheduling.weights import FIRST, MOST_LATENESS, Weights


def test_weights_begin_as_promised() -> None:
    """.5, .3 and .2."""
    weights = Weights()
    assert (weights.lateness, weights.freshness, weights.affinity) == pytest.approx(FIRST)


def test_weights_go_to_lateness_while_bounds_are_missed_and_come_back() -> None:
    """Up to .8 while all is missed, the others in proportion; to where they began once nothing is."""
    weights = Weights()
    for _ in range(1000):
        weights.observe(missed=True)
    assert weights.lateness == pytest.approx(MOST_LATENESS)
    assert weights.freshness / weights.affinity == pytest.approx(1.5)
    for _ in range(1000):
        weights.observe(missed=False)
    assert weights.lateness == pytest.approx(FIRST[0])


def test_weights_stay_where_few_are_missed() -> None:
    """One of thirty is neither many nor none."""
    weights = Weights()
    for n in range(3000):
        weights.observe(missed=n % 30 == 0)
    assert weights.lateness == pytest.approx(FIRST[0])


@given(st.lists(st.booleans(), max_size=400))
def test_weights_sum_to_one_and_stay_in_bounds(missed: list[bool]) -> None:
    """Whatever is observed."""
    weights = Weights()
    for one in missed:
        weights.observe(missed=one)
        assert weights.lateness + weights.freshness + weights.affinity == pytest.approx(1)
        assert FIRST[0] - 1e-9 <= weights.lateness <= MOST_LATENESS + 1e-9
        assert weights.freshness > 0
        assert weights.affinity > 0
