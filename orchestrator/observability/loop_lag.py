"""How late the event loop is: a timer asks to be woken at a time, and notes how long after it that happens.

Whatever holds the loop up, holds up sound: a call's frame is due every 20 ms.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from orchestrator.observability.faults import FAULTS

PERIOD_S = 0.05
KEPT = 1_200
"""One minute of samples: about what a scrape of metrics covers."""

LATELY = 40
"""Two seconds of samples: what says whether the loop keeps up now."""


@dataclass(frozen=True, slots=True)
class LoopLagStatistics:
    """Milliseconds over the last `KEPT` samples; `worst_ever_ms` and `samples` count since the start."""

    p50_ms: float
    p99_ms: float
    worst_ms: float
    worst_ever_ms: float
    samples: int


class LoopLag:
    """Measures the loop that it was started on. A sample that comes late by more than a period counts once, for all of
    its lateness: nothing is made up for."""

    def __init__(self, period_s: float = PERIOD_S, tell: Callable[[float], None] | None = None) -> None:
        """`tell` is told every sample, in seconds; it neither waits nor raises."""
        self._period_s = period_s
        self._tell = tell
        self._lags_s: deque[float] = deque(maxlen=KEPT)
        self._samples = 0
        self._worst_ever_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._guard = FAULTS.guard("loop lag")

    def start(self) -> None:
        """Begins to measure. Idempotent."""
        if self._timer is None:
            self._again(asyncio.get_running_loop())

    def close(self) -> None:
        """Stops measuring; what was measured stays. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def statistics(self) -> LoopLagStatistics:
        lags_ms = sorted(1_000 * lag_s for lag_s in self._lags_s) or [0.0]
        return LoopLagStatistics(
            p50_ms=lags_ms[len(lags_ms) // 2],
            p99_ms=lags_ms[min(len(lags_ms) - 1, len(lags_ms) * 99 // 100)],
            worst_ms=lags_ms[-1],
            worst_ever_ms=1_000 * self._worst_ever_s,
            samples=self._samples,
        )

    def usual_s(self) -> float:
        """Returns how late the loop usually is now, in seconds: the median of the last `LATELY` samples; 0 before."""
        if len(self._lags_s) < LATELY:
            return 0.0
        return sorted(islice(reversed(self._lags_s), LATELY))[LATELY // 2]

    def clear(self) -> None:
        """Forgets the samples, for a measurement that begins now; the counts since the start stay."""
        self._lags_s.clear()

    def _again(self, loop: asyncio.AbstractEventLoop) -> None:
        due_s = loop.time() + self._period_s
        self._timer = loop.call_at(due_s, self._wake, loop, due_s)

    def _wake(self, loop: asyncio.AbstractEventLoop, due_s: float) -> None:
        lag_s = max(0.0, loop.time() - due_s)
        self._lags_s.append(lag_s)
        self._samples += 1
        self._worst_ever_s = max(self._worst_ever_s, lag_s)
        self._again(loop)
        if self._tell is not None:
            with self._guard:
                self._tell(lag_s)
