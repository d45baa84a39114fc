"""The shell around the scheduler: carries jobs to workers and reports back to sessions. Nothing in it waits.

It lives on one event loop and needs no task of its own: submissions of one tick are planned together on the next, the
nearest deadline is a timer of the loop.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping

from orchestrator.buffers.transit import Transit
from orchestrator.clock import US_PER_S, Clock
from orchestrator.errors import InvalidState
from orchestrator.flow.concurrency import FixedLimit
from orchestrator.flow.limiter import Limiter, Permit, Refusal
from orchestrator.observability.faults import FAULTS
from orchestrator.observability.instrument import Instrument
from orchestrator.observability.refusal_lines import RefusalLines
from orchestrator.observability.traceparent import TraceParent
from orchestrator.scheduling import refusals
from orchestrator.scheduling.cost import Costs
from orchestrator.scheduling.delivery import Delivery
from orchestrator.scheduling.dispatcher_statistics import DispatcherStatistics
from orchestrator.scheduling.instances import TICK_US, Instances, WorkerMemory
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.job_watch import Followed
from orchestrator.scheduling.plan import Assignment, FreeSlots, Withdrawn
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.scheduling.serving import Serving
from orchestrator.scheduling.splice import ends_a_job
from orchestrator.scheduling.tickets import Deliver, Listener, Ticket, Tickets
from orchestrator.scheduling.work import Failed, LimitLeft, Replied, Report, WorkKind
from orchestrator.scheduling.worker_ports import Workers

log = logging.getLogger("chorale.flow")

MOST_JOBS_INSIDE = 2048
"""Default bound of jobs accepted and not yet ended, over all sessions."""

_LOOK_S = 0.25


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
        serving: Serving | None = None,
    ) -> None:
        """`instrument` is told what became of every job; `costs` bounds what tenants use, `instances` how many jobs a
        worker has at one time; `serving` says what is left out under pressure. None: nothing does."""
        self._workers = workers
        self._clock = clock
        self._scheduler = scheduler or Scheduler()
        self._limiter = limiter or Limiter(FixedLimit(MOST_JOBS_INSIDE))
        self._instrument = instrument
        self._costs = costs
        self._instances = instances or Instances({})
        self._serving = serving
        self._refusals = RefusalLines(log)
        self._looking: asyncio.TimerHandle | None = None
        self._ticking: asyncio.TimerHandle | None = None
        self._listeners: dict[str, Listener] = {}
        self._tickets = Tickets()
        self._by_job = self._tickets.by_job
        self._transit = Transit()
        self._counts: Counter[str] = Counter()
        self._planning: asyncio.Handle | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_us = 0
        self._delivery = Delivery(self._deliver)
        loops = ("plan", "deadlines", "limits", "service")
        self._plans, self._expiries, self._ticks, self._looks = map(FAULTS.guard, loops)

    def start(self) -> None:
        """Takes work from now on. Call it on the event loop that everything else runs on."""
        self._workers.listen(self)
        if isinstance(self._workers, WorkerMemory):
            self._tick(self._workers)
        if self._serving is not None:
            self._look_again(self._serving)

    def listen(
        self,
        session_id: str,
        deliver: Deliver,
        tenant: str = "",
        remote: TraceParent | None = None,
        tier: int | None = None,
    ) -> None:
        """Reports of this session's jobs go to `deliver`, on the event loop; it must neither wait nor raise."""
        if session_id in self._listeners:
            raise InvalidState("dispatcher", "listening", session_id)
        self._listeners[session_id] = Listener(deliver, tenant, remote, tier)

    def touch(self, session_id: str) -> None:
        """The session's user is active now: what waits for it may move forward within its level. Cheap."""
        if session_id in self._listeners:
            self._scheduler.reprioritise(session_id, self._clock.now_us())

    def book(self, tenant: str, tier: int) -> Refusal | None:
        """Puts one request on a tenant's account, for work that costs nothing by itself (`Costs.request`)."""
        if self._costs is None:
            return None
        now = self._clock.now_us()
        if (refusal := self._costs.request(tenant, tier, now)) is not None:
            self._refusals.note(tenant, "request", refusal.reason.value, now, refusal.retry_after_s)
        return refusal

    def left(self, tenant: str, tier: int) -> tuple[LimitLeft, ...]:
        """Returns what a tenant may still use; nothing of what has no quota."""
        return () if self._costs is None else self._costs.left(tenant, tier, self._clock.now_us())

    def places(self, kind: WorkKind) -> int | None:
        """Returns how many jobs of a kind may be with workers now; None where that is not known."""
        return self._instances.places(kind)

    def submit(self, job: Job, turn: int = 0) -> None:
        """Queues a job of a session's `turn` (for telemetry; `NO_TURN`: of a request). Never waits: a refusal arrives
        as `Failed` with ``rate_limit_exceeded`` and a retry time, or with ``worker_failed`` where nobody can do such
        work. A speculative job that would make others wait is refused too; that is no overload, and counts for none.

        Raises `InvalidState` where nobody listens for the job's session.
        """
        listener = self._listeners.get(job.session_id)
        if listener is None:
            raise InvalidState("dispatcher", "nobody listens", job.session_id)
        if job.id in self._by_job:
            raise InvalidState("dispatcher", "job exists", job.id)
        now = self._clock.now_us()
        followed = Followed(job, turn, now, remote=listener.remote)
        ticket = self._tickets.add(job.id, Ticket(job.session_id, followed))
        if self._workers.hopeless(job.kind):
            self._fail(job, refusals.nobody_for(job), now)
            return
        if job.speculative and not self._scheduler.spares(job, self._free()):
            self._fail(job, refusals.no_time_for_guesses(job), now)
            return
        if self._serving is not None:
            self._look(self._serving, now)
            running = self._scheduler.running_of(job.kind)
            shed = self._serving.refuses(job, self._scheduler.queue, running)
            if shed is not None:
                self._fail(job, refusals.left_out(job, shed), now)
                return
            job = self._serving.as_served(job)
        if self._costs is not None:
            charge = self._costs.reserve(listener.tenant, job, now, listener.tier)
            if isinstance(charge, Refusal):
                self._fail(job, refusals.used_up(job, charge), now)
                return
            ticket.charge, job = charge, charge.job
        permit = self._limiter.acquire(now)
        if isinstance(permit, Refusal):
            self._fail(job, refusals.no_room(job, permit), now)
            return
        ticket.permit = permit
        refusal = self._scheduler.submit(job, now)
        if refusal is not None:
            self._fail(job, refusals.no_room(job, refusal), now)
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
        for withdrawn in self._scheduler.drop_session(session_id):
            self._forget(withdrawn.job.id, withdrawn)
        for job_id in self._tickets.of_session(session_id):  # undelivered
            self._forget(job_id, None)

    def close(self) -> None:
        """Takes every job back and drops every session. Idempotent."""
        for session_id in list(self._listeners):
            self.drop_session(session_id)
        for handle in (self._planning, self._alarm, self._ticking, self._looking):
            if handle is not None:
                handle.cancel()
        self._planning = self._alarm = self._ticking = self._looking = None

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
            transit=self._transit.statistics(),
            service=self._serving.statistics() if self._serving is not None else None,
        )

    # --- WorkerEvents -------------------------------------------------------------------------------------------------

    def reported(self, worker_id: str, report: Report) -> None:
        ticket = self._by_job.get(report.job_id)
        if ticket is None or ticket.worker_id != worker_id:
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
            ticket.leave(self._transit)
            self._scheduler.finish(report.job_id, now)
            ticket.settle(Permit.dropped if isinstance(told, Failed) else Permit.succeeded, now)
            self._note_end(ticket, told, now)
            if isinstance(told, Replied) and self._costs is not None and ticket.charge is not None:
                tenant = self._listeners[ticket.session_id].tenant
                told = self._costs.with_limits(told, tenant, ticket.charge.tier, now)
            if ends_a_job(report):
                self._instances.ended(worker_id, report, now, wanted=True)
            else:
                self._workers.cancel(worker_id, report.job_id)
            self._plan_soon()
        self._delivery.send(told)

    def worked(self, worker_id: str, job_id: str, began_us: int, ended_us: int) -> None:
        """A worker tells when it was really at a job; its last report follows."""
        ticket = self._by_job.get(job_id)
        if ticket is not None and ticket.worker_id == worker_id:
            ticket.followed.worked = (began_us, ended_us)

    def lost(self, worker_id: str) -> None:
        self._counts["lost_workers"] += 1
        now = self._clock.now_us()
        for job_id in self._transit.held_by(worker_id):
            self._by_job[job_id].lose(self._transit)
        self._instances.lost(worker_id, now)
        for job in self._scheduler.lost(worker_id, now):
            self._fail(job, refusals.failed_repeatedly(job), now)
        self._plan_soon()

    def freed(self) -> None:
        self._plan_soon()

    def gave_up(self, kind: WorkKind) -> None:
        now = self._clock.now_us()
        for job in self._scheduler.give_up(kind):
            self._fail(job, refusals.nobody_for(job), now)

    # --- deciding -----------------------------------------------------------------------------------------------------

    def _plan_soon(self) -> None:
        """Plans once on the next tick, however many ask for it in this one: what arrives together is batched."""
        if self._planning is None:
            self._planning = asyncio.get_running_loop().call_soon(self._plan)

    def _plan(self) -> None:
        self._planning = None
        now = self._clock.now_us()
        for assignment in self._scheduler.plan(now, self._free()).assignments:
            with self._plans:  # what one worker cannot be given keeps nothing from the others
                self._assign(assignment, now)

    def _assign(self, assignment: Assignment, now: int) -> None:
        for job, waited_us in zip(assignment.jobs, assignment.waited_us, strict=True):
            ticket = self._by_job[job.id]
            ticket.enter(self._transit, job.id, assignment.worker_id)
            ticket.followed.send(len(assignment.jobs), now, waited_us)
        self._instances.sent(assignment.worker_id, [job.id for job in assignment.jobs], now)
        self._workers.send(assignment.worker_id, assignment.jobs)

    def _free(self) -> Mapping[str, FreeSlots]:
        return self._instances.cap(self._workers.free())

    def _tick(self, memory: WorkerMemory) -> None:
        """Once a second every worker's limit looks at its memory; what it then has room for is planned."""
        self._ticking = asyncio.get_running_loop().call_later(TICK_US / US_PER_S, self._tick, memory)
        with self._ticks:
            self._instances.tick(self._clock.now_us(), memory.memory_shares())
        self._plan_soon()

    def _look_again(self, serving: Serving) -> None:
        """Looks though nothing is submitted: that pressure is gone is seen too."""
        self._looking = asyncio.get_running_loop().call_later(_LOOK_S, self._look_again, serving)
        with self._looks:
            self._look(serving, self._clock.now_us())

    def _look(self, serving: Serving, now: int) -> None:
        """Changes what is served, if things have changed."""
        if not serving.look(self._scheduler.queue, now):
            return
        told = serving.statistics()
        self._instances.factor = told.service.limit_factor
        log.warning(
            "service changed",
            extra={
                "level": told.service.level,
                "degraded": told.service.degraded,
                "pressure": round(told.pressure, 2),
                "failed_share": round(told.failed_share, 4),
            },
        )
        self._plan_soon()

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
            with self._expiries:  # every one of them is told, and the next deadline has its alarm
                if gone.worker_id is not None:
                    self._workers.cancel(gone.worker_id, gone.job.id)
                    self._instances.expired(gone.worker_id, gone.job.id, now)
            self._fail(gone.job, refusals.too_late(gone.job), now)
        self._set_alarm(now)
        self._plan_soon()

    # --- delivering ---------------------------------------------------------------------------------------------------

    def _deliver(self, report: Report) -> None:
        ticket = self._by_job.get(report.job_id)
        if ticket is None:
            self._counts["dropped_reports"] += 1
            return
        if ends_a_job(report):
            self._tickets.pop(report.job_id)
        self._counts["delivered"] += 1
        self._listeners[ticket.session_id].deliver(report)

    def _fail(self, job: Job, report: Failed, now: int) -> None:
        ticket = self._by_job[job.id]
        ticket.leave(self._transit)
        ticket.settle(Permit.dropped, now)
        self._note_end(ticket, report, now)
        self._delivery.send(report)

    def _note_end(self, ticket: Ticket, report: Report | None, now: int) -> None:
        """Books and tells once what became of a job; None: it was taken back."""
        if self._costs is not None and ticket.charge is not None:
            self._costs.settle(ticket.charge, report, ticket.splice.characters, now)
        if isinstance(report, Failed):
            of = self._listeners.get(ticket.session_id)
            refusals.tell_refused(self._refusals, ticket.followed.job, of.tenant if of else "", report, now)
        if self._instrument is not None and (record := ticket.followed.end(report, now)) is not None:
            self._instrument.job(record)

    def _forget(self, job_id: str, withdrawn: Withdrawn | None) -> None:
        if withdrawn is not None and withdrawn.worker_id is not None:
            self._workers.cancel(withdrawn.worker_id, job_id)
        ticket = self._tickets.pop(job_id)
        if ticket is not None:
            ticket.leave(self._transit)
            now = self._clock.now_us()
            ticket.settle(Permit.ignored, now)
            self._note_end(ticket, None, now)
        if withdrawn is not None:
            self._plan_soon()
