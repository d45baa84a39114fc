"""How many at once? A limit reads samples of finished work and answers with a number; who gets in is the limiter's."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class Outcome(Enum):
    """How a permit ended. SUCCEEDED and DROPPED say something about capacity; IGNORED (cancelled, gone) does not."""

    SUCCEEDED = "succeeded"
    DROPPED = "dropped"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class Sample:
    """One finished piece of work: how long it was inside and how many were inside with it when it entered."""

    started_us: int
    ended_us: int
    in_flight: int
    outcome: Outcome


class Limit(Protocol):
    @property
    def value(self) -> int:
        """How many may be inside now; at least 1."""
        ...

    def observe(self, sample: Sample) -> None:
        """Learns from finished work. A time-out arrives as DROPPED, never as a fast success."""
        ...

    def tick(self, now: int, memory_share: float | None) -> None:
        """Learns what share of its memory the worker has in use; None where nobody knows. Told once a second."""
        ...


class FixedLimit:
    """Stays what it was set to."""

    __slots__ = ("_value",)

    def __init__(self, value: int) -> None:
        if value < 1:
            raise ValueError(f"a limit is at least 1, not {value}")
        self._value = value

    @property
    def value(self) -> int:
        return self._value

    def observe(self, sample: Sample) -> None:
        """Learns nothing."""

    def tick(self, now: int, memory_share: float | None) -> None:
        """Learns nothing."""
