"""How fast one link may speak: a leaky bucket (GCRA) for events and one for bytes (a heart).

Requests have no link that could be read more slowly: who has sent too much in them is told when to come back.
"""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from orchestrator.clock import US_PER_S
from orchestrator.errors import Overloaded
from orchestrator.sessions.links import SessionPort
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

    def take(self, size_bytes: int, now_us: int, events: int = 1) -> float:
        """Counts a message that has been read; returns how many seconds its reader is to wait before it reads on."""
        rate = self._rate
        self._events_due_us = max(self._events_due_us, now_us) + US_PER_S * events / rate.events_per_s
        self._bytes_due_us = max(self._bytes_due_us, now_us) + US_PER_S * size_bytes / rate.bytes_per_s
        wait_s = self.wait_s(now_us)
        if wait_s == 0:
            self._held_since_us = None
        elif self._held_since_us is None:
            self._held_since_us = now_us
        return wait_s

    def wait_s(self, now_us: int) -> float:
        """Returns for how many seconds nothing more is to come, by what was counted up to now."""
        rate = self._rate
        events_ahead_us = self._events_due_us - now_us - US_PER_S * rate.excess_s
        bytes_ahead_us = self._bytes_due_us - now_us - US_PER_S * rate.burst_bytes / rate.bytes_per_s
        return max(0.0, events_ahead_us, bytes_ahead_us) / US_PER_S

    def is_over(self, now_us: int) -> bool:
        """Tells whether the link has been held back for so long that it is to end."""
        since_us = self._held_since_us
        return since_us is not None and now_us - since_us >= US_PER_S * self._rate.excess_s


class Paces:
    """How fast requests may speak to each session, whoever sends them: one `Pace` for each session that was spoken to,
    for as long as it lives. A request may overrun the rate, the one behind it waits for that."""

    def __init__(self, rate: Rate | None) -> None:
        """`rate` None is no bound."""
        self._rate = rate
        self._paces: WeakKeyDictionary[SessionPort, Pace] = WeakKeyDictionary()

    def __len__(self) -> int:
        return len(self._paces)

    def check(self, session: SessionPort, now_us: int) -> None:
        """Raises `Overloaded` where so much has come that nothing more of it is to be read yet."""
        pace = self._paces.get(session)
        wait_s = 0.0 if pace is None else pace.wait_s(now_us)
        if wait_s > 0:
            raise Overloaded("this session has been sent too much", wait_s, is_tenant=True)

    def take(self, session: SessionPort, events: int, size_bytes: int, now_us: int) -> None:
        """Counts what a request brings. Raises as `check`, and counts nothing then."""
        self.check(session, now_us)
        if self._rate is None:
            return
        pace = self._paces.get(session)
        if pace is None:
            pace = self._paces[session] = Pace(self._rate)
        pace.take(size_bytes, now_us, events)
