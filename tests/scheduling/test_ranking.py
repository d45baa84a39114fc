"""What w is made of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.clock import seconds
from orchestrator.scheduling.ranking import TERMS, affinity, freshness, lateness, overdue

SILVER = TERMS[3]


def test_lateness_rises_to_one_at_the_bound_and_stays() -> None:
    """Half of it at half the time; below 0 while nobody misses it."""
    assert lateness(0, seconds(0.4), SILVER) == pytest.approx(0.5)
    assert lateness(0, seconds(0.8), SILVER) == lateness(0, seconds(9), SILVER) == 1.0
    assert lateness(seconds(1), seconds(0.2), SILVER) == pytest.approx(-1)


def test_freshness_halves_with_each_half_life() -> None:
    """1 at the sign itself, 0 without one and once it has faded away."""
    assert freshness(5, 5, SILVER) == 1.0
    assert freshness(0, seconds(900), SILVER) == pytest.approx(0.5)
    assert freshness(None, 0, SILVER) == freshness(0, seconds(900 * 11), SILVER) == 0.0


@given(st.integers(0, seconds(9000)), st.integers(0, seconds(9000)), st.sampled_from([1, 2, 3]))
def test_freshness_of_an_epoch_is_at_most_a_little_too_high(active: int, later: int, level: int) -> None:
    """4.4 % of it, or a thousandth where it is cut."""
    now, terms = active + later, TERMS[level]
    exact, of_epoch = freshness(active, now, terms), freshness(active, terms.epoch(now), terms)
    assert exact <= of_epoch <= exact * 1.0443 + 2**-10 * 1.05


def test_what_is_missed_for_four_bounds_is_overdue() -> None:
    """Not a microsecond before."""
    assert not overdue(5, 5 + seconds(3.2) - 1, SILVER)
    assert overdue(5, 5 + seconds(3.2), SILVER)


def test_affinity_prefers_who_has_the_state_and_then_who_has_memory() -> None:
    """The figures that are promised."""
    assert affinity(0.0, warm=True) == 0.95
    assert affinity(0.0, warm=False) == pytest.approx(0.3)
    assert affinity(0.25, warm=False) == pytest.approx(0.4)
    assert affinity(1.0, warm=False) == pytest.approx(0.7)
