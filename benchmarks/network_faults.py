"""What a bad network does to datagrams (heart): lost, late, out of order, twice, queued; the same for the same seed."""

import random
from dataclasses import dataclass

UDP_HEADERS = 28
"""Bytes of IPv4 and UDP around a payload; they count where a line has a rate."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """One direction of a line.

    `loss`: share of datagrams lost; each on its own, or `burst` at a time on average (Gilbert's model). `delay_s`, and
    up to `jitter_s` more, in order; a share `swapped` of them is held `swap_s` longer and so passed by others. A share
    `doubled` comes a second time, `double_s` later. `rate`: bytes per second, with at most `queue_s` waiting, else
    unlimited.
    """

    loss: float = 0.0
    burst: float | None = None
    delay_s: float = 0.0
    jitter_s: float = 0.0
    swapped: float = 0.0
    swap_s: float = 0.045
    doubled: float = 0.0
    double_s: float = 0.01
    rate: float | None = None
    queue_s: float = 0.2


CLEAR = Conditions()
CUT = Conditions(loss=1.0)
"""An outage."""


@dataclass(frozen=True, slots=True)
class LineStatistics:
    """Datagrams counted; `dropped` did not fit into the queue of a line with a rate."""

    sent: int
    lost: int
    swapped: int
    doubled: int
    dropped: int


class Line:
    """Decides when, and whether, each datagram arrives. `conditions` may be exchanged at any time."""

    def __init__(self, seed: int, conditions: Conditions = CLEAR) -> None:
        self.conditions = conditions
        self._chance = random.Random(seed)
        self._in_burst = False
        self._last_s = self._free_s = 0.0
        self._sent = self._lost = self._swapped = self._doubled = self._dropped = 0

    def carry(self, size: int, now_s: float) -> tuple[float, ...]:
        """Returns the times at which a datagram of `size` bytes, sent now, arrives: none, one or two."""
        self._sent += 1
        if self._is_lost():
            self._lost += 1
            return ()
        sent_s = self._through_queue(size + UDP_HEADERS, now_s)
        if sent_s is None:
            self._dropped += 1
            return ()
        had, draw = self.conditions, self._chance.random
        arrives_s = max(self._last_s, sent_s + had.delay_s + draw() * had.jitter_s)
        if draw() < had.swapped:
            self._swapped += 1
            arrives_s += had.swap_s
        else:
            self._last_s = arrives_s
        if draw() < had.doubled:
            self._doubled += 1
            return arrives_s, arrives_s + had.double_s
        return (arrives_s,)

    def statistics(self) -> LineStatistics:
        """Returns the counters."""
        return LineStatistics(self._sent, self._lost, self._swapped, self._doubled, self._dropped)

    def _is_lost(self) -> bool:
        """Two states: within a burst everything is lost, and it ends after `burst` datagrams on average."""
        loss, burst, draw = self.conditions.loss, self.conditions.burst, self._chance.random()
        if burst is None or loss >= 1:
            return draw < loss
        begins = loss / (burst * (1 - loss))
        self._in_burst = draw >= 1 / burst if self._in_burst else draw < begins
        return self._in_burst

    def _through_queue(self, size: int, now_s: float) -> float | None:
        rate = self.conditions.rate
        if rate is None:
            return now_s
        begins_s = max(now_s, self._free_s)
        if begins_s - now_s > self.conditions.queue_s:
            return None
        self._free_s = begins_s + size / rate
        return self._free_s
