"""The rules of keeping a worker process alive: when it counts as silent, and how long to wait before the next try."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from orchestrator.clock import seconds


@dataclass(frozen=True, slots=True)
class Supervision:
    """The times of one worker's life. A worker beats `BEATS_PER_SILENCE` times within `silence_s`.

    `silence_s`: a ready worker that says nothing for so long is killed. `load_s`: the longest start. `stuck_s`: how
    long a cancelled or expired job may hold its slot before the worker is killed for it. `steady_s`: a worker that has
    been ready for so long begins its back-off anew. `drain_s`, `terminate_s`: how long a stop waits for running jobs,
    and then for the process to end by itself.
    """

    silence_s: float = 3.0
    load_s: float = 180.0
    stuck_s: float = 30.0
    backoff_first_s: float = 0.2
    backoff_limit_s: float = 10.0
    steady_s: float = 30.0
    drain_s: float = 5.0
    terminate_s: float = 2.0


BEATS_PER_SILENCE = 6


class Phase(Enum):
    """Where a worker process is in its life."""

    STARTING = "starting"
    LOADING = "loading"
    READY = "ready"
    WAITING = "waiting to be started again"
    BROKEN = "cannot start"
    STOPPED = "stopped"


class PhaseEvent(Enum):
    CONFIGURED = "took its configuration"
    PROBED = "did its first job"
    LOST = "died, fell silent or could not start"
    REFUSED = "cannot start until something changes"
    RETRIED = "waited long enough"
    STOPPED = "stop"


PHASES: Mapping[tuple[Phase, PhaseEvent], Phase] = {
    (Phase.STARTING, PhaseEvent.CONFIGURED): Phase.LOADING,
    (Phase.STARTING, PhaseEvent.LOST): Phase.WAITING,
    (Phase.STARTING, PhaseEvent.STOPPED): Phase.STOPPED,
    (Phase.LOADING, PhaseEvent.PROBED): Phase.READY,
    (Phase.LOADING, PhaseEvent.LOST): Phase.WAITING,
    (Phase.LOADING, PhaseEvent.REFUSED): Phase.BROKEN,
    (Phase.LOADING, PhaseEvent.STOPPED): Phase.STOPPED,
    (Phase.READY, PhaseEvent.LOST): Phase.WAITING,
    (Phase.READY, PhaseEvent.STOPPED): Phase.STOPPED,
    (Phase.WAITING, PhaseEvent.RETRIED): Phase.STARTING,
    (Phase.WAITING, PhaseEvent.STOPPED): Phase.STOPPED,
    (Phase.BROKEN, PhaseEvent.STOPPED): Phase.STOPPED,
    (Phase.STOPPED, PhaseEvent.STOPPED): Phase.STOPPED,
}


class Pulse:
    """Says when a worker has been silent for too long, in time during which somebody was listening.

    A server that was itself held up (a loaded machine, a debugger) must not take its own absence for the worker's
    silence: between two checks at most two intervals count.
    """

    __slots__ = ("_checked_us", "_interval_us", "_limit_us", "_silent_us")

    def __init__(self, silence_s: float, interval_s: float, now: int) -> None:
        self._limit_us = seconds(silence_s)
        self._interval_us = seconds(interval_s)
        self._checked_us = now
        self._silent_us = 0

    def heard(self) -> None:
        """The worker said something."""
        self._silent_us = 0

    def is_silent(self, now: int) -> bool:
        """Adds the time since the last check; call it every interval."""
        self._silent_us += min(now - self._checked_us, 2 * self._interval_us)
        self._checked_us = now
        return self._silent_us >= self._limit_us


class Backoff:
    """The wait before the next start: doubles with every life that was not steady."""

    __slots__ = ("_first_s", "_limit_s", "_next_s", "_steady_us")

    def __init__(self, first_s: float, limit_s: float, steady_s: float) -> None:
        self._first_s = first_s
        self._limit_s = limit_s
        self._steady_us = seconds(steady_s)
        self._next_s = first_s

    def after(self, ready_for_us: int) -> float:
        """Returns the wait in seconds after a life that was ready for so long (0: never)."""
        if ready_for_us >= self._steady_us:
            self._next_s = self._first_s
        wait_s = self._next_s
        self._next_s = min(2 * self._next_s, self._limit_s)
        return wait_s
