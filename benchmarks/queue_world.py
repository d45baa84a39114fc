"""A queue in front of workers on virtual time: arrivals and service times are drawn before, equal for every rule."""

import heapq
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.buffers.input_queue import QueueBounds
from orchestrator.clock import US_PER_S, seconds
from orchestrator.scheduling.job import Job, Tier
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.priority import LEVEL_WEIGHTS
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.scheduling.work import Reply

LEVELS = (1, 2, 3)
BOUNDS_S: Mapping[int, float] = {1: 0.12, 2: 0.3, 3: 0.8}
"""How long a tier's work may wait at p95."""

_WORK = Reply(())


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job that comes and how long a worker takes for it."""

    job: Job
    service_us: int


class Queue(Protocol):
    """A rule for who is next; one kind of work, `places` at a time."""

    def submit(self, job: Job, now: int) -> bool:
        """Returns False where it is refused."""
        ...

    def start(self, places: int, now: int) -> list[str]:
        """Returns the jobs that start now."""
        ...

    def end(self, job_id: str, now: int) -> None:
        """A job that was started has ended."""
        ...

    def expire(self, now: int) -> list[str]:
        """Returns what has waited too long; it is gone."""
        ...


class Hybrid:
    """The server's scheduler with one worker."""

    def __init__(self, bounds: QueueBounds, sheds: float = 1.0) -> None:
        """Above `sheds` · mark silver is let in only up to its share of the mark: the rule of shedding."""
        self.scheduler = Scheduler(bounds)
        self._mark = bounds.jobs * bounds.watermark
        self._sheds = sheds * self._mark
        self._running: set[str] = set()

    def submit(self, job: Job, now: int) -> bool:
        self.scheduler.reprioritise(job.session_id, now)
        if job.level == Tier.SILVER and self._sheds < self._mark:
            waiting = self.scheduler.statistics().queued_by_level
            share = self._mark * LEVEL_WEIGHTS[3] / sum(LEVEL_WEIGHTS[level] for level in LEVELS)
            if sum(waiting.values()) >= self._sheds and waiting.get(3, 0) >= share:
                return False
        return self.scheduler.submit(job, now) is None

    def start(self, places: int, now: int) -> list[str]:
        plan = self.scheduler.plan(now, {"w": FreeSlots("llm", places)})
        started = [job.id for one in plan.assignments for job in one.jobs]
        self._running.update(started)
        return started

    def end(self, job_id: str, now: int) -> None:
        self._running.remove(job_id)
        self.scheduler.finish(job_id, now)

    def expire(self, now: int) -> list[str]:
        return [gone.job.id for gone in self.scheduler.expire(now)]


class Plain:
    """One order for all, known when a job comes: ``priority`` is the level and then the first come, ``lru`` the session
    that was served longest ago (ranked anew with each of its jobs)."""

    def __init__(self, rule: str) -> None:
        self._rule = rule
        self._served: dict[str, int] = {}
        self._lines: dict[str, list[Job]] = {}
        self._heap: list[tuple[int, int, str]] = []
        self._busy: dict[str, str] = {}
        self._count = 0

    def submit(self, job: Job, now: int) -> bool:
        line = self._lines.setdefault(job.session_id, [])
        line.append(job)
        if len(line) == 1 and job.session_id not in self._busy.values():
            self._stand(job)
        return True

    def start(self, places: int, now: int) -> list[str]:
        started: list[str] = []
        while self._heap and len(started) < places:
            _, _, session = heapq.heappop(self._heap)
            job = self._lines[session].pop(0)
            self._busy[job.id] = session
            self._served[session] = now
            started.append(job.id)
        return started

    def end(self, job_id: str, now: int) -> None:
        session = self._busy.pop(job_id)
        if self._lines[session]:
            self._stand(self._lines[session][0])

    def expire(self, now: int) -> list[str]:
        return []

    def _stand(self, job: Job) -> None:
        self._count += 1
        first = self._served.get(job.session_id, -1) if self._rule == "lru" else job.level
        heapq.heappush(
            self._heap, (first, self._count if self._rule == "lru" else job.created_us, job.session_id)
        )


@dataclass(slots=True)
class Told:
    """What became of the jobs: waits in seconds by level, with when each came; `both` are starts by level while every
    level waited, in so many unbroken `stretches`; `inversions` as `Watch` counts them."""

    waits_s: dict[int, list[tuple[float, float]]] = field(default_factory=lambda: {one: [] for one in LEVELS})
    refused: dict[int, int] = field(default_factory=lambda: dict.fromkeys(LEVELS, 0))
    expired: dict[int, int] = field(default_factory=lambda: dict.fromkeys(LEVELS, 0))
    both: dict[int, int] = field(default_factory=lambda: dict.fromkeys(LEVELS, 0))
    served: dict[str, int] = field(default_factory=dict)
    stretches: int = 0
    inversions: int = 0


class Watch:
    """Counts starts of a lower level while a higher one has waited all along, beyond its share of them by over one."""

    def __init__(self) -> None:
        self._got: dict[tuple[int, int], float] = {}

    def started(self, level: int, waiting: Mapping[int, int]) -> int:
        """A job starts; `waiting` are the lanes of each level that could, itself included. Returns 1 if inverted."""
        there = [one for one in LEVELS if waiting.get(one)]
        whole = sum(LEVEL_WEIGHTS[one] for one in there)
        inverted = 0
        for high in LEVELS:
            for low in LEVELS[high:]:
                if high not in there or low not in there:
                    self._got.pop((high, low), None)
                    continue
                over = self._got.get((high, low), 0.0) + (level == low) - LEVEL_WEIGHTS[low] / whole
                self._got[high, low] = over
                inverted |= level == low and over > 1
        return int(inverted)


def arrivals(
    rates: Callable[[float], Mapping[int, float]],
    span_s: float,
    service_s: float,
    seed: int,
    *,
    sessions: int = 400,
    ttl_s: float = 3600,
) -> list[Arrival]:
    """Draws jobs of each level by `rates` (jobs a second at a time; Poisson in steps of 10 ms), each of one of its
    level's `sessions`, with service times that spread by a half (log-normal)."""
    random_, found, at = random.Random(seed), list[Arrival](), 0.0
    while at < span_s:
        for level, rate in rates(at).items():
            next_s = at + random_.expovariate(rate) if rate else span_s
            while next_s < at + 0.01:
                created = seconds(next_s)
                job = Job(
                    f"{len(found)}",
                    f"{level}.{random_.randrange(sessions)}",
                    _WORK,
                    Tier(level),
                    level,
                    created,
                    created + seconds(ttl_s),
                )
                found.append(Arrival(job, int(service_s * US_PER_S * random_.lognormvariate(-0.11, 0.47))))
                next_s += random_.expovariate(rate)
        at += 0.01
    return sorted(found, key=lambda one: one.job.created_us)


def play(queue: Queue, coming: list[Arrival], places: int) -> Told:
    """Returns what a rule makes of these arrivals, to the last job."""
    told, watch = Told(), Watch()
    jobs = {one.job.id: one for one in coming}
    lanes: dict[str, list[str]] = {}
    busy: set[str] = set()
    ready: dict[int, int] = dict.fromkeys(LEVELS, 0)
    ends: list[tuple[int, str]] = []
    place, whole = 0, False

    def change(session: str, act: Callable[[str], object], value: str) -> None:
        level = int(session[0])
        ready[level] -= bool(lanes.get(session)) and session not in busy
        act(value)
        ready[level] += bool(lanes.get(session)) and session not in busy

    def leaves(id: str) -> None:
        session = jobs[id].job.session_id
        change(session, lanes[session].remove, id)

    while place < len(coming) or ends:
        now = min(
            coming[place].job.created_us if place < len(coming) else ends[0][0],
            ends[0][0] if ends else coming[place].job.created_us,
        )
        for id in queue.expire(now):
            session = jobs[id].job.session_id
            if id in lanes.get(session, ()):
                told.expired[jobs[id].job.level] += 1
                leaves(id)
            else:
                change(session, busy.discard, session)
                ends = [end for end in ends if end[1] != id]
                heapq.heapify(ends)
        while ends and ends[0][0] <= now:
            _, id = heapq.heappop(ends)
            queue.end(id, now)
            session = jobs[id].job.session_id
            change(session, busy.discard, session)
        while place < len(coming) and coming[place].job.created_us <= now:
            job = coming[place].job
            place += 1
            if queue.submit(job, now):
                change(job.session_id, lanes.setdefault(job.session_id, []).append, job.id)
            else:
                told.refused[job.level] += 1
        for id in queue.start(places - len(ends), now):
            one = jobs[id]
            told.inversions += watch.started(one.job.level, ready)
            whole, before = all(ready.values()), whole
            if whole:
                told.stretches += not before
                told.both[one.job.level] += 1
            leaves(id)
            session = one.job.session_id
            change(session, busy.add, session)
            told.waits_s[one.job.level].append(
                (one.job.created_us / US_PER_S, (now - one.job.created_us) / US_PER_S)
            )
            told.served[session] = told.served.get(session, 0) + 1
            heapq.heappush(ends, (now + one.service_us, id))
    return told


def p95(waits_s: list[float]) -> float:
    """Returns the 95th percentile; 0 of nothing."""
    ordered = sorted(waits_s)
    return ordered[int(0.95 * (len(ordered) - 1))] if ordered else 0.0


def jain(shares: list[float]) -> float:
    """Returns Jain's index: 1 where all have the same, 1 / n where one has all."""
    squares = sum(one * one for one in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0
