"""The output logs of all sessions together (heart): how much they hold, and whose goes when it is too much."""

from dataclasses import dataclass

from sortedcontainers import SortedDict


@dataclass(frozen=True, slots=True)
class StoreStatistics:
    """`size` bytes in `sessions` logs, of which `detached` belong to nobody who is there; `cleared` logs so far."""

    size: int
    sessions: int
    detached: int
    cleared: int


class OutputStore:
    """Logs by their session, at most `max_bytes` together as long as there is a log to clear.

    Full means: sessions without a link lose theirs, whoever was left longest ago first. What a link reads from is never
    cleared; it has its own log's bound. Each call takes O(log sessions), and `over` as much again for each that it
    names, however many others were left with nothing in their logs.
    """

    def __init__(self, max_bytes: int) -> None:
        if max_bytes < 1:
            raise ValueError("an output store holds at least one byte")
        self._max_bytes = max_bytes
        self._size = 0
        self._cleared = 0
        self._sizes: dict[str, int] = {}
        self._leavings = 0
        self._left: dict[str, int] = {}
        """When each was left that nobody reads, counted in leavings."""
        self._full: SortedDict[int, str] = SortedDict()
        """Those of them that have something to clear, by when they were left."""

    def grew(self, session: str, delta: int) -> None:
        """A session's log holds `delta` bytes more than when it was last told of, or less."""
        self._sizes[session] = self._sizes.get(session, 0) + delta
        self._size += delta
        self._place(session)

    def attached(self, session: str) -> None:
        """Somebody reads a session's log."""
        when = self._left.pop(session, None)
        if when is not None:
            self._full.pop(when, None)

    def detached(self, session: str) -> None:
        """Nobody reads it any more. It is the last that is cleared."""
        self.attached(session)
        self._leavings += 1
        self._left[session] = self._leavings
        self._place(session)

    def ended(self, session: str) -> None:
        """A session is gone, with its log. Idempotent."""
        self.attached(session)
        self._size -= self._sizes.pop(session, 0)

    def over(self) -> tuple[str, ...]:
        """Returns the sessions whose logs are to be cleared now, and counts them as cleared."""
        named = []
        while self._size > self._max_bytes and self._full:
            _, session = self._full.popitem(0)
            named.append(session)
            self._size -= self._sizes[session]
            self._sizes[session] = 0
        self._cleared += len(named)
        return tuple(named)

    def _place(self, session: str) -> None:
        """Notes whether a session has something to clear."""
        when = self._left.get(session)
        if when is None:
            return
        if self._sizes.get(session, 0) > 0:
            self._full[when] = session
        else:
            self._full.pop(when, None)

    def statistics(self) -> StoreStatistics:
        return StoreStatistics(self._size, len(self._sizes), len(self._left), self._cleared)
