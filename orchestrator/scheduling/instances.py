"""How many jobs each worker may have at one time: a limit of its own for each, which learns from what the worker does.

A heart. Nothing of it is done per token: a job is looked at when it is sent, first answered and ended.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from orchestrator.clock import US_PER_S
from orchestrator.errors import InvalidState
from orchestrator.flow.concurrency import Limit
from orchestrator.flow.limiter import Limiter, LimiterStatistics, Permit
from orchestrator.flow.policies import LimitSettings, Policy, limit_of
from orchestrator.scheduling.kinds import BATCHED_KINDS
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.work import REFUSED, Failed, Report, WorkKind

TICK_US = US_PER_S
"""How often limits look at their worker's memory."""

_OVERLOAD = ("deadline_exceeded", REFUSED)


@runtime_checkable
class WorkerMemory(Protocol):
    """Workers that know what they have in use."""

    def memory_shares(self) -> Mapping[str, float | None]:
        """Returns what every worker has in use of its memory, None where it has not told."""
        ...


@dataclass(frozen=True, slots=True)
class InstanceStatistics:
    """One worker's limit now, by which rule it was made, and what has come of its jobs."""

    policy: Policy
    jobs: LimiterStatistics


@dataclass(slots=True, eq=False)
class _Instance:
    kind: WorkKind
    settings: LimitSettings
    limit: Limit
    limiter: Limiter
    permits: dict[str, Permit] = field(default_factory=dict)
    """By job; as many as its places."""


class Instances:
    """A limiter for each worker, made when it is first seen, by the settings of its kind.

    A job is inside from when it is sent until the worker has let go of it: what was taken back counts until then. What
    is measured is the time to the first report, for the kinds that batch that is the result. Lost workers, deadlines
    and refusals are losses; what was taken back, and what failed by itself, says nothing.
    """

    def __init__(self, settings: Mapping[WorkKind, LimitSettings]) -> None:
        self._settings = settings
        self._instances: dict[str, _Instance] = {}
        self.factor = 1.0
        """What the limits are multiplied with: less than 1 while the server goes easy on itself."""

    def cap(self, free: Mapping[str, FreeSlots]) -> Mapping[str, FreeSlots]:
        """Returns the free places as far as the limits allow; a worker that may have no more is left out."""
        capped = {}
        for worker_id, slots in free.items():
            instance = self._instance(worker_id, slots.kind)
            jobs = slots.jobs
            if instance is not None:
                jobs = min(jobs, self._limit_of(instance) - instance.limiter.in_flight)
            if jobs > 0:
                capped[worker_id] = slots if jobs == slots.jobs else replace(slots, jobs=jobs)
        return capped

    def places(self, kind: WorkKind) -> int | None:
        """Returns how many jobs all workers of a kind may have now; None where none of them is known yet."""
        limits = [self._limit_of(one) for one in self._instances.values() if one.kind == kind]
        return sum(limits) or None

    def _limit_of(self, instance: _Instance) -> int:
        return max(1, int(instance.limit.value * self.factor))

    def sent(self, worker_id: str, job_ids: Sequence[str], now: int) -> None:
        """Jobs go to a worker. Raises `InvalidState` beyond what `cap` has left."""
        instance = self._instances.get(worker_id)
        if instance is None:
            return
        for job_id in job_ids:
            permit = instance.limiter.acquire(now)
            if not isinstance(permit, Permit):
                raise InvalidState(f"worker {worker_id}", "at its limit", job_id)
            instance.permits[job_id] = permit

    def answered(self, worker_id: str, job_id: str, now: int) -> None:
        """A worker's first report of a job is here."""
        instance = self._instances.get(worker_id)
        if instance is not None and instance.kind not in BATCHED_KINDS and job_id in instance.permits:
            instance.permits[job_id].answered(now)

    def ended(self, worker_id: str, report: Report, now: int, *, wanted: bool) -> None:
        """A worker let go of a job with its last report; `wanted`: somebody still waited for it."""
        permit = self._take(worker_id, report.job_id)
        if permit is None:
            return
        if not wanted:
            permit.ignored(now)
        elif not isinstance(report, Failed):
            permit.succeeded(now)
        elif report.code in _OVERLOAD or report.retry_after_s > 0:  # so an endpoint's 429 is told
            permit.dropped(now)
        else:
            permit.ignored(now)

    def expired(self, worker_id: str, job_id: str, now: int) -> None:
        """A worker did not get a job done in time. It still has it; that it is late is known now."""
        instance = self._instances.get(worker_id)
        if instance is not None and job_id in instance.permits:
            instance.permits[job_id].late(now)

    def lost(self, worker_id: str, now: int) -> None:
        """A worker is gone with everything it had."""
        instance = self._instances.get(worker_id)
        if instance is not None:
            permits, instance.permits = instance.permits, {}
            for permit in permits.values():
                permit.dropped(now)

    def tick(self, now: int, memory_shares: Mapping[str, float | None]) -> None:
        """Tells every limit how full its worker's memory is."""
        for worker_id, instance in self._instances.items():
            instance.limit.tick(now, memory_shares.get(worker_id))

    def statistics(self) -> Mapping[str, InstanceStatistics]:
        return {
            worker_id: InstanceStatistics(one.settings.policy, one.limiter.statistics())
            for worker_id, one in self._instances.items()
        }

    def _instance(self, worker_id: str, kind: WorkKind) -> _Instance | None:
        instance = self._instances.get(worker_id)
        if instance is None and (settings := self._settings.get(kind)) is not None:
            limit = limit_of(settings)
            instance = self._instances[worker_id] = _Instance(kind, settings, limit, Limiter(limit))
        return instance

    def _take(self, worker_id: str, job_id: str) -> Permit | None:
        instance = self._instances.get(worker_id)
        return None if instance is None else instance.permits.pop(job_id, None)
