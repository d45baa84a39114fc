"""What could start now, by level and rank: insert, remove and in-order reading of one kind's ready work."""

from collections.abc import Iterator
from typing import Generic, TypeVar

from sortedcontainers import SortedKeyList

T = TypeVar("T")

Rank = tuple[int, float, int, int]
"""Order within a level, unique: class (0 goes first), key, when it is missed, the order of arrival."""


class ReadyQueue(Generic[T]):
    """A sorted list of lists for each level: what a change costs does not grow with what waits (measured up to 100,000,
    `chorale bench queues`)."""

    def __init__(self) -> None:
        self._levels: dict[int, SortedKeyList[tuple[Rank, T], Rank]] = {}

    def add(self, level: int, rank: Rank, item: T) -> None:
        line = self._levels.get(level)
        if line is None:
            line = self._levels[level] = SortedKeyList(key=_rank)
        line.add((rank, item))

    def remove(self, level: int, rank: Rank) -> None:
        """Takes out what was added under exactly this level and rank. Raises `KeyError` where nothing was."""
        line = self._levels.get(level)
        place = -1 if line is None else line.bisect_key_left(rank)
        if line is None or place == len(line) or line[place][0] != rank:
            raise KeyError((level, rank))
        del line[place]
        if not line:
            del self._levels[level]

    @property
    def levels(self) -> list[int]:
        """The levels that hold something, the most urgent first."""
        return sorted(self._levels)

    def first(self, level: int) -> T:
        """Returns what is next in a level that holds something."""
        return self._levels[level][0][1]

    def scan(self, level: int, limit: int) -> Iterator[T]:
        """Yields up to `limit` items of a level in order. The queue must not change meanwhile."""
        line = self._levels.get(level)
        return iter(()) if line is None else (item for _, item in line.islice(0, limit))


def _rank(pair: tuple[Rank, object]) -> Rank:
    return pair[0]
