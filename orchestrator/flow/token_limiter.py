"""How much may one tenant use in a while? An amount is reserved before the work and settled after it.

What is counted at the end of the work bounds nothing: whoever asks before then passes. So the estimate is taken at once
(`reserve`) and put right when the true amount is known (`settle`, `refund`), exactly once.

`SlidingWindow` never lets in more than the limit in any window; `Pacer` spreads what it lets in. Both take the time as
an argument and belong to one event loop.
"""

from array import array
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate

from orchestrator.clock import US_PER_S
from orchestrator.errors import InvalidState
from orchestrator.flow.limiter import Refusal, RefusalReason

BUCKETS = 128
"""Into which a window is cut."""

PLACES = 255
"""How finely the newest entry's place within its bucket is kept; what one byte holds."""

_MOST = 2**32 - 1


class Resource(Enum):
    """What is counted: tokens that models of language read and write, sound recognised, answers asked for."""

    LLM_TOKENS = "llm_tokens"
    AUDIO_MS = "audio_ms"
    REQUESTS = "requests"


@dataclass(frozen=True, slots=True)
class Quota:
    """At most `limit` in any `window_us`; with a `burst` below the limit, at most that many at once and the rest at the
    pace of the limit."""

    limit: int
    window_us: int = 60 * US_PER_S
    burst: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.limit < _MOST:
            raise ValueError(f"a quota is 1 to {_MOST - 1}, not {self.limit}")
        if self.window_us < BUCKETS:
            raise ValueError(f"a window is at least {BUCKETS} µs, not {self.window_us}")
        if self.burst is not None and not 1 <= self.burst <= self.limit:
            raise ValueError(f"a burst is 1 to the limit of {self.limit}, not {self.burst}")

    @property
    def at_once(self) -> int:
        """The largest amount that is ever let in."""
        return self.limit if self.burst is None else self.burst


class SlidingWindow:
    """Sums what was let in over the last window, in constant memory.

    The window is cut into `BUCKETS`; a bucket counts whole until its newest entry has left the window. That errs to one
    side only: the sum is never below that of an exact log, hence never over the limit in any window ``(t - W, t]``. An
    entry counts too long by at most one bucket, W/128 = 0.78 % of the window, for even traffic. The newest entry's
    place within its bucket is kept as well, rounded up to 1/255 of it: without it a burst that comes once per window
    would be refused every second time; with it such a burst counts W/32,640 too long.
    """

    __slots__ = ("_newest", "_now", "_oldest", "_places", "_size_us", "_sums", "_window_us", "total")

    def __init__(self, window_us: int) -> None:
        self._window_us = window_us
        self._size_us = -(-window_us // BUCKETS)
        self._sums = array("I", bytes(4 * (BUCKETS + 1)))
        self._places = bytearray(BUCKETS + 1)
        self._oldest = 0  # number of the oldest bucket that may hold something
        self._newest = -1
        self._now = 0
        self.total = 0
        """What the last window holds, as of the last `advance`."""

    def advance(self, now: int) -> None:
        """Forgets what has left the window."""
        self._now = now
        ring, size_us, places = BUCKETS + 1, self._size_us, self._places
        oldest = self._oldest
        while oldest <= self._newest:
            at = oldest % ring
            newest_us = oldest * size_us + -(-places[at] * size_us // PLACES)
            if newest_us + self._window_us > now:
                break
            self.total -= self._sums[at]
            self._sums[at] = places[at] = 0
            oldest += 1
        self._oldest = oldest

    def add(self, amount: int) -> int:
        """Counts an amount as of the last `advance`; returns the bucket that it is in."""
        size_us = self._size_us
        bucket, into_us = divmod(self._now, size_us)
        if bucket > self._newest:
            if self._newest < self._oldest:
                self._oldest = bucket
            self._newest = bucket
        at = bucket % (BUCKETS + 1)
        amount = min(amount, _MOST - self._sums[at])
        self._sums[at] += amount
        self._places[at] = -(-into_us * PLACES // size_us)
        self.total += amount
        return bucket

    def take_back(self, bucket: int, amount: int) -> None:
        """Takes out of a bucket what was added to it, unless it has left the window."""
        if bucket >= self._oldest:
            self._sums[bucket % (BUCKETS + 1)] -= amount
            self.total -= amount

    def free_in_us(self, amount: int) -> int:
        """Returns in how long so much will have left, as of the last `advance`; 0 for nothing."""
        buckets = range(self._oldest, self._newest + 1) if amount > 0 else range(0)
        for bucket, left in zip(
            buckets, accumulate(self._sums[one % (BUCKETS + 1)] for one in buckets), strict=True
        ):
            if left >= amount:
                place = self._places[bucket % (BUCKETS + 1)]
                newest_us = bucket * self._size_us + -(-place * self._size_us // PLACES)
                return newest_us + self._window_us - self._now
        return 0


class Pacer:
    """A leaky bucket as one number (GCRA, ITU-T I.371): the time at which it will be empty, in µs · limit.

    It holds at most `burst` and drains `limit` per window. With ``burst = limit`` it refuses nothing that the window
    admits: its level is the highest ``A(s, t] - (t - s) · L/W`` over all starts s, A being what came in. For a start
    within the last window that is at most the window's sum; for an earlier one it is the level of one window ago, which
    was at most L, plus the window's sum, minus the L that drained since. So `TokenLimiter` has one only for smaller
    bursts.
    """

    __slots__ = ("_depth", "_empty", "_limit", "_window_us")

    def __init__(self, limit: int, window_us: int, burst: int) -> None:
        self._limit = limit
        self._window_us = window_us
        self._depth = burst * window_us
        self._empty = 0

    def holds(self, amount: int) -> bool:
        """Says whether so much fits into the empty bucket."""
        return amount * self._window_us <= self._depth

    def is_empty(self, now: int) -> bool:
        return self._empty <= now * self._limit

    def wait_us(self, amount: int, now: int) -> int:
        """Returns in how long there is room for so much; 0 for now."""
        start = now * self._limit
        over = max(self._empty, start) - start + amount * self._window_us - self._depth
        return max(0, -(-over // self._limit))

    def add(self, amount: int, now: int) -> None:
        """Puts an amount in, whether there is room or not."""
        self._empty = max(self._empty, now * self._limit) + amount * self._window_us

    def take_back(self, amount: int, added_us: int, now: int) -> None:
        """Takes out what is left of an amount that was put in at `added_us` by mistake.

        What has drained since might have been this: it is gone. (Taken back whole, it would make room that a bucket
        which never held it does not have.)
        """
        self._empty -= max(0, amount * self._window_us - (now - added_us) * self._limit)


class TokenLimiter:
    """One tenant's use of one resource: at most the quota in any window."""

    __slots__ = ("_last_us", "_limit", "_pacer", "_window", "open")

    def __init__(self, quota: Quota) -> None:
        self._limit = quota.limit
        self._window = SlidingWindow(quota.window_us)
        paced = quota.burst is not None and quota.burst < quota.limit
        self._pacer = Pacer(quota.limit, quota.window_us, quota.burst) if paced and quota.burst else None
        self._last_us = 0
        self.open = 0
        """Reservations that have not ended."""

    @property
    def used(self) -> int:
        """What the window held when it was last looked at."""
        return self._window.total

    def left(self, now: int) -> tuple[int, int]:
        """Returns how much is left of the quota, and in how long (µs) all of it is there again."""
        self._window.advance(max(now, self._last_us))
        used = self._window.total
        return max(0, self._limit - used), self._window.free_in_us(used)

    def reserve(self, amount: int, now: int) -> "Reservation | Refusal":
        """Takes an amount, or says when there will be room for it: 0 s where it is more than the quota ever gives.

        Never waits. A clock that goes back is taken to stand still.
        """
        now = self._last_us = max(now, self._last_us)
        window, pacer = self._window, self._pacer
        window.advance(now)
        wait_us = pacer.wait_us(amount, now) if pacer is not None else 0
        if window.total + amount > self._limit or wait_us:
            return self._refusal(amount, wait_us)
        if pacer is not None:
            pacer.add(amount, now)
        self.open += 1
        return Reservation(self, amount, window.add(amount), now)

    def _refusal(self, amount: int, wait_us: int) -> Refusal:
        if amount > self._limit or (self._pacer is not None and not self._pacer.holds(amount)):
            return Refusal(0.0, RefusalReason.TENANT)
        wait_us = max(wait_us, self._window.free_in_us(self._window.total + amount - self._limit))
        return Refusal(wait_us / US_PER_S, RefusalReason.TENANT)

    def is_new(self, now: int) -> bool:
        """Says whether this limiter cannot be told from a new one: nothing in the window, nothing open."""
        self._window.advance(max(now, self._last_us))
        drained = self._pacer is None or self._pacer.is_empty(now)
        return drained and not self._window.total and not self.open

    def _ended(self, reservation: "Reservation", used: int, now: int) -> None:
        now = self._last_us = max(now, self._last_us)
        self.open -= 1
        self._window.advance(now)
        rest = reservation.amount - used
        if rest > 0:
            self._window.take_back(reservation.bucket, rest)
            if self._pacer is not None:
                self._pacer.take_back(rest, reservation.since_us, now)
        elif rest < 0:
            # It was used already: it counts from now on and may lift the sum above the limit until it has left.
            self._window.add(-rest)
            if self._pacer is not None:
                self._pacer.add(-rest, now)


class Reservation:
    """An amount that was taken. It ends exactly once: a second end raises `InvalidState`.

    It stands in the window in which it was made and leaves with it, however long the work takes; what is used beyond it
    counts from when it is settled.
    """

    __slots__ = ("_limiter", "amount", "bucket", "ended", "since_us")

    def __init__(self, limiter: TokenLimiter, amount: int, bucket: int, since_us: int) -> None:
        self._limiter = limiter
        self.amount = amount
        self.bucket = bucket
        self.since_us = since_us
        self.ended = False

    def settle(self, used: int, now: int) -> None:
        """The work is done and used so much."""
        if self.ended:
            raise InvalidState("reservation", "ended", f"settle({used})")
        if used < 0:
            raise ValueError(f"used {used}")
        self.ended = True
        self._limiter._ended(self, used, now)

    def refund(self, now: int) -> None:
        """The work did not happen."""
        self.settle(0, now)
