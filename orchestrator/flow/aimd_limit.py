"""Additive increase, multiplicative decrease: the way in which TCP shares a line (Chiu and Jain 1989)."""

from orchestrator.clock import ms, seconds
from orchestrator.flow.concurrency import Outcome, Sample

CUT = 0.7
"""What is left of the limit after a loss."""

SEARCHING = 0.5
"""What a success adds before the first loss: half as much again in each round, as TCP's slow start does."""

USED, BINDS = 0.5, 0.9
"""Shares of the limit that were inside when work began: from the first on it grows, a search only from the second."""

SETTLES_US = seconds(2)
"""Memory is freed by those inside ending, which takes a while after a cut: it causes the next no sooner."""

MEMORY_CUTS = 0.95
MEMORY_HOLDS = 0.9
"""Shares of the memory in use from which on the limit is cut, and is not raised."""


class AimdLimit:
    """Grows by one per round of successes, falls to `CUT` at a loss; stays within 1 and `most`. Until it has met a loss
    or a full memory it knows nothing of where they are and grows faster (`SEARCHING`).

    A loss is work that was dropped or took longer than `slow_us`. Losses of one round count once: only work that began
    after the last cut can cause the next, since what began before says nothing about the new limit. The limit grows
    only while it is used (at least half of it, nearly all of it while it searches), and never by a loss: steady
    time-outs take it to 1.
    """

    __slots__ = ("_cut_us", "_full", "_limit", "_most", "_searching", "_slow_us")

    def __init__(self, base: int, most: int, slow_us: int = ms(1300)) -> None:
        if min(base, most, slow_us) < 1:
            raise ValueError(f"no limit of {base} (at most {most}) with {slow_us} µs")
        self._most = most
        self._slow_us = slow_us
        self._limit = float(min(base, most))
        self._cut_us: int | None = None
        self._full = False
        self._searching = True

    @property
    def value(self) -> int:
        return int(self._limit)

    def observe(self, sample: Sample) -> None:
        if sample.outcome is Outcome.IGNORED or (
            self._cut_us is not None and sample.started_us < self._cut_us
        ):
            return
        slow = sample.ended_us - sample.started_us > self._slow_us
        if slow or sample.outcome is Outcome.DROPPED:
            self._cut(sample.ended_us)
        elif not self._full and sample.in_flight >= (BINDS if self._searching else USED) * self.value:
            more = SEARCHING if self._searching else 1 / self._limit
            self._limit = min(self._limit + more, float(self._most))

    def tick(self, now: int, memory_share: float | None) -> None:
        """Cuts where the memory is nearly used up, and where a search ends there."""
        share = memory_share or 0.0
        self._full = share >= MEMORY_HOLDS
        # A search is well beyond the mark when it is told of it: a look at the memory is a second old, a round shorter.
        settled = self._cut_us is None or now - self._cut_us >= SETTLES_US
        if settled and (share >= MEMORY_CUTS or (self._full and self._searching)):
            self._cut(now)

    def _cut(self, now: int) -> None:
        self._limit = max(1.0, self._limit * CUT)
        self._cut_us = now
        self._searching = False
