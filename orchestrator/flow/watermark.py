"""How many jobs of one kind may wait? A fixed share of the room, or as many as leave in the time that they may wait."""

from collections.abc import Sequence
from math import exp
from typing import Protocol

from orchestrator.clock import US_PER_S, ms

DEFAULT_SHARE = 0.85
"""Of the room for waiting jobs, where nothing is known about how fast they leave."""

WAIT_BOUNDS_US = (ms(120), ms(300), ms(800))
"""How long jobs of platinum, gold and silver may wait for a worker."""

LEAST_WAITING = 16
"""Of one kind may wait whatever the rate says: a handful of users who ask at once is no overload."""

STEP_US = ms(500)
"""How often the gain is set again."""

_SPANS = 4
"""Waits are remembered for so many steps: two seconds."""

_GAIN = 0.2
_LEAST_GAIN, _MOST_GAIN = 0.5, 2.0
_BINDING = 0.7
_RATE_SPAN_US = US_PER_S
_KNOWN_FROM_US = ms(200)
_PERCENTILE = 0.99


class Watermark(Protocol):
    """The mark of the waiting jobs of one kind. Times are microseconds and never go back."""

    def mark(self, now: int) -> int:
        """Returns how many jobs may wait; at least 1."""
        ...

    def waiting(self, jobs: int, now: int) -> None:
        """So many jobs wait from now on."""
        ...

    def started(self, waited_us: int, now: int) -> None:
        """A job went to a worker after so long."""
        ...

    def finished(self, served: int, now: int) -> None:
        """So many jobs left their workers with a result."""
        ...


class FixedWatermark:
    """A share of the room, whatever happens."""

    __slots__ = ("_mark",)

    def __init__(self, capacity: int, share: float = DEFAULT_SHARE) -> None:
        if capacity < 1 or not 0 < share <= 1:
            raise ValueError(f"a mark is a share of at least one place, not {share} of {capacity}")
        self._mark = max(1, int(capacity * share))

    def mark(self, now: int) -> int:
        return self._mark

    def waiting(self, jobs: int, now: int) -> None:
        """Learns nothing."""

    def started(self, waited_us: int, now: int) -> None:
        """Learns nothing."""

    def finished(self, served: int, now: int) -> None:
        """Learns nothing."""


class AdaptiveWatermark:
    """Follows the drain rate so that the longest waits come to `target_us` (T).

    ``mark = clamp(g · μ · T, floor, C)``. C is the room, μ the rate at which jobs leave while others wait (finished
    per busy time, over the last second of it; without waiting jobs a rate says nothing about what could be done), and

        ``g ← clip(g · (1 + k · (T − p99) / T), 0.5, 2)`` every 500 ms, k = 0.2,

    with the p99 of the waits of the last 2 s. The gain makes good what the rate alone misjudges: riders of batches,
    jobs that are withdrawn, levels that wait for others. It rises only while the mark binds (the queue came to 70 % of
    it), else a quiet hour would let in twice too many; without waits it goes back to 1.

    Stability: the last to be let in waits ``g · μ̂ · T / μ``. With g* the gain at which that is T and ``x = g / g*`` one
    step is ``x' = x · (1 + k · (1 − x))``: its slope at 1 is ``1 − k``, so it settles without overshoot for 0 < k < 1.
    Where the measured p99 is d steps old it is stable for ``k < 2 · sin(π / (2 · (2d + 1)))``, 0.35 at d = 4: k = 0.2
    leaves room. Until enough is known the mark is the fixed one.
    """

    __slots__ = (
        "_busy_since", "_busy_us", "_capacity", "_floor", "_gain", "_left", "_mark", "_next_step_us", "_peak",
        "_target_us", "_waiting", "_waits",
    )  # fmt: skip

    def __init__(
        self, capacity: int, target_us: int, floor: int = LEAST_WAITING, share: float = DEFAULT_SHARE
    ) -> None:
        """`floor` counts jobs; where the share is fewer, that is."""
        if min(capacity, target_us, floor) < 1 or not 0 < share <= 1:
            raise ValueError(f"no mark for {capacity} places, {target_us} µs, from {floor}, {share}")
        self._capacity = capacity
        self._target_us = target_us
        self._gain = 1.0
        self._mark = max(1, int(capacity * share))
        self._floor = min(floor, self._mark)
        self._waits = RecentWaits(_SPANS)
        self._waiting = 0
        self._peak = 0
        self._left = 0.0
        self._busy_us = 0.0
        self._busy_since: int | None = None
        self._next_step_us: int | None = None

    @property
    def gain(self) -> float:
        """What the rate is multiplied with; 1 where it predicts the waits."""
        return self._gain

    @property
    def rate(self) -> float | None:
        """Jobs that leave in a second while others wait; None where too little was seen."""
        return None if self._busy_us < _KNOWN_FROM_US else self._left * US_PER_S / self._busy_us

    def mark(self, now: int) -> int:
        self._advance(now)
        return self._mark

    def waiting(self, jobs: int, now: int) -> None:
        self._advance(now)
        self._waiting = jobs
        self._peak = max(self._peak, jobs)
        if not jobs:
            self._busy_since = None
        elif self._busy_since is None:
            self._busy_since = now

    def started(self, waited_us: int, now: int) -> None:
        self._waits.add(max(0, waited_us))

    def finished(self, served: int, now: int) -> None:
        if self._busy_since is not None:
            self._left += served

    def _advance(self, now: int) -> None:
        if self._next_step_us is None:
            self._next_step_us = now + STEP_US
        if self._busy_since is not None and now > self._busy_since:
            busy_us = now - self._busy_since
            self._busy_since = now
            kept = exp(-busy_us / _RATE_SPAN_US)
            # What finished since the last look counts whole: it is part of the time that is added with it.
            self._left *= kept
            self._busy_us = self._busy_us * kept + busy_us
        while now >= self._next_step_us:
            self._step()
            behind = (now - self._next_step_us) // STEP_US
            # After a long silence there is nothing to be learnt step by step: the waits are forgotten and g is 1.
            if behind > _SPANS:
                self._next_step_us += behind * STEP_US
                self._gain = 1.0
                self._waits.forget()
            self._next_step_us += STEP_US
        rate = self.rate
        if rate is not None:
            wanted = int(self._gain * rate * self._target_us / US_PER_S)
            self._mark = min(max(wanted, self._floor), self._capacity)

    def _step(self) -> None:
        worst_us = self._waits.percentile(_PERCENTILE)
        if worst_us is None:
            self._gain += _GAIN * (1.0 - self._gain)
        else:
            change = _GAIN * (self._target_us - worst_us) / self._target_us
            if change < 0 or self._peak >= _BINDING * self._mark:
                self._gain = min(max(self._gain * (1 + max(change, -0.5)), _LEAST_GAIN), _MOST_GAIN)
        self._waits.turn()
        self._peak = self._waiting


_FIRST_BITS = 3


class RecentWaits:
    """Waits of the last spans in buckets an eighth apart: some 2 KB whatever comes, percentiles to 12.5 % above."""

    __slots__ = ("_at", "_spans", "_total")

    _BUCKETS = 30 << _FIRST_BITS

    def __init__(self, spans: int) -> None:
        self._spans: list[list[int]] = [[0] * self._BUCKETS for _ in range(spans)]
        self._at = 0
        self._total = 0

    def add(self, wait_us: int) -> None:
        """Counts one wait in the span that runs."""
        self._spans[self._at][_bucket(wait_us, self._BUCKETS)] += 1
        self._total += 1

    def turn(self) -> None:
        """The span is over; the oldest one is forgotten."""
        self._at = (self._at + 1) % len(self._spans)
        gone = self._spans[self._at]
        if any(gone):
            self._total -= sum(gone)
            gone[:] = [0] * self._BUCKETS

    def forget(self) -> None:
        """Forgets everything."""
        for span in self._spans:
            span[:] = [0] * self._BUCKETS
        self._total = 0

    def percentile(self, share: float) -> int | None:
        """Returns a wait that `share` of all are not longer than; None where there was none."""
        if not self._total:
            return None
        left = share * self._total
        for bucket, counts in enumerate(zip(*self._spans, strict=True)):
            left -= sum(counts)
            if left <= 0:
                return _upper_us(bucket)
        return _upper_us(self._BUCKETS - 1)


def _bucket(wait_us: int, buckets: int) -> int:
    """Returns the number of the bucket: eight to each doubling, the first eight one microsecond wide."""
    if wait_us < 1 << _FIRST_BITS:
        return wait_us
    doubling = wait_us.bit_length() - 1 - _FIRST_BITS
    return min(((doubling + 1) << _FIRST_BITS) + (wait_us >> doubling) - (1 << _FIRST_BITS), buckets - 1)


def _upper_us(bucket: int) -> int:
    """Returns the longest wait of a bucket."""
    if bucket < 1 << _FIRST_BITS:
        return bucket
    doubling = (bucket >> _FIRST_BITS) - 1
    return (((bucket & ((1 << _FIRST_BITS) - 1)) + (1 << _FIRST_BITS) + 1) << doubling) - 1


def target_us(bounds_us: Sequence[int] = WAIT_BOUNDS_US) -> int:
    """Returns what the waits of all tiers together are to come to: 0.8 of the longest bound."""
    return int(0.8 * max(bounds_us))
