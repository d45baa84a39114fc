"""Which jobs belong to which turn: a trace is told of when its turn has ended, and only then is it known whose child it
is and whether it is wanted.

A heart: bounded in turns and in jobs of a turn; what does not fit leaves early, without its root, or is counted.
"""

from collections import OrderedDict
from dataclasses import dataclass

from orchestrator.observability.instrument import NO_TURN, Call, JobRecord, TurnRecord
from orchestrator.observability.traceparent import TraceParent

MOST_TURNS = 2_048
"""Turns that have not ended; as many that have are remembered, for jobs that end after their turn."""

MOST_JOBS = 64
"""Jobs of one turn that wait for its end."""

_Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Bundle:
    """What becomes a trace, or a part of one. `turn` is None where its root is told of elsewhere or never; jobs of
    `NO_TURN` have none, and belong to the client's span itself."""

    session_id: str
    number: int
    turn: TurnRecord | None
    jobs: tuple[JobRecord, ...]
    remote: TraceParent | None

    @property
    def weight(self) -> int:
        """How many spans it becomes at most: each job with its wait and its work."""
        return (1 + len(self.turn.stages) if self.turn is not None else 0) + 3 * len(self.jobs)


@dataclass(frozen=True, slots=True)
class Called:
    """A call of a service that has ended: a span of its own. Times are µs of the monotonic clock."""

    call: Call
    began_us: int
    ended_us: int

    @property
    def weight(self) -> int:
        return 1


class Gathering:
    """Jobs by their turn, until the turn ends."""

    def __init__(self, most_turns: int = MOST_TURNS, most_jobs: int = MOST_JOBS) -> None:
        self._most_turns = most_turns
        self._most_jobs = most_jobs
        self._open: OrderedDict[_Key, list[JobRecord]] = OrderedDict()
        self._ended: OrderedDict[_Key, TraceParent | None] = OrderedDict()

    def __len__(self) -> int:
        """Jobs that wait for the end of their turn."""
        return sum(map(len, self._open.values()))

    def job(self, record: JobRecord) -> Bundle | None:
        """Takes a job; returns what is complete now, or has to leave to make room for it."""
        key = (record.session_id, record.turn)
        if record.turn == NO_TURN:
            return Bundle(*key, None, (record,), record.remote)
        if key in self._ended:
            return Bundle(*key, None, (record,), self._ended[key])
        jobs = self._open.setdefault(key, [])
        jobs.append(record)
        if len(jobs) >= self._most_jobs:
            del self._open[key]
            return Bundle(*key, None, tuple(jobs), record.remote)
        if len(self._open) > self._most_turns:
            return self._oldest()
        return None

    def turn(self, record: TurnRecord) -> Bundle:
        """Takes a turn's end; returns it with its jobs."""
        key = (record.session_id, record.turn)
        jobs = self._open.pop(key, [])
        self._ended[key] = record.remote
        if len(self._ended) > self._most_turns:
            self._ended.popitem(last=False)
        return Bundle(*key, record, tuple(jobs), record.remote)

    def rest(self) -> list[Bundle]:
        """Returns what is left of turns that have not ended, and forgets it."""
        left = []
        while self._open:
            left.append(self._oldest())
        return left

    def _oldest(self) -> Bundle:
        key, jobs = self._open.popitem(last=False)
        return Bundle(*key, None, tuple(jobs), jobs[0].remote)
