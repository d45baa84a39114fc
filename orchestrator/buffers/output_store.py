"""The output logs of all sessions together (heart): how much they hold, and whose goes when it is too much."""

from collections import OrderedDict
from dataclasses import dataclass


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
    cleared; it has its own log's bound. Each call takes constant time; `over`, where there is too much, walks past
    those left earlier whose logs are empty.
    """

    def __init__(self, max_bytes: int) -> None:
        if max_bytes < 1:
            raise ValueError("an output store holds at least one byte")
        self._max_bytes = max_bytes
        self._size = 0
        self._cleared = 0
        self._sizes: dict[str, int] = {}
        self._detached: OrderedDict[str, None] = OrderedDict()

    def grew(self, session: str, delta: int) -> None:
        """A session's log holds `delta` bytes more than when it was last told of, or less."""
        self._sizes[session] = self._sizes.get(session, 0) + delta
        self._size += delta

    def attached(self, session: str) -> None:
        """Somebody reads a session's log."""
        self._detached.pop(session, None)

    def detached(self, session: str) -> None:
        """Nobody reads it any more. It is the last that is cleared."""
        self._detached[session] = None
        self._detached.move_to_end(session)

    def ended(self, session: str) -> None:
        """A session is gone, with its log. Idempotent."""
        self._size -= self._sizes.pop(session, 0)
        self._detached.pop(session, None)

    def over(self) -> tuple[str, ...]:
        """Returns the sessions whose logs are to be cleared now, and counts them as cleared."""
        if self._size <= self._max_bytes:
            return ()
        named = []
        for session in self._detached:
            size = self._sizes.get(session, 0)
            if size > 0:
                named.append(session)
                self._size -= size
                self._sizes[session] = 0
                if self._size <= self._max_bytes:
                    break
        self._cleared += len(named)
        return tuple(named)

    def statistics(self) -> StoreStatistics:
        return StoreStatistics(self._size, len(self._sizes), len(self._detached), self._cleared)
