"""Additive increase, multiplicative decrease: the way in which TCP shares a line (Chiu and Jain 1989)."""

from orchestrator.clock import ms
from orchestrator.flow.concurrency import Sample
from orchestrator.flow.learned_limit import LearnedLimit

CUT = 0.7
"""What is left of the limit after a loss."""

SEARCHING = 0.5
"""What a success adds before the first loss: half as much again in each round, as TCP's slow start does."""

USED, BINDS = 0.5, 0.9
"""Shares of the limit that were inside when work began: from the first on it grows, a search only from the second."""


class AimdLimit(LearnedLimit):
    """Grows by one per round of successes, falls to `CUT` at a loss. Until it has met a loss or a full memory it knows
    nothing of where they are and grows faster (`SEARCHING`); a search that meets a full memory is well beyond it, since
    a look at the memory is a second old and a round is shorter: it ends with a cut.

    A loss is work that was dropped or took longer than `slow_us`. The limit grows only while it is used (at least half
    of it, nearly all of it while it searches), and never by a loss: steady time-outs take it to 1.
    """

    __slots__ = ("_searching", "_slow_us")

    def __init__(self, base: int, most: int, slow_us: int = ms(1300)) -> None:
        if slow_us < 1:
            raise ValueError(f"no limit with {slow_us} µs")
        super().__init__(base, most, CUT)
        self._slow_us = slow_us
        self._searching = True

    @property
    def _stops_at_full(self) -> bool:
        return self._searching

    def _learn(self, sample: Sample) -> None:
        if sample.ended_us - sample.started_us > self._slow_us:
            self._cut(sample.ended_us)
        elif not self._full and sample.in_flight >= (BINDS if self._searching else USED) * self.value:
            more = SEARCHING if self._searching else 1 / self._limit
            self._limit = min(self._limit + more, float(self._most))

    def _cut(self, now: int) -> None:
        super()._cut(now)
        self._searching = False
