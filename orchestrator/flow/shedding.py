"""What is left out when there is too much to do, and in which order: drafts, then the speech of replies, then turns of
the lowest tier, then new sessions."""

from dataclasses import dataclass
from enum import IntEnum
from math import exp

from orchestrator.clock import ms, seconds

ENTER = (0.5, 0.7, 0.85, 0.95)
"""Pressure from which on drafts, speech, silver turns and new sessions are left out."""

LEAVE_BELOW = 0.1
"""A level is left where the pressure is so much below where it was entered."""

DWELL_US = seconds(2)
"""A level lasts at least so long; the next lower one follows no sooner."""

SMOOTHING_US = ms(500)

DEGRADED_REPLY_TOKENS = 60
DEGRADED_LIMITS = 0.7

LAG_AT_FULL_S = 0.1
"""An event loop that is usually so late is full, whatever the queues hold: every second timer is; a single stall is no
overload."""


class Sheddable(IntEnum):
    """What can be left out; what has the lower number is left out first."""

    DRAFT = 1
    SPEECH = 2
    SILVER_TURN = 3
    SESSION = 4


@dataclass(frozen=True, slots=True)
class Service:
    """What is served now: everything numbered up to `level` is left out. `degraded`: too many turns failed."""

    level: int = 0
    degraded: bool = False
    max_reply_tokens: int | None = None
    limit_factor: float = 1.0

    def allows(self, what: Sheddable) -> bool:
        """Says whether something is served. A turn of the lowest tier that is not is still let in while few wait."""
        return what > self.level


FULL_SERVICE = Service()


class Shedding:
    """Turns pressure (0 nothing waits, 1 as much as may) into a `Service`, without flapping.

    A level is entered as soon as the smoothed pressure (0.5 s) reaches its threshold, and left one at a time: after
    `DWELL_US` on it, where the pressure is `LEAVE_BELOW` under that threshold. While the server is degraded drafts and
    speech are left out, replies are short and workers take fewer jobs at once.
    """

    def __init__(self) -> None:
        self._pressure = 0.0
        self._level = 0
        self._entered_us = 0
        self._since_us: int | None = None
        self._seen_us: int | None = None
        self._service = FULL_SERVICE

    @property
    def service(self) -> Service:
        """What is served as of the last look."""
        return self._service

    @property
    def pressure(self) -> float:
        """The smoothed pressure."""
        return self._pressure

    @property
    def since_us(self) -> int | None:
        """When the service became what it is; None: it never was another."""
        return self._since_us

    def observe(self, pressure: float, degraded: bool, now: int) -> bool:
        """Looks at how things are; returns whether the service is another than before."""
        if self._seen_us is None:
            self._pressure = pressure
        else:
            weight = 1.0 - exp(-(now - self._seen_us) / SMOOTHING_US)
            self._pressure += weight * (pressure - self._pressure)
        self._seen_us = now
        self._level = self._next_level(now)
        service = _service(self._level, degraded)
        if service == self._service:
            return False
        self._service, self._since_us = service, now
        return True

    def _next_level(self, now: int) -> int:
        entered = sum(self._pressure >= threshold for threshold in ENTER)
        if entered >= self._level:
            if entered > self._level:
                self._entered_us = now
            return entered
        stays = self._pressure > ENTER[self._level - 1] - LEAVE_BELOW
        if stays or now - self._entered_us < DWELL_US:
            return self._level
        self._entered_us = now
        return self._level - 1


def _service(level: int, degraded: bool) -> Service:
    if not degraded:
        return Service(level)
    return Service(max(level, Sheddable.SPEECH), True, DEGRADED_REPLY_TOKENS, DEGRADED_LIMITS)
