"""What the scheduler is told and what it answers: free places in, assignments and withdrawn jobs out."""

from dataclasses import dataclass, field

from orchestrator.scheduling.job import Job
from orchestrator.scheduling.work import WorkKind


@dataclass(frozen=True, slots=True)
class FreeSlots:
    """How many jobs of its kind a worker could take now, and which share of its memory is free."""

    kind: WorkKind
    jobs: int
    free_memory: float = 1.0


@dataclass(frozen=True, slots=True)
class Assignment:
    """Jobs to send to a worker together, in order. For the kinds that batch they are one batch. `waited_us`: how long
    each of them waited for a place, None of one whose tier promises nothing about that (drafts, level 0)."""

    worker_id: str
    jobs: tuple[Job, ...]
    waited_us: tuple[int | None, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to send where; what it names counts as running from now on."""

    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A job that was taken out before its end. Where it was running, `worker_id` must be told to stop it."""

    job: Job
    worker_id: str | None
