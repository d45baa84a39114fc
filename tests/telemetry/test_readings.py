"""What is read at a scrape of limits and quotas."""

import pytest

from orchestrator.clock import seconds
from orchestrator.flow.policies import LimitSettings
from orchestrator.flow.tenants import TenantLimits
from orchestrator.flow.token_limiter import Quota, Resource
from orchestrator.observability import names
from orchestrator.scheduling.cost import Costs
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.instances import Instances
from orchestrator.scheduling.job import Job, Tier
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.scheduling.work import PromptMessage, Reply
from orchestrator.telemetry.readings import jobs
from tests.scheduling.dispatching import on_virtual_time, tick
from tests.scheduling.fake_workers import FakeWorkers
from tests.virtual_time import VirtualClock


def test_jobs_tell_the_limits_of_workers_and_the_use_of_tenants() -> None:
    """Each worker's limit with its policy and what it has; of tenants sums by tier, never their names."""

    async def main() -> None:
        dispatcher = Dispatcher(
            FakeWorkers(w=FreeSlots("llm", 8)),
            VirtualClock(),
            costs=Costs(TenantLimits({Tier.SILVER: {Resource.LLM_TOKENS: Quota(100)}})),
            instances=Instances({"llm": LimitSettings("aimd", 3, 8)}),
        )
        dispatcher.start()
        work = Reply((PromptMessage("user", "x" * 20),), max_tokens=50)
        for number in range(2):
            dispatcher.listen(f"s{number}", lambda _: None, "acme")
            dispatcher.submit(Job(f"j{number}", f"s{number}", work, Tier.SILVER, 3, 0, seconds(60)))
        await tick()
        told = [(spec.name, dict(about), value) for spec, about, value in jobs(dispatcher)()]
        assert (names.LIMIT.name, {"chorale.worker": "w", "chorale.policy": "aimd"}, 3) in told
        assert (names.LIMIT_IN_FLIGHT.name, {"chorale.worker": "w", "chorale.policy": "aimd"}, 1) in told
        use = {
            about["chorale.outcome"]: value
            for name, about, value in told
            if name == names.QUOTA_USE.name
            and about["chorale.tier"] == "silver"
            and about["chorale.resource"] == "llm_tokens"
        }
        assert use == {"reserved": 60, "refused": 60, "returned": 0, "overrun": 0}
        assert "acme" not in str(told)
        dispatcher.close()

    on_virtual_time(main())


def test_jobs_without_limits_tell_of_none() -> None:
    """No series for what nothing bounds."""

    async def main() -> None:
        dispatcher = Dispatcher(FakeWorkers(), VirtualClock())
        told = {spec.name for spec, _, _ in jobs(dispatcher)()}
        assert not told & {names.LIMIT.name, names.QUOTA_USE.name}

    on_virtual_time(main())


def test_jobs_tell_what_makes_each_tiers_work_wanted() -> None:
    """Three weights of each tier, as they are adapted: a tier whose bound is missed has more lateness."""

    async def main() -> None:
        scheduler = Scheduler()
        dispatcher = Dispatcher(FakeWorkers(), VirtualClock(), scheduler)
        for number in range(100):
            late = Job(f"j{number}", f"s{number}", Reply(()), Tier.GOLD, 2, 0, seconds(3600))
            scheduler.submit(late, 0)
            scheduler.plan(seconds(10), {"w": FreeSlots("llm", 1)})
            scheduler.finish(late.id, seconds(10))
        told = {
            (about["chorale.tier"], about["chorale.weight"]): value
            for spec, about, value in jobs(dispatcher)()
            if spec.name == names.WEIGHT.name
        }
        assert told["gold", "lateness"] == pytest.approx(0.6)
        assert told["gold", "freshness"] == pytest.approx(0.24)
        assert told["gold", "affinity"] == pytest.approx(0.16)
        assert told["silver", "lateness"] == pytest.approx(0.5)
        assert told.keys() == {
            (tier, one)
            for tier in ("platinum", "gold", "silver")
            for one in ("lateness", "freshness", "affinity")
        }

    on_virtual_time(main())


def test_jobs_tell_how_many_tenants_found_no_room() -> None:
    """A full table of accounts in use is seen by who scrapes, not only by who is turned away."""

    async def main() -> None:
        limits = TenantLimits({Tier.SILVER: {Resource.LLM_TOKENS: Quota(100)}}, capacity=1)
        dispatcher = Dispatcher(FakeWorkers(w=FreeSlots("llm", 8)), VirtualClock(), costs=Costs(limits))
        dispatcher.start()
        for number in range(3):
            dispatcher.listen(f"s{number}", lambda _: None, f"tenant {number}")
            work = Reply((), max_tokens=5)
            dispatcher.submit(Job(f"j{number}", f"s{number}", work, Tier.SILVER, 3, 0, seconds(60)))
        await tick()
        told = {spec.name: value for spec, _, value in jobs(dispatcher)()}
        assert told[names.QUOTA_TENANTS.name] == 1
        assert told[names.QUOTA_TURNED_AWAY.name] == 2
        dispatcher.close()

    on_virtual_time(main())
