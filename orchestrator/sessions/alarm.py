"""The one timer of a session: it rings at its heart's deadline."""

import asyncio
from collections.abc import Callable

from orchestrator.clock import US_PER_S


class Alarm:
    """Calls `ring` at the deadline that was set, or before it: who finds nothing due sets it again. `now` is in
    microseconds of the session's clock, as deadlines are."""

    def __init__(self, now: Callable[[], int], ring: Callable[[], None]) -> None:
        self._now = now
        self._ring = ring
        self._timer: asyncio.TimerHandle | None = None
        self._at_us = 0

    def set(self, deadline_us: int) -> None:
        """Makes the timer stand at the deadline, or leaves it before."""
        if self._timer is not None:
            if self._at_us <= deadline_us:
                return
            self._timer.cancel()
        delay_s = max(0, deadline_us - self._now()) / US_PER_S
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._due)
        self._at_us = deadline_us

    def close(self) -> None:
        """Rings no more. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()

    def _due(self) -> None:
        self._timer = None
        self._ring()
