"""How fast one link may speak: a leaky bucket (GCRA) for events and one for bytes (a heart)."""

from dataclasses import dataclass

from orchestrator.clock import US_PER_S
from orchestrator.transports.outbox import Closing

TOO_FAST = Closing(1008, "This client has sent too much for too long.")


@dataclass(frozen=True, slots=True)
class Rate:
    """What one link may send. `burst_bytes` may come at once, and as many events as `excess_s` brings; a link that has
    been held back for `excess_s` without a pause is ended."""

    events_per_s: float = 200.0
    bytes_per_s: float = 4_194_304.0
    burst_bytes: int = 31_457_280
    excess_s: float = 10.0


class Pace:
    """One link's. Times are µs of one clock."""

    __slots__ = ("_bytes_due_us", "_events_due_us", "_held_since_us", "_rate")

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._events_due_us = 0.0
        self._bytes_due_us = 0.0
        self._held_since_us: int | None = None

    def take(self, size_bytes: int, now_us: int) -> float:
        """Counts a message that has been read; returns how many seconds its reader is to wait before it reads on."""
        rate = self._rate
        self._events_due_us = max(self._events_due_us, now_us) + US_PER_S / rate.events_per_s
        self._bytes_due_us = max(self._bytes_due_us, now_us) + US_PER_S * size_bytes / rate.bytes_per_s
        events_ahead_us = self._events_due_us - now_us - US_PER_S * rate.excess_s
        bytes_ahead_us = self._bytes_due_us - now_us - US_PER_S * rate.burst_bytes / rate.bytes_per_s
        wait_us = max(0.0, events_ahead_us, bytes_ahead_us)
        if wait_us == 0:
            self._held_since_us = None
        elif self._held_since_us is None:
            self._held_since_us = now_us
        return wait_us / US_PER_S

    def is_over(self, now_us: int) -> bool:
        """Tells whether the link has been held back for so long that it is to end."""
        since_us = self._held_since_us
        return since_us is not None and now_us - since_us >= US_PER_S * self._rate.excess_s
