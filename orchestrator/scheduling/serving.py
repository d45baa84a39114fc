"""What is served now: fed with how full the queues are, how late the event loop is and how turns end; asked by whoever
lets something in. A heart. Nothing of it is done per token.

A turn counts as failed where a worker failed it, it was not done in time or there was no room for it; not where its
client took it back, asked for what cannot be, or has used up its quota.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from msgspec import structs

from orchestrator.buffers.input_queue import InputQueue
from orchestrator.clock import US_PER_S, ms
from orchestrator.flow.limiter import Refusal, RefusalReason
from orchestrator.flow.shedding import DWELL_US, LAG_AT_FULL_S, Service, Sheddable, Shedding
from orchestrator.flow.slo import DEFAULT_RATE, SloGuard
from orchestrator.observability.instrument import Ending, JobRecord, RequestRecord, TurnRecord
from orchestrator.scheduling.job import Job, Tier
from orchestrator.scheduling.work import Reply, Speak, Transcribe

LOOK_US = ms(100)
"""How often one looks again, at most."""

SILVER_SHARE = 1 / 7
"""Of a kind's mark: so many silver turns may wait though silver turns are left out, so that silver stands not still."""

MOST_REMEMBERED = 1_024
_FAULTS = frozenset({"worker_failed", "deadline_exceeded"})


@dataclass(frozen=True, slots=True)
class ServiceStatistics:
    """`service` is what is served since `since_us` (None: since the start); `pressure` and `failed_share` are now.
    `changes` and `shed` (by what was left out) count since the start."""

    service: Service
    since_us: int | None
    pressure: float
    failed_share: float
    changes: int
    shed: dict[Sheddable, int]


class Serving:
    """An `Instrument` too: it hears how jobs and turns end."""

    def __init__(
        self, rate: float = DEFAULT_RATE, sheds: bool = True, lag_s: Callable[[], float] = lambda: 0.0
    ) -> None:
        """`rate` of turns may fail; `lag_s` tells how late the event loop has been lately. Without `sheds` only failed
        turns make a difference."""
        self._shedding = Shedding()
        self._guard = SloGuard(rate)
        self._sheds = sheds
        self._lag_s = lag_s
        self._by_quota: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._seen_us: int | None = None
        self._now = 0
        self._changes = 0
        self._shed = dict.fromkeys(Sheddable, 0)

    @property
    def service(self) -> Service:
        """What is served as of the last look."""
        return self._shedding.service

    def look(self, queue: InputQueue, now: int) -> bool:
        """Looks at how things are, where the last look is long enough ago; returns whether something is served now
        that was not, or the other way round."""
        if self._seen_us is not None and now - self._seen_us < LOOK_US:
            return False
        self._seen_us = self._now = now
        pressure = max(queue.pressure(now), self._lag_s() / LAG_AT_FULL_S) if self._sheds else 0.0
        self._guard.tick(now)
        changed = self._shedding.observe(pressure, self._guard.degraded, now)
        self._changes += changed
        return changed

    def refuses(self, job: Job, queue: InputQueue) -> Refusal | None:
        """Says when to come back with a job that is left out now; None where it is served."""
        what = _what(job)
        if what is None or self.service.allows(what):
            return None
        if what is Sheddable.SILVER_TURN and (
            queue.queued_at(job.kind, job.level) < SILVER_SHARE * queue.mark(job.kind)
        ):
            return None
        self._shed[what] += 1
        return Refusal(max(1.0, queue.expected_wait_s(job.kind, 1)), RefusalReason.SHED)

    def as_served(self, job: Job) -> Job:
        """Returns a job as it is done now: replies are short while the server is degraded."""
        most = self.service.max_reply_tokens
        work = job.work
        if most is None or not isinstance(work, Reply):
            return job
        if work.max_tokens is not None and work.max_tokens <= most:
            return job
        return structs.replace(job, work=structs.replace(work, max_tokens=most))

    def may_open(self) -> Refusal | None:
        """Says when to come back with a new session; None where it may be opened now."""
        if self.service.allows(Sheddable.SESSION):
            return None
        self._shed[Sheddable.SESSION] += 1
        return Refusal(DWELL_US / US_PER_S, RefusalReason.SHED)

    def statistics(self) -> ServiceStatistics:
        return ServiceStatistics(
            service=self.service,
            since_us=self._shedding.since_us,
            pressure=self._shedding.pressure,
            failed_share=self._guard.share(self._now),
            changes=self._changes,
            shed=dict(self._shed),
        )

    # --- Instrument ---------------------------------------------------------------------------------------------------

    def job(self, record: JobRecord) -> None:
        if record.outcome is Ending.REFUSED and record.error == RefusalReason.TENANT.value:
            self._by_quota[record.session_id, record.turn] = None
            if len(self._by_quota) > MOST_REMEMBERED:
                self._by_quota.popitem(last=False)

    def turn(self, record: TurnRecord) -> None:
        of_quota = (record.session_id, record.turn) in self._by_quota
        self._by_quota.pop((record.session_id, record.turn), None)
        match record.outcome:
            case Ending.COMPLETED:
                failed = False
            case Ending.FAILED if record.error in _FAULTS:
                failed = True
            case Ending.REFUSED if not of_quota:
                failed = True
            case _:
                return
        self._guard.ended(failed, max(self._now, record.ended_us))

    def request(self, record: RequestRecord) -> None:
        """Requests say nothing about turns."""


def _what(job: Job) -> Sheddable | None:
    """Returns what a job would be left out as; None for what is always served."""
    match job.work:
        case Transcribe(draft=True):
            return Sheddable.DRAFT
        case _ if job.speculative:
            return Sheddable.DRAFT
        case Speak():
            return Sheddable.SPEECH
        case Transcribe() | Reply() if job.level == Tier.SILVER:
            return Sheddable.SILVER_TURN
        case _:
            return None
