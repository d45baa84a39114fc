"""A limit that follows the ratio of usual to present durations: no threshold in milliseconds has to be chosen."""

from math import sqrt

from orchestrator.flow.concurrency import Sample
from orchestrator.flow.learned_limit import LearnedLimit

TOLERANCE = 1.5
"""Durations may be so many times the usual ones before the limit falls."""

SMOOTHING = 0.2
LONG_SAMPLES = 600
"""How far a limit moves with one sample, and over how many the usual duration is averaged."""

HALF = 0.5
"""What is left of the limit after a loss."""

_SHORT_WEIGHT = 0.2
_WARM_UP = 10


class GradientLimit(LearnedLimit):
    """Gradient2 of Netflix's concurrency-limits, the rules retold: with each success

        ``g = clamp(tolerance · long / short, 0.5, 1)`` and ``limit ← 0.8 · limit + 0.2 · (g · limit + √limit)``,

    where `long` is the usual duration (mean of some 600 samples) and `short` that of the last few. √limit is the queue
    that is allowed; it is what makes the limit grow while g is 1. Within 1 and `most`; unchanged while less than half
    of it is used. Where `long` is twice `short` it falls by 5 % a sample: after an overload it must not remember slow
    times as usual.

    Dropped work halves the limit and is no duration: steady time-outs cannot pass for steady durations.
    """

    __slots__ = ("_long_us", "_seen", "_short_us")

    def __init__(self, base: int, most: int) -> None:
        super().__init__(base, most, HALF)
        self._long_us = 0.0
        self._short_us = 0.0
        self._seen = 0

    def _learn(self, sample: Sample) -> None:
        self._average(sample.ended_us - sample.started_us)
        if 2 * sample.in_flight >= self.value:
            self._follow()

    def _average(self, duration_us: int) -> None:
        duration = max(1.0, float(duration_us))
        self._seen += 1
        # The first samples are averaged evenly, so that neither mean hangs on the very first one.
        self._short_us += max(_SHORT_WEIGHT, 1 / self._seen) * (duration - self._short_us)
        long_weight = 1 / self._seen if self._seen <= _WARM_UP else 2 / (LONG_SAMPLES + 1)
        self._long_us += long_weight * (duration - self._long_us)
        if self._long_us > 2 * self._short_us:
            self._long_us *= 0.95

    def _follow(self) -> None:
        gradient = min(max(TOLERANCE * self._long_us / self._short_us, 0.5), 1.0)
        wanted = gradient * self._limit + sqrt(self._limit)
        following = (1 - SMOOTHING) * self._limit + SMOOTHING * wanted
        if self._full:
            following = min(following, self._limit)
        self._limit = min(max(following, 1.0), float(self._most))
