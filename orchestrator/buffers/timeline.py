"""Where a position on a link's sound stream lies on the session clock (design §4).

The offset between the two is `arrival − position`. For a paced source (RTP) network delay only ever adds to it, so the
smallest offset within a sliding window is the best estimate, and following the window follows the drift of the
sender's clock: at 100 ppm and 30 s the estimate is off by 3 ms at most. A source that may run ahead of real time
(WebSocket) has no such law: there its newest chunk ends at its arrival.
"""

from collections import deque

from orchestrator.clock import US_PER_S

SAMPLE_RATE_HZ = 16_000


def position_us(position: int) -> int:
    """Converts a 16 kHz sample position to microseconds since the stream's first sample."""
    return position * US_PER_S // SAMPLE_RATE_HZ


class Timeline:
    """Maps stream positions to session time. Memory is bounded by the window over the bucket length."""

    __slots__ = ("_bucket_us", "_minima", "_offset", "_window_us")

    def __init__(self, window_us: int = 30 * US_PER_S, bucket_us: int = US_PER_S) -> None:
        self._window_us = window_us
        self._bucket_us = bucket_us
        self._minima: deque[tuple[int, int]] = deque(maxlen=window_us // bucket_us + 2)
        self._offset = 0

    def note(self, stop: int, at_us: int, live: bool) -> None:
        """Sound up to position `stop` had arrived at `at_us`."""
        offset = at_us - position_us(stop)
        if not live:
            self._minima.clear()
            self._offset = offset
            return
        if self._minima and at_us - self._minima[-1][0] < self._bucket_us:
            start, least = self._minima.pop()
            self._minima.append((start, min(least, offset)))
        else:
            self._minima.append((at_us, offset))
        while at_us - self._minima[0][0] > self._window_us:
            self._minima.popleft()
        self._offset = min(least for _, least in self._minima)

    def at(self, position: int) -> int:
        """Returns the session time at which the sample at `position` was spoken; never negative."""
        return max(0, position_us(position) + self._offset)
