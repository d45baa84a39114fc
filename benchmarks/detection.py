"""How well a score tells two classes apart: area under the curve, figures at a threshold, intervals by resampling."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
Labels = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Figures:
    """Of scores at a threshold, with both classes weighted to one half each."""

    precision: float
    recall: float
    f1: float
    false_positives: float


def auc(scores: Scores, labels: Labels) -> float:
    """Returns the area under the ROC curve: how likely a positive scores above a negative, ties half. NaN where one
    class is empty."""
    positive, negative = int(labels.sum()), int((~labels).sum())
    if not positive or not negative:
        return float("nan")
    order = np.argsort(scores, kind="stable")
    _, starts, counts = np.unique(scores[order], return_index=True, return_counts=True)
    ranks = np.repeat(starts + (counts + 1) / 2, counts)
    placed = np.empty(len(scores))
    placed[order] = ranks
    return float((placed[labels].sum() - positive * (positive + 1) / 2) / (positive * negative))


def at(scores: Scores, labels: Labels, threshold: float) -> Figures:
    """Returns the figures of "score > threshold"."""
    said = scores > threshold
    recall = float(said[labels].mean()) if labels.any() else 0.0
    false = float(said[~labels].mean()) if (~labels).any() else 0.0
    precision = recall / (recall + false) if recall + false else 1.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return Figures(precision, recall, f1, false)


def threshold_for(scores: Scores, labels: Labels, false_positives: float) -> float:
    """Returns the lowest threshold that at most this share of the negatives exceeds."""
    negative = np.sort(scores[~labels])[::-1]
    return float(negative[min(int(false_positives * len(negative)), len(negative) - 1)])


def interval(
    scores: Scores,
    labels: Labels,
    groups: NDArray[np.int64],
    figure: Callable[[Scores, Labels], float],
    draws: int = 200,
    seed: int = 1,
) -> tuple[float, float]:
    """Returns the 95 % bootstrap interval of a figure; what shares a group is drawn together."""
    drawn = np.random.default_rng(seed)
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    found = []
    for _ in range(draws):
        chosen = np.concatenate([members[one] for one in drawn.integers(len(members), size=len(members))])
        value = figure(scores[chosen], labels[chosen])
        if not np.isnan(value):
            found.append(value)
    low, high = np.percentile(found, [2.5, 97.5]) if found else (float("nan"), float("nan"))
    return float(low), float(high)
