"""Which level is served next: levels share the workers by weight, so the lowest always moves.

Stride scheduling (Waldspurger and Weihl, 1995): every level has a position that grows by 1 / weight with each job it
gets; the level with the smallest position is next. A level that slept wakes at the position of the others: it cannot
save up turns and then block them. Nor does it pay for ever: a batch takes along riders of whatever level has some, and
a level that so filled places which no other could use owes for the largest batch at most.
"""

from collections.abc import Collection, Mapping
from math import lcm

UNBLOCKING = 0
"""The level of work that a waiting session cannot go on without."""

LEVEL_WEIGHTS: Mapping[int, int] = {UNBLOCKING: 8, 1: 4, 2: 2, 3: 1}
"""Of every 15 jobs, with all levels waiting, 8 are unblocking, 4 platinum, 2 gold and 1 silver."""


class FairShares:
    """Chooses among waiting levels; in any run of choices each waiting level gets its weighted share, off by one."""

    def __init__(self, weights: Mapping[int, int] = LEVEL_WEIGHTS) -> None:
        one = lcm(*weights.values())
        self._strides = {level: one // weight for level, weight in weights.items()}
        self._positions = dict.fromkeys(weights, 0)
        self._awake: frozenset[int] = frozenset()
        self._now = 0
        self._booked = 0
        self._most_booked = 1

    def choose(self, waiting: Collection[int]) -> int:
        """Returns the level to serve next; `waiting` are the levels that have work (not empty)."""
        for level in waiting:
            if level not in self._awake:
                self._positions[level] = max(self._positions[level], self._now)
        self._awake = frozenset(waiting)
        self._booked = 0
        least = min(self._positions[level] for level in waiting)
        for level in waiting:
            owed = self._strides[level] * self._most_booked
            self._positions[level] = min(self._positions[level], least + owed)
        chosen = min(waiting, key=lambda level: (self._positions[level], level))
        self._now = max(self._now, self._positions[chosen])
        return chosen

    def in_turn(self, levels: Collection[int]) -> list[int]:
        """Returns levels in the order in which places beside the one that was chosen are theirs."""
        return sorted(levels, key=lambda level: (self._positions[level], level))

    def charge(self, level: int) -> None:
        """Books one job on a level, chosen or not (a batch takes riders of other levels along)."""
        self._positions[level] += self._strides[level]
        self._booked += 1
        self._most_booked = max(self._most_booked, self._booked)
