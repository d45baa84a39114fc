"""Figures of a score against labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.detection import at, auc, interval, threshold_for


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=30))
def test_auc_is_how_often_a_positive_stands_above_a_negative(rows: list[tuple[int, bool]]) -> None:
    """Counted over all pairs, ties half."""
    scores = np.array([score for score, _ in rows], dtype=float)
    labels = np.array([label for _, label in rows])
    pairs = [(p > n) + 0.5 * (p == n) for p in scores[labels] for n in scores[~labels]]
    found = auc(scores, labels)
    assert np.isnan(found) if not pairs else found == pytest.approx(np.mean(pairs))


def test_at_weighs_both_classes_one_half() -> None:
    """Three of four found and one of two alarmed: precision .75 / (.75 + .5)."""
    figures = at(np.array([0.9, 0.9, 0.9, 0.1, 0.9, 0.1]), np.array([True] * 4 + [False] * 2), 0.85)
    assert (figures.recall, figures.false_positives) == (0.75, 0.5)
    assert figures.precision == pytest.approx(0.6)
    assert figures.f1 == pytest.approx(2 * 0.6 * 0.75 / 1.35)


def test_threshold_lets_at_most_the_share_through() -> None:
    """Of a hundred negatives two lie above the threshold for two in a hundred."""
    scores = np.arange(100) / 100
    labels = np.zeros(100, dtype=bool)
    assert (scores > threshold_for(scores, labels, 0.02)).sum() == 2


def test_interval_holds_the_figure_and_draws_groups_together() -> None:
    """One group of everything has no spread; many have."""
    drawn = np.random.default_rng(2)
    labels = drawn.random(200) < 0.5
    scores = labels + drawn.normal(size=200)
    low, high = interval(scores, labels, np.arange(200), auc, 60)
    assert low < auc(scores, labels) < high
    together = interval(scores, labels, np.zeros(200, dtype=np.int64), auc, 20)
    assert together[0] == together[1]
