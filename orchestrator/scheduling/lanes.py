"""What the scheduler keeps of a job, of a session's jobs of one kind, and of an assignment that it puts together."""

from dataclasses import dataclass, field

from orchestrator.scheduling.job import Job
from orchestrator.scheduling.ready_queue import Rank
from orchestrator.scheduling.work import Transcribe, WorkKind

REPEATS = 2


@dataclass(slots=True, eq=False)
class Entry:
    """A job that has not ended; `worker_id` is None while it waits."""

    job: Job
    sequence: int
    losses: int = 0
    worker_id: str | None = None
    started_us: int = 0

    @property
    def rank(self) -> Rank:
        """What comes back is first, drafts are last; then what is missed first, then the first come."""
        is_draft = isinstance(self.job.work, Transcribe) and self.job.work.draft
        due_us = max(self.job.created_us, self.job.due_us)
        return (0 if self.losses else 2 if is_draft else 1, due_us, self.sequence)

    @property
    def alone(self) -> bool:
        """Whether it has to be the only one on its worker."""
        return self.losses >= REPEATS


@dataclass(slots=True, eq=False)
class Lane:
    """A session's jobs of one kind, in order. `place` is where it stands in the ready queue."""

    kind: WorkKind
    queued: list[Entry] = field(default_factory=list)
    running: Entry | None = None
    place: tuple[int, Rank] | None = None


@dataclass(slots=True, eq=False)
class Draft:
    """An assignment being put together."""

    worker_id: str
    room: int
    idle: bool
    entries: list[Entry] = field(default_factory=list)
