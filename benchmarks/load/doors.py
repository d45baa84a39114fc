"""Two limits that the server does not have, for comparison: the plain token bucket and the plain sliding window.

Both count answers asked for, of all tenants together, and take the place of the server's own quotas (`TenantLimits`).
"""

from collections import deque
from collections.abc import Mapping
from typing import Protocol

from orchestrator.clock import US_PER_S
from orchestrator.flow.limiter import Refusal, RefusalReason
from orchestrator.flow.tenants import Hold, Quotas, TenantLimits
from orchestrator.flow.token_limiter import Quota, Resource

MOST_IN_WINDOW = 100_000


class Rate(Protocol):
    """How many may come in a while."""

    def take(self, now: int) -> float:
        """Lets one in and returns 0, or returns the seconds after which it may try again."""
        ...


class TokenBucket:
    """`per_s` tokens a second, at most `burst` in hand; each that comes takes one."""

    def __init__(self, per_s: float, burst: float) -> None:
        self._per_s = per_s
        self._burst = burst
        self._tokens = burst
        self._at = 0

    def take(self, now: int) -> float:
        self._tokens = min(self._burst, self._tokens + (now - self._at) / US_PER_S * self._per_s)
        self._at = now
        if self._tokens < 1:
            return (1 - self._tokens) / self._per_s
        self._tokens -= 1
        return 0.0


class SlidingLog:
    """At most `limit` in any `window_us`, by an exact log of when they came."""

    def __init__(self, limit: int, window_us: int) -> None:
        if limit > MOST_IN_WINDOW:
            raise ValueError(f"at most {MOST_IN_WINDOW} in a window, not {limit}")
        self._limit = limit
        self._window_us = window_us
        self._log: deque[int] = deque(maxlen=MOST_IN_WINDOW)

    def take(self, now: int) -> float:
        while self._log and self._log[0] <= now - self._window_us:
            self._log.popleft()
        if len(self._log) >= self._limit:
            return (self._log[0] + self._window_us - now) / US_PER_S
        self._log.append(now)
        return 0.0


_COUNTED: Quotas = {Resource.REQUESTS: Quota(1)}


class Door(TenantLimits):
    """Asks one rate for every answer, whoever wants it; recognition and understanding go through."""

    def __init__(self, rate: Rate) -> None:
        super().__init__({})
        self._rate = rate

    def quotas_of(self, tenant: str, tier: int) -> Quotas:
        """Returns that answers are counted, for whoever looks before it asks."""
        return _COUNTED

    def reserve(
        self, tenant: str, tier: int, needs: Mapping[Resource, int], now: int
    ) -> Hold | Refusal | None:
        if Resource.REQUESTS not in needs:
            return None
        later_s = self._rate.take(now)
        return Refusal(later_s, RefusalReason.TENANT) if later_s else None


def door(name: str, per_s: float) -> Door:
    """Returns the door of a name, for so many answers a second. Raises `ValueError` for another name."""
    match name:
        case "token_bucket":
            return Door(TokenBucket(per_s, burst=per_s))  # a second's worth at once
        case "sliding_window":
            return Door(SlidingLog(max(1, round(per_s)), US_PER_S))
    raise ValueError(f"the study has the doors token_bucket and sliding_window, not {name!r}")
