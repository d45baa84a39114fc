"""What limits that learn have in common: rounds, losses and memory."""

from abc import ABC, abstractmethod

from orchestrator.clock import seconds
from orchestrator.flow.concurrency import Outcome, Sample

SETTLES_US = seconds(2)
"""Memory is freed by those inside ending, which takes a while after a cut: it causes the next no sooner."""

MEMORY_CUTS = 0.95
MEMORY_HOLDS = 0.9
"""Shares of the memory in use from which on the limit is cut, and is not raised."""


class LearnedLimit(ABC):
    """A limit within 1 and `most` that falls to a share of itself at a loss.

    Losses of one round count once: only work that began after the last cut can cause the next, since what began before
    says nothing about the new limit. Ignored work says nothing. A memory that is nearly used up is a loss too.
    """

    __slots__ = ("_cut_us", "_full", "_kept", "_limit", "_most")

    def __init__(self, base: int, most: int, kept: float) -> None:
        """`kept` is what a cut leaves. Raises `ValueError` for a number below 1."""
        if min(base, most) < 1:
            raise ValueError(f"no limit of {base} (at most {most})")
        self._kept = kept
        self._most = most
        self._limit = float(min(base, most))
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
        else:
            self._learn(sample)

    def tick(self, now: int, memory_share: float | None) -> None:
        share = memory_share or 0.0
        self._full = share >= MEMORY_HOLDS
        settled = self._cut_us is None or now - self._cut_us >= SETTLES_US
        if settled and (share >= MEMORY_CUTS or (self._full and self._stops_at_full)):
            self._cut(now)

    @property
    def _stops_at_full(self) -> bool:
        """Whether a memory from which on the limit is not raised is a loss by itself."""
        return False

    @abstractmethod
    def _learn(self, sample: Sample) -> None:
        """Work that was not dropped, and is of this round."""

    def _cut(self, now: int) -> None:
        self._limit = max(1.0, self._limit * self._kept)
        self._cut_us = now
