"""What could start now, by level and rank: insert, remove and in-order reading of one kind's ready work."""

from bisect import bisect_left, insort
from collections.abc import Iterator
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")

Rank = tuple[int, int, int]
"""Order within a level, unique: what kind of urgency (0 goes first), when it is due, the order of arrival."""


class ReadyQueue(Generic[T]):
    """Sorted lists, one a level: finding a place is O(log n), making room for it moves at most some 4 KB."""

    def __init__(self) -> None:
        self._levels: dict[int, list[tuple[Rank, T]]] = {}

    def add(self, level: int, rank: Rank, item: T) -> None:
        insort(self._levels.setdefault(level, []), (rank, item), key=_rank)

    def remove(self, level: int, rank: Rank) -> None:
        """Takes out what was added under exactly this level and rank. Raises `KeyError` where nothing was."""
        line = self._levels.get(level, [])
        place = bisect_left(line, rank, key=_rank)
        if place == len(line) or line[place][0] != rank:
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
        return (item for _, item in islice(self._levels.get(level, ()), limit))


def _rank(pair: tuple[Rank, object]) -> Rank:
    return pair[0]
