"""A session's numbered output: what links read from, each with a cursor of its own."""

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


class Dropped(LookupError):
    """Entries after the cursor are no longer held; `first_available` is the number of the oldest one that is (or of
    the next one to come)."""

    def __init__(self, first_available: int) -> None:
        super().__init__(f"the oldest entry held is {first_available}")
        self.first_available = first_available


@dataclass(frozen=True, slots=True)
class LogStatistics:
    """`first`..`last` are held (none if first > last), `size` bytes together; `dropped` were let go so far."""

    first: int
    last: int
    size: int
    dropped: int


class OutputLog(Generic[T]):
    """Entries numbered 1, 2, 3 …, at most `max_events` of them and `max_bytes` together.

    Full means: the oldest go first. An entry that alone exceeds `max_bytes` gets its number but is not held. Appending
    and reading one entry take constant time.
    """

    __slots__ = ("_entries", "_first", "_last", "_max_bytes", "_max_events", "_size")

    def __init__(self, max_events: int, max_bytes: int) -> None:
        if max_events < 1 or max_bytes < 1:
            raise ValueError("an output log holds at least one event and one byte")
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._entries: dict[int, tuple[T, int]] = {}
        self._first = 1
        self._last = 0
        self._size = 0

    @property
    def last(self) -> int:
        """The number of the newest entry; 0 before the first."""
        return self._last

    @property
    def first(self) -> int:
        """The number of the oldest entry held; `last` + 1 while none is."""
        return self._first

    @property
    def size(self) -> int:
        """Bytes held."""
        return self._size

    def append(self, entry: T, size: int) -> int:
        """Adds an entry of `size` bytes and returns its number."""
        self._last += 1
        self._entries[self._last] = (entry, size)
        self._size += size
        while self._size > self._max_bytes or len(self._entries) > self._max_events:
            self._drop_oldest()
        return self._last

    def read(self, after: int, limit: int) -> list[tuple[int, T]]:
        """Returns up to `limit` entries numbered above `after`, in order; none if there is nothing newer.

        Raises `Dropped` if the entry right after `after` is no longer held.
        """
        start = after + 1
        if start < self._first:
            raise Dropped(self._first)
        stop = min(self._last, after + limit) + 1
        return [(number, self._entries[number][0]) for number in range(start, stop)]

    def clear(self) -> None:
        """Lets everything go; numbers continue."""
        self._entries.clear()
        self._first = self._last + 1
        self._size = 0

    def statistics(self) -> LogStatistics:
        """Returns what is held and what was let go."""
        return LogStatistics(self._first, self._last, self._size, self._first - 1)

    def _drop_oldest(self) -> None:
        _, size = self._entries.pop(self._first)
        self._size -= size
        self._first += 1
