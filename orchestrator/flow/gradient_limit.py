"""A limit that follows the ratio of usual to present durations: no threshold in milliseconds has to be chosen."""

from math import sqrt

from orchestrator.flow.aimd_limit import MEMORY_CUTS, MEMORY_HOLDS
from orchestrator.flow.concurrency import Outcome, Sample

TOLERANCE = 1.5
"""Durations may be so many times the usual ones before the limit falls."""

SMOOTHING = 0.2
LONG_SAMPLES = 600
"""How far a limit moves with one sample, and over how many the usual duration is averaged."""

_SHORT_WEIGHT = 0.2
_WARM_UP = 10


class GradientLimit:
    """Gradient2 of Netflix's concurrency-limits, the rules retold: with each success

        ``g = clamp(tolerance · long / short, 0.5, 1)`` and ``limit ← 0.8 · limit + 0.2 · (g · limit + √limit)``,

    where `long` is the usual duration (mean of some 600 samples) and `short` that of the last few. √limit is the queue
    that is allowed; it is what makes the limit grow while g is 1. Within 1 and `most`; unchanged while less than half
    of it is used. Where `long` is twice `short` it falls by 5 % a sample: after an overload it must not remember slow
    times as usual.

    Dropped work halves the limit, once per round (work that began before the last cut says nothing about the new one),
    and is no duration: steady time-outs cannot pass for steady durations. Ignored work says nothing.
    """

    __slots__ = ("_cut_us", "_full", "_limit", "_long_us", "_most", "_seen", "_short_us")

    def __init__(self, base: int, most: int) -> None:
        if min(base, most) < 1:
            raise ValueError(f"no limit of {base} (at most {most})")
        self._most = most
        self._limit = float(min(base, most))
        self._long_us = 0.0
        self._short_us = 0.0
        self._seen = 0
        self._cut_us: int | None = None
        self._full = False

    @property
    def value(self) -> int:
        return int(self._limit)

    def observe(self, sample: Sample) -> None:
        if sample.outcome is Outcome.IGNORED or (
            self._cut_us is not None and sample.started_us < self._cut_us
        ):
            return
        if sample.outcome is Outcome.DROPPED:
            self._cut(sample.ended_us)
            return
        self._learn(sample.ended_us - sample.started_us)
        if 2 * sample.in_flight >= self.value:
            self._follow()

    def tick(self, now: int, memory_share: float | None) -> None:
        """Halves where the memory is nearly used up."""
        share = memory_share or 0.0
        self._full = share >= MEMORY_HOLDS
        if share >= MEMORY_CUTS:
            self._cut(now)

    def _learn(self, duration_us: int) -> None:
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

    def _cut(self, now: int) -> None:
        self._limit = max(1.0, self._limit / 2)
        self._cut_us = now
