"""Who gets in? `Limiter.acquire` answers at once with a permit or a refusal; every permit ends exactly once.

The place is taken when the permit is given, not when the work is counted at its end: two that arrive at the same
instant cannot both pass a limit of one.
"""

from collections import Counter
from dataclasses import dataclass
from enum import Enum

from orchestrator.clock import US_PER_S
from orchestrator.errors import InvalidState
from orchestrator.flow.concurrency import Limit, Outcome, Sample

RETRY_AT_LEAST_S = 0.1
RETRY_AT_MOST_S = 30.0
_FIRST_GUESS_S = 1.0
_SMOOTHING = 0.1


class RefusalReason(Enum):
    """Why something was not let in; the value is the word in metrics and `Failed.reason`."""

    FULL = "queue_full"
    TENANT = "tenant_limit"
    SHED = "shed"


@dataclass(frozen=True, slots=True)
class Refusal:
    """No room now; `retry_after_s` is when a place is likely to be free, 0 where waiting does not help."""

    retry_after_s: float
    reason: RefusalReason = RefusalReason.FULL


@dataclass(frozen=True, slots=True)
class LimiterStatistics:
    """Counts since the start; `acquired` = `succeeded` + `dropped` + `ignored` + `in_flight`."""

    limit: int
    in_flight: int
    acquired: int
    refused: int
    succeeded: int
    dropped: int
    ignored: int


class Permit:
    """A place inside. It ends exactly once; a second end raises `InvalidState`."""

    __slots__ = ("_answered_us", "_in_flight", "_late", "_limiter", "_outcome", "_started_us")

    def __init__(self, limiter: "Limiter", started_us: int, in_flight: int) -> None:
        self._limiter = limiter
        self._started_us = started_us
        self._in_flight = in_flight
        self._outcome: Outcome | None = None
        self._answered_us: int | None = None
        self._late = False

    @property
    def ended(self) -> bool:
        return self._outcome is not None

    def answered(self, now: int) -> None:
        """The work has begun to give something; that is how long it took, though it keeps its place. Once is enough."""
        if self._answered_us is None:
            self._answered_us = now

    def late(self, now: int) -> None:
        """The work was not done in time: the limit learns that now, not at its end; until then it keeps its place."""
        if self._outcome is None and not self._late:
            self._late = True
            self._limiter._learns(Sample(self._started_us, now, self._in_flight, Outcome.DROPPED))

    def succeeded(self, now: int) -> None:
        """The work was done."""
        self._end(Outcome.SUCCEEDED, now)

    def dropped(self, now: int) -> None:
        """The work was lost to overload: timed out, refused further down, or its worker died."""
        self._end(Outcome.DROPPED, now)

    def ignored(self, now: int) -> None:
        """The work says nothing about capacity: cancelled, or nobody waits for it any more."""
        self._end(Outcome.IGNORED, now)

    def _end(self, outcome: Outcome, now: int) -> None:
        if self._outcome is not None:
            raise InvalidState("permit", self._outcome.value, outcome.value)
        self._outcome = outcome
        ended_us = now
        if outcome is Outcome.SUCCEEDED and self._answered_us is not None:
            ended_us = self._answered_us
        self._limiter._released(outcome, now - self._started_us)
        if not self._late:
            self._limiter._learns(Sample(self._started_us, ended_us, self._in_flight, outcome))


class Limiter:
    """Keeps at most `limit.value` permits open. A limit that falls takes no permit back: it only lets nobody new in."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._in_flight = 0
        self._acquired = 0
        self._refused = 0
        self._ended: Counter[Outcome] = Counter()
        self._stay_s = _FIRST_GUESS_S

    @property
    def in_flight(self) -> int:
        return self._in_flight

    def acquire(self, now: int) -> Permit | Refusal:
        """Returns a permit, or a refusal where the limit is reached. Never waits."""
        limit = self._limit.value
        if self._in_flight >= limit:
            self._refused += 1
            # Places turn over once per stay: on average one comes free every stay / places.
            expected_s = self._stay_s / self._in_flight
            return Refusal(min(max(expected_s, RETRY_AT_LEAST_S), RETRY_AT_MOST_S))
        self._in_flight += 1
        self._acquired += 1
        return Permit(self, now, self._in_flight)

    def statistics(self) -> LimiterStatistics:
        return LimiterStatistics(
            limit=self._limit.value,
            in_flight=self._in_flight,
            acquired=self._acquired,
            refused=self._refused,
            succeeded=self._ended[Outcome.SUCCEEDED],
            dropped=self._ended[Outcome.DROPPED],
            ignored=self._ended[Outcome.IGNORED],
        )

    def _released(self, outcome: Outcome, stay_us: int) -> None:
        self._in_flight -= 1
        self._ended[outcome] += 1
        self._stay_s += _SMOOTHING * (stay_us / US_PER_S - self._stay_s)

    def _learns(self, sample: Sample) -> None:
        self._limit.observe(sample)
