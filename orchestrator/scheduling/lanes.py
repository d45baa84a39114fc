"""What the scheduler keeps of a job, of a session's jobs of one kind, and of an assignment that it puts together."""

from dataclasses import dataclass, field
from typing import NamedTuple

from orchestrator.scheduling.job import Job
from orchestrator.scheduling.priority import UNBLOCKING
from orchestrator.scheduling.ready_queue import Rank
from orchestrator.scheduling.work import Transcribe, WorkKind

REPEATS = 2

DRAFTS = 2
"""The class of drafts: behind everything else of their level."""


class Urgency(NamedTuple):
    """What decides about a place, the most urgent smallest: the level, the class (what comes back 0, drafts 2), since
    when the result is missed, the order of arrival."""

    level: int
    rank: int
    missed_us: int
    sequence: int


@dataclass(slots=True, eq=False)
class Entry:
    """A job that has not ended; `worker_id` is None while it waits."""

    job: Job
    sequence: int
    losses: int = 0
    worker_id: str | None = None
    started_us: int = 0
    urgency: Urgency = field(init=False)

    def __post_init__(self) -> None:
        job = self.job
        is_draft = isinstance(job.work, Transcribe) and job.work.draft
        self.urgency = Urgency(
            job.level, DRAFTS if is_draft else 1, max(job.created_us, job.due_us), self.sequence
        )

    def repeat(self) -> None:
        """Its worker was lost: it is as urgent as what unblocks a session, and the first of that."""
        self.losses += 1
        self.urgency = self.urgency._replace(level=UNBLOCKING, rank=0)

    @property
    def alone(self) -> bool:
        """Whether it has to be the only one on its worker."""
        return self.losses >= REPEATS


@dataclass(slots=True, eq=False)
class Place:
    """Where a lane stands in the order, and by what: its `urgency`, its user's last sign, the epoch of its rank."""

    urgency: Urgency
    active_us: int | None
    epoch: int
    rank: Rank
    late: bool = False


@dataclass(slots=True, eq=False)
class Lane:
    """A session's jobs of one kind, in order. `place` is where it stands; `free_us` is when its last job ended;
    `behind` are the levels of those that wait for others of it, as the queue was told."""

    session_id: str
    kind: WorkKind
    queued: list[Entry] = field(default_factory=list)
    running: Entry | None = None
    free_us: int = 0
    place: Place | None = None
    behind: tuple[int, ...] = ()

    @property
    def waits_for_itself(self) -> tuple[int, ...]:
        """The levels of the jobs that could not start whatever places there were."""
        if not self.queued or (self.running is None and len(self.queued) == 1):
            return ()
        if self.running is not None:
            return tuple(entry.job.level for entry in self.queued)
        first = min(self.queued, key=lambda entry: entry.urgency)
        return tuple(entry.job.level for entry in self.queued if entry is not first)

    @property
    def urgency(self) -> Urgency | None:
        """That of its most urgent job, from when it could run; None where nothing of it could run now."""
        if not self.queued or self.running is not None:
            return None
        most = self.queued[0].urgency if len(self.queued) == 1 else min(one.urgency for one in self.queued)
        return most if most.missed_us >= self.free_us else most._replace(missed_us=self.free_us)


@dataclass(slots=True, eq=False)
class Draft:
    """An assignment being put together."""

    worker_id: str
    room: int
    idle: bool
    free_memory: float = 1.0
    entries: list[Entry] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether its worker has nothing, and gets nothing so far."""
        return self.idle and not self.entries
