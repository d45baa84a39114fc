"""What is read at a scrape of limits and quotas."""

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
