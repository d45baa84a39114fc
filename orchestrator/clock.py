"""Time as a value: integer microseconds from one monotonic clock (design §4)."""

import time
from typing import Protocol

US_PER_MS = 1_000
US_PER_S = 1_000_000


class Clock(Protocol):
    """Where shells read the time that they pass to hearts."""

    def now_us(self) -> int:
        """Returns monotonic microseconds; the origin is arbitrary but fixed for the process."""
        ...


class MonotonicClock:
    """Reads ``time.monotonic_ns``."""

    def now_us(self) -> int:
        return time.monotonic_ns() // 1_000


def ms(value_ms: float) -> int:
    """Converts milliseconds to integer microseconds."""
    return int(value_ms * US_PER_MS)


def seconds(value_s: float) -> int:
    """Converts seconds to integer microseconds."""
    return int(value_s * US_PER_S)
