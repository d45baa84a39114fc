"""The shell around the scheduler: carries jobs to workers and reports back to sessions. Nothing in it waits.

It lives on one event loop and needs no task of its own: submissions of one tick are planned together on the next, the
nearest deadline is a timer of the loop.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.clock import US_PER_S, Clock
from orchestrator.errors import InvalidState
from orchestrator.flow.concurrency import FixedLimit
from orchestrator.flow.limiter import Limiter, LimiterStatistics, Permit, Refusal
from orchestrator.flow.tenants import TenantStatistics
from orchestrator.observability.instrument import Instrument
from orchestrator.scheduling.cost import Charge, Costs
from orchestrator.scheduling.delivery import Delivery
from orchestrator.scheduling.instances import TICK_US, Instances, InstanceStatistics, WorkerMemory
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.job_watch import Followed
from orchestrator.scheduling.kinds import KIND_NAMES
from orchestrator.scheduling.plan import FreeSlots, Withdrawn
from orchestrator.scheduling.scheduler import Scheduler, SchedulerStatistics
from orchestrator.scheduling.splice import Splice, ends_a_job
from orchestrator.scheduling.work import REFUSED, Failed, Report, WorkKind

Deliver = Callable[[Report], None]

SPECULATIVE = "speculative"
"""Why guesses are refused that would make others wait: that is no overload, and no fault."""

MOST_JOBS_INSIDE = 2048
"""Default bound of jobs accepted and not yet ended, over all sessions."""


class WorkerEvents(Protocol):
    """What workers tell the dispatcher; called on the event loop."""

    def reported(self, worker_id: str, report: Report) -> None:
        """A worker answers. Reports of one job arrive in the order in which they were made."""
        ...

    def lost(self, worker_id: str) -> None:
        """A worker is gone with everything it had; nothing it reported arrives after this."""
        ...

    def freed(self) -> None:
        """`Workers.free` may hold more than before."""
        ...

    def gave_up(self, kind: WorkKind) -> None:
        """`Workers.hopeless` holds for a kind from now on, as far as anybody can tell."""
        ...


class Workers(Protocol):
    """Everything that does work, wherever it runs. Starting and stopping it is its owner's."""

    def listen(self, events: WorkerEvents) -> None:
        """From now on events go there."""
        ...

    def free(self) -> Mapping[str, FreeSlots]:
        """Returns what each ready worker could take now."""
        ...

    def hopeless(self, kind: WorkKind) -> bool:
        """Says whether no worker of a kind can start as things are."""
        ...

    def send(self, worker_id: str, jobs: Sequence[Job]) -> None:
        """Hands jobs over, at most as many as `free` promised. Never waits; a loss is told by `WorkerEvents.lost`."""
        ...

    def cancel(self, worker_id: str, job_id: str) -> None:
        """Stops a job within one step of its engine; its slot is free once the worker says so. Never waits."""
        ...


@dataclass(frozen=True, slots=True)
class DispatcherStatistics:
    """`delivered` and `dropped_reports` (late, unknown, of cancelled jobs) count since the start. `instances` are the
    limits of workers, `tenants` what those use whose use is bounded."""

    scheduler: SchedulerStatistics
    jobs: LimiterStatistics
    sessions: int
    delivered: int
    dropped_reports: int
    lost_workers: int
    instances: Mapping[str, InstanceStatistics] = field(default_factory=dict)
    tenants: TenantStatistics | None = None


@dataclass(slots=True, eq=False)
class _Ticket:
    """A job on its way, until its last report is delivered."""

    session_id: str
    followed: Followed
    permit: Permit | None = None
    charge: Charge | None = None
    splice: Splice = field(default_factory=Splice)

    def settle(self, end: Callable[[Permit, int], None], now: int) -> None:
        """Ends the permit, unless there is none or it has ended: refused, or reported and not yet delivered."""
        if self.permit is not None and not self.permit.ended:
            end(self.permit, now)


class Dispatcher:
    """Every job that is submitted gets exactly one last report, unless it or its session is taken back before."""

    def __init__(
        self,
        workers: Workers,
        clock: Clock,
        scheduler: Scheduler | None = None,
        limiter: Limiter | None = None,
        instrument: Instrument | None = None,
        costs: Costs | None = None,
        instances: Instances | None = None,
    ) -> None:
        """`instrument` is told what became of every job; `costs` bounds what tenants use, `instances` how many jobs a
        worker has at one time. None: nothing does."""
        self._workers = workers
        self._clock = clock
        self._scheduler = scheduler or Scheduler()
        self._limiter = limiter or Limiter(FixedLimit(MOST_JOBS_INSIDE))
        self._instrument = instrument
        self._costs = costs
        self._instances = instances or Instances({})
        self._ticking: asyncio.TimerHandle | None = None
        self._listeners: dict[str, Deliver] = {}
        self._tenants: dict[str, str] = {}
        self._tickets: dict[str, _Ticket] = {}
        self._counts: Counter[str] = Counter()
        self._planning: asyncio.Handle | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_us = 0
        self._delivery = Delivery(self._deliver)

    def start(self) -> None:
        """Takes work from now on. Call it on the event loop that everything else runs on."""
        self._workers.listen(self)
        if isinstance(self._workers, WorkerMemory):
            self._tick(self._workers)

    def listen(self, session_id: str, deliver: Deliver, tenant: str = "") -> None:
        """Reports of this session's jobs go to `deliver`, on the event loop; it must neither wait nor raise. What they
        use is on `tenant`'s account."""
        if session_id in self._listeners:
            raise InvalidState("dispatcher", "listening", session_id)
        self._listeners[session_id] = deliver
        self._tenants[session_id] = tenant

    def touch(self, session_id: str) -> None:
        """The session's user is active now: what waits for it may move forward within its level. Cheap."""
        if session_id in self._listeners:
            self._scheduler.reprioritise(session_id, self._clock.now_us())

    def submit(self, job: Job, turn: int = 0) -> None:
        """Queues a job of a session's `turn` (for telemetry). Never waits: a refusal arrives as `Failed` with
        ``rate_limit_exceeded`` and a retry time, or with ``worker_failed`` where nobody can do such work. A speculative
        job that would make others wait is refused too; that is no overload, and counts for none.

        Raises `InvalidState` where nobody listens for the job's session.
        """
        if job.session_id not in self._listeners:
            raise InvalidState("dispatcher", "nobody listens", job.session_id)
        if job.id in self._tickets:
            raise InvalidState("dispatcher", "job exists", job.id)
        now = self._clock.now_us()
        ticket = self._tickets[job.id] = _Ticket(job.session_id, Followed(job, turn, now))
        if self._workers.hopeless(job.kind):
            self._fail(job, _nobody_for(job), now)
            return
        if job.speculative and not self._scheduler.spares(job, self._free()):
            message = f"{KIND_NAMES[job.kind]} has no time for guesses now"
            self._fail(job, Failed(job.id, REFUSED, message, reason=SPECULATIVE), now)
            return
        if self._costs is not None:
            charge = self._costs.reserve(self._tenants[job.session_id], job, now)
            if isinstance(charge, Refusal):
                self._fail(job, _used_up(job, charge), now)
                return
            ticket.charge, job = charge, charge.job
        permit = self._limiter.acquire(now)
        if isinstance(permit, Refusal):
            self._fail(job, _no_room(job, permit), now)
            return
        ticket.permit = permit
        refusal = self._scheduler.submit(job, now)
        if refusal is not None:
            self._fail(job, _no_room(job, refusal), now)
            return
        self._set_alarm(now)
        self._plan_soon()

    def cancel(self, job_id: str) -> None:
        """Takes a job back: it leaves the queue or the engine, and nothing of it is delivered after this call."""
        self._forget(job_id, self._scheduler.cancel(job_id))

    def drop_session(self, session_id: str) -> None:
        """Takes back all jobs of a session and stops delivering to it. Idempotent."""
        if self._listeners.pop(session_id, None) is None:
            return
        del self._tenants[session_id]
        for withdrawn in self._scheduler.drop_session(session_id):
            self._forget(withdrawn.job.id, withdrawn)
        undelivered = [id for id, ticket in self._tickets.items() if ticket.session_id == session_id]
        for job_id in undelivered:
            self._forget(job_id, None)

    def close(self) -> None:
        """Takes every job back and drops every session. Idempotent."""
        for session_id in list(self._listeners):
            self.drop_session(session_id)
        for handle in (self._planning, self._alarm, self._ticking):
            if handle is not None:
                handle.cancel()
        self._planning = self._alarm = self._ticking = None

    def statistics(self) -> DispatcherStatistics:
        return DispatcherStatistics(
            scheduler=self._scheduler.statistics(),
            jobs=self._limiter.statistics(),
            sessions=len(self._listeners),
            delivered=self._counts["delivered"],
            dropped_reports=self._counts["dropped_reports"],
            lost_workers=self._counts["lost_workers"],
            instances=self._instances.statistics(),
            tenants=self._costs.statistics() if self._costs is not None else None,
        )

    # --- WorkerEvents -------------------------------------------------------------------------------------------------

    def reported(self, worker_id: str, report: Report) -> None:
        ticket = self._tickets.get(report.job_id)
        if ticket is None or self._scheduler.worker_of(report.job_id) != worker_id:
            self._counts["dropped_reports"] += 1
            if ends_a_job(report):
                self._instances.ended(worker_id, report, self._clock.now_us(), wanted=False)
                self._plan_soon()
            return
        if ticket.followed.first_us is None:
            ticket.followed.first_us = self._clock.now_us()
            self._instances.answered(worker_id, report.job_id, ticket.followed.first_us)
        told = ticket.splice.receive(report)
        if told is None:
            return
        if ends_a_job(told):
            now = self._clock.now_us()
            self._scheduler.finish(report.job_id, now)
            ticket.settle(Permit.dropped if isinstance(told, Failed) else Permit.succeeded, now)
            self._note_end(ticket, told, now)
            if ends_a_job(report):
                self._instances.ended(worker_id, report, now, wanted=True)
            else:
                self._workers.cancel(worker_id, report.job_id)
            self._plan_soon()
        self._delivery.send(told)

    def worked(self, worker_id: str, job_id: str, began_us: int, ended_us: int) -> None:
        """A worker tells when it was really at a job; its last report follows."""
        ticket = self._tickets.get(job_id)
        if ticket is not None and self._scheduler.worker_of(job_id) == worker_id:
            ticket.followed.worked = (began_us, ended_us)

    def lost(self, worker_id: str) -> None:
        self._counts["lost_workers"] += 1
        now = self._clock.now_us()
        for job_id, ticket in self._tickets.items():
            if self._scheduler.worker_of(job_id) == worker_id:
                ticket.splice.restart()
                ticket.followed.lose()
        self._instances.lost(worker_id, now)
        for job in self._scheduler.lost(worker_id, now):
            self._fail(job, Failed(job.id, "worker_failed", f"{KIND_NAMES[job.kind]} failed repeatedly"), now)
        self._plan_soon()

    def freed(self) -> None:
        self._plan_soon()

    def gave_up(self, kind: WorkKind) -> None:
        now = self._clock.now_us()
        for job in self._scheduler.give_up(kind):
            self._fail(job, _nobody_for(job), now)

    # --- deciding -----------------------------------------------------------------------------------------------------

    def _plan_soon(self) -> None:
        """Plans once on the next tick, however many ask for it in this one: what arrives together is batched."""
        if self._planning is None:
            self._planning = asyncio.get_running_loop().call_soon(self._plan)

    def _plan(self) -> None:
        self._planning = None
        now = self._clock.now_us()
        plan = self._scheduler.plan(now, self._free())
        for assignment in plan.assignments:
            for job in assignment.jobs:
                self._tickets[job.id].followed.send(len(assignment.jobs), now)
            self._instances.sent(assignment.worker_id, [job.id for job in assignment.jobs], now)
            self._workers.send(assignment.worker_id, assignment.jobs)

    def _free(self) -> Mapping[str, FreeSlots]:
        return self._instances.cap(self._workers.free())

    def _tick(self, memory: WorkerMemory) -> None:
        """Once a second every worker's limit looks at its memory; what it then has room for is planned."""
        self._instances.tick(self._clock.now_us(), memory.memory_shares())
        self._plan_soon()
        self._ticking = asyncio.get_running_loop().call_later(TICK_US / US_PER_S, self._tick, memory)

    def _set_alarm(self, now: int) -> None:
        """Makes the timer stand at the nearest deadline."""
        deadline = self._scheduler.next_deadline()
        if self._alarm is not None:
            if deadline is not None and self._alarm_us <= deadline:
                return  # it rings early at worst, and is then set again
            self._alarm.cancel()
            self._alarm = None
        if deadline is not None:
            delay_s = max(0, deadline - now) / US_PER_S
            self._alarm = asyncio.get_running_loop().call_later(delay_s, self._expire)
            self._alarm_us = deadline

    def _expire(self) -> None:
        self._alarm = None
        now = self._clock.now_us()
        for gone in self._scheduler.expire(now):
            job = gone.job
            if gone.worker_id is not None:
                self._workers.cancel(gone.worker_id, job.id)
                self._instances.expired(gone.worker_id, job.id, now)
            message = f"{KIND_NAMES[job.kind]} did not answer in time"
            self._fail(job, Failed(job.id, "deadline_exceeded", message), now)
        self._set_alarm(now)
        self._plan_soon()

    # --- delivering ---------------------------------------------------------------------------------------------------

    def _deliver(self, report: Report) -> None:
        ticket = self._tickets.get(report.job_id)
        if ticket is None:
            self._counts["dropped_reports"] += 1
            return
        if ends_a_job(report):
            del self._tickets[report.job_id]
        self._counts["delivered"] += 1
        self._listeners[ticket.session_id](report)

    def _fail(self, job: Job, report: Failed, now: int) -> None:
        ticket = self._tickets[job.id]
        ticket.settle(Permit.dropped, now)
        self._note_end(ticket, report, now)
        self._delivery.send(report)

    def _note_end(self, ticket: _Ticket, report: Report | None, now: int) -> None:
        """Books and tells once what became of a job; None: it was taken back."""
        if self._costs is not None and ticket.charge is not None:
            self._costs.settle(ticket.charge, report, ticket.splice.characters, now)
        if self._instrument is not None and (record := ticket.followed.end(report, now)) is not None:
            self._instrument.job(record)

    def _forget(self, job_id: str, withdrawn: Withdrawn | None) -> None:
        if withdrawn is not None and withdrawn.worker_id is not None:
            self._workers.cancel(withdrawn.worker_id, job_id)
        ticket = self._tickets.pop(job_id, None)
        if ticket is not None:
            now = self._clock.now_us()
            ticket.settle(Permit.ignored, now)
            self._note_end(ticket, None, now)
        if withdrawn is not None:
            self._plan_soon()


def _nobody_for(job: Job) -> Failed:
    return Failed(job.id, "worker_failed", f"{KIND_NAMES[job.kind]} is not available")


def _used_up(job: Job, refusal: Refusal) -> Failed:
    message = "this request may use more than the quota of its key ever gives"
    if refusal.retry_after_s:
        message = f"the quota of this key is used up; try again in {refusal.retry_after_s:.1f} s"
    return Failed(job.id, REFUSED, message, refusal.retry_after_s, refusal.reason.value)


def _no_room(job: Job, refusal: Refusal) -> Failed:
    message = f"no room for more {job.kind} work now; try again in {refusal.retry_after_s:.1f} s"
    return Failed(job.id, REFUSED, message, refusal.retry_after_s, refusal.reason.value)
