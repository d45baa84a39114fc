"""What the dispatcher keeps of jobs on their way: by job, and by session."""

from collections.abc import Callable
from dataclasses import dataclass, field

from orchestrator.buffers.transit import Slot, Transit
from orchestrator.errors import InvalidState
from orchestrator.flow.limiter import Permit
from orchestrator.observability.traceparent import TraceParent
from orchestrator.scheduling.cost import Charge
from orchestrator.scheduling.job_watch import Followed
from orchestrator.scheduling.splice import Splice
from orchestrator.scheduling.work import Report

Deliver = Callable[[Report], None]


@dataclass(frozen=True, slots=True)
class Listener:
    """Where the reports of a session's jobs go, on whose account these are, and the client's span that they belong to.
    `tier` is whose quotas they count by; None: each job's own."""

    deliver: Deliver
    tenant: str = ""
    remote: TraceParent | None = None
    tier: int | None = None


@dataclass(slots=True, eq=False)
class Ticket:
    """A job on its way, until its last report is delivered. `worker_id` is whose reports of it count now."""

    session_id: str
    followed: Followed
    permit: Permit | None = None
    charge: Charge | None = None
    splice: Splice = field(default_factory=Splice)
    worker_id: str | None = None
    slot: Slot | None = None

    def enter(self, transit: Transit, job_id: str, worker_id: str) -> None:
        """The job is this worker's from now on, and nobody else's. A repeat keeps its slot, in a new version."""
        if self.slot is None:
            self.slot = transit.add(job_id)
        if not transit.claim(self.slot, worker_id):
            raise InvalidState("transit", "claimed", job_id)
        self.worker_id = worker_id

    def lose(self, transit: Transit) -> None:
        """Its worker is gone: the job begins anew with another."""
        assert self.slot is not None
        self.worker_id, self.slot = None, transit.back(self.slot)
        self.splice.restart()
        self.followed.lose()

    def leave(self, transit: Transit) -> None:
        """No report of this job counts any more."""
        if self.slot is not None:
            if self.worker_id is not None:
                transit.finish(self.slot)
            transit.release(self.slot)
        self.slot = self.worker_id = None

    def settle(self, end: Callable[[Permit, int], None], now: int) -> None:
        """Ends the permit, unless there is none or it has ended: refused, or reported and not yet delivered."""
        if self.permit is not None and not self.permit.ended:
            end(self.permit, now)


class Tickets:
    """Tickets by job; those of one session are found without a look at the others."""

    def __init__(self) -> None:
        self.by_job: dict[str, Ticket] = {}
        self._by_session: dict[str, set[str]] = {}

    def add(self, job_id: str, ticket: Ticket) -> Ticket:
        self.by_job[job_id] = ticket
        self._by_session.setdefault(ticket.session_id, set()).add(job_id)
        return ticket

    def pop(self, job_id: str) -> Ticket | None:
        """Takes a ticket out and returns it; None where there is none (any more)."""
        ticket = self.by_job.pop(job_id, None)
        if ticket is not None:
            of_session = self._by_session[ticket.session_id]
            of_session.remove(job_id)
            if not of_session:
                del self._by_session[ticket.session_id]
        return ticket

    def of_session(self, session_id: str) -> list[str]:
        """Returns the jobs of a session."""
        return list(self._by_session.get(session_id, ()))
