"""The order of what could start, of one kind of work: by level, and within a level by how much it is wanted.

A level is two sorted lines: what is not late yet and what is (`ranking` says why each keeps its order by itself). A
lane moves from the first to the second once, and within it once more when it is overdue. What fades is ranked anew when
its epoch is over, a few at a time.
"""

import heapq
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from itertools import count, islice

from orchestrator.scheduling.lanes import Lane, Place, Urgency
from orchestrator.scheduling.priority import UNBLOCKING
from orchestrator.scheduling.ranking import OVERDUE, TERMS, freshness, lateness, overdue
from orchestrator.scheduling.ready_queue import Rank, ReadyQueue
from orchestrator.scheduling.weights import Weights

CANDIDATES = 8
"""Of each line, where affinity may turn their order around."""

LOOKED_AT = 64
"""Of each line, while looking for what suits a worker."""

RENEWED = 32
"""Of each level, ranked anew in one plan where their epoch is over."""

MOVED = 256
"""Lanes that may turn late or overdue in one plan; those beyond stand where they stood for one plan longer."""

Allows = Callable[[Lane], bool]


class Order:
    """Lanes of one kind. `advance` once a plan, `heads` to choose from; nothing in it depends on how many wait."""

    def __init__(self, weights: Mapping[int, Weights]) -> None:
        self._weights = weights
        self._early: ReadyQueue[Lane] = ReadyQueue()
        self._late: ReadyQueue[Lane] = ReadyQueue()
        self._turns: list[tuple[int, int, Lane, Place]] = []
        self._fading: dict[int, OrderedDict[Lane, None]] = {level: OrderedDict() for level in TERMS}
        self._ticket = count()
        self._lanes = 0

    @property
    def levels(self) -> list[int]:
        """The levels in which something waits, the most urgent first."""
        return sorted({*self._early.levels, *self._late.levels})

    def put(self, lane: Lane, urgency: Urgency, active_us: int | None, now: int) -> None:
        """A lane stands where this puts it; it stood nowhere before."""
        late, level = False, urgency.level
        if level == UNBLOCKING:
            place = Place(urgency, active_us, 0, (urgency.rank, 0.0, urgency.missed_us, urgency.sequence))
        else:
            terms = TERMS[level]
            late = lateness(urgency.missed_us, now, terms) >= 1.0
            epoch = terms.epoch(now)
            fresh = self._fresh(urgency, active_us, epoch, now)
            place = Place(urgency, active_us, epoch, self._rank(urgency, fresh, late=late), late)
            if not overdue(urgency.missed_us, now, terms):
                if fresh > 0.0:
                    self._fading[level][lane] = None
                at = urgency.missed_us + (OVERDUE if late else 1) * terms.bound_us
                self._remember((at, next(self._ticket), lane, place))
        (self._late if late else self._early).add(level, place.rank, lane)
        lane.place = place
        self._lanes += 1

    def take(self, lane: Lane) -> None:
        """A lane stands nowhere any more; nothing where it stood nowhere."""
        place = lane.place
        if place is None:
            return
        level = place.urgency.level
        (self._late if place.late else self._early).remove(level, place.rank)
        if level != UNBLOCKING:
            self._fading[level].pop(lane, None)
        lane.place = None
        self._lanes -= 1

    def advance(self, now: int) -> None:
        """Moves what has turned late or overdue, and looks anew at what fades."""
        heap, moved = self._turns, 0
        while heap and heap[0][0] <= now and moved < MOVED:
            _, _, lane, place = heapq.heappop(heap)
            if lane.place is place:
                moved += 1
                self._again(lane, place, now)
        for level, fading in self._fading.items():
            epoch = TERMS[level].epoch(now)
            for lane in list(islice(fading, RENEWED)):
                if lane.place is None or lane.place.epoch == epoch:
                    break
                self._again(lane, lane.place, now)

    def first(self, level: int, allows: Allows | None) -> Lane | None:
        """Returns any lane of a level that could be next; None where none is allowed."""
        return next(self.scan(level, allows), None)

    def heads(self, level: int, allows: Allows | None, many: int = 1) -> list[Lane]:
        """Returns the lanes of a level among which the next one is, all of one class: `many` of both lines at most."""
        if level == UNBLOCKING:
            return list(islice(self.scan(level, allows), 1))
        found = [
            *islice(_allowed(self._late, level, allows), many),
            *islice(_allowed(self._early, level, allows), many),
        ]
        best = min((lane.place.urgency.rank for lane in found if lane.place), default=0)
        return [lane for lane in found if lane.place and lane.place.urgency.rank == best]

    def scan(self, level: int, allows: Allows | None = None) -> Iterator[Lane]:
        """Yields allowed lanes of a level, late ones first, each line in order. Nothing may move meanwhile."""
        yield from _allowed(self._late, level, allows)
        yield from _allowed(self._early, level, allows)

    def wanted(self, lane: Lane, now: int) -> float:
        """Returns w of a lane that stands somewhere, exactly, without affinity; 0 for unblocking work."""
        place = lane.place
        if place is None or place.urgency.level == UNBLOCKING:
            return 0.0
        urgency, weights = place.urgency, self._weights[place.urgency.level]
        late = lateness(urgency.missed_us, now, TERMS[urgency.level])
        return weights.lateness * late + weights.freshness * self._fresh(urgency, place.active_us, now, now)

    def _remember(self, item: tuple[int, int, Lane, Place]) -> None:
        """Adds a time at which a lane turns late or overdue. Those that mean nothing any more go once they are most,
        whether anybody plans or not: no worker may be free for long."""
        heap = self._turns
        if len(heap) > 2 * self._lanes + LOOKED_AT:
            heap[:] = [one for one in heap if one[2].place is one[3]]
            heapq.heapify(heap)
        heapq.heappush(heap, item)

    def _again(self, lane: Lane, place: Place, now: int) -> None:
        self.take(lane)
        self.put(lane, place.urgency, place.active_us, now)

    def _fresh(self, urgency: Urgency, active_us: int | None, at: int, now: int) -> float:
        terms = TERMS[urgency.level]
        return 1.0 if overdue(urgency.missed_us, now, terms) else freshness(active_us, at, terms)

    def _rank(self, urgency: Urgency, fresh: float, *, late: bool) -> Rank:
        terms, weights = TERMS[urgency.level], self._weights[urgency.level]
        key = -fresh
        if not late:
            key = urgency.missed_us / terms.bound_us - weights.freshness / weights.lateness * fresh
        return (urgency.rank, key, urgency.missed_us, urgency.sequence)


def _allowed(line: ReadyQueue[Lane], level: int, allows: Allows | None) -> Iterator[Lane]:
    lanes = line.scan(level, LOOKED_AT)
    return lanes if allows is None else (lane for lane in lanes if allows(lane))
