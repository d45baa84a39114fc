"""A job: one piece of work with everything the scheduler needs to know about it."""

from enum import IntEnum

from msgspec import Struct

from orchestrator.scheduling.work import Work, WorkKind, kind_of


class Tier(IntEnum):
    """What a tenant pays for; also the level of the queue its jobs stand in (0 is kept for unblocking work)."""

    PLATINUM = 1
    GOLD = 2
    SILVER = 3


class Job(Struct, frozen=True):
    """One piece of work of one session.

    `level` 0 unblocks a session, 1–3 follow the tier. Two jobs of one session and kind never overtake each other.
    `deadline_us` is absolute; a job that has not ended by then fails with ``deadline_exceeded``. A `speculative` job is
    a guess at what will be asked next: it is taken only where it makes nobody wait (`Scheduler.spares`), and is then a
    job like any other. `due_us` is when its result is missed, absolute too: later than `created_us` where the session
    has enough to go on with (sound of the sentences before).
    """

    id: str
    session_id: str
    work: Work
    tier: Tier
    level: int
    created_us: int
    deadline_us: int
    speculative: bool = False
    due_us: int = 0

    @property
    def kind(self) -> WorkKind:
        return kind_of(self.work)
