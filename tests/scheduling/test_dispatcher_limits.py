"""Limits of workers under a dispatcher: what workers do not get done in time never raises them."""

import asyncio
from collections.abc import Mapping
from random import Random

import pytest

from orchestrator.clock import seconds
from orchestrator.flow.policies import LimitSettings, Policy
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.instances import Instances
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.work import Replied, ReplyText
from tests.scheduling.dispatching import on_virtual_time, tick
from tests.scheduling.fake_workers import FakeWorkers
from tests.scheduling.jobs import job
from tests.virtual_time import VirtualClock

BASE, PLACES = 6, 16


class LateWorkers(FakeWorkers):
    """One language model that lets go of a job, with a result that nobody awaits, some time after it was cancelled."""

    def __init__(self, seed: int) -> None:
        super().__init__(w=FreeSlots("llm", PLACES))
        self._random = Random(seed)

    def cancel(self, worker_id: str, job_id: str) -> None:
        super().cancel(worker_id, job_id)
        delay_s = self._random.uniform(0.01, 0.6)
        asyncio.get_running_loop().call_later(delay_s, self.report, worker_id, Replied(job_id, "stop"))

    def memory_shares(self) -> Mapping[str, float | None]:
        return {"w": self._random.choice([None, 0.2, 0.6])}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("answers", [False, True])
@pytest.mark.parametrize("policy", ["fixed", "reference", "aimd", "gradient"])
def test_dispatcher_steady_timeouts_never_raise_a_workers_limit(
    policy: Policy, answers: bool, seed: int
) -> None:
    """Two minutes of jobs that all miss their deadline, of which some may have begun to answer: equal durations, every
    one a loss. The limit never rises, and falls where it learns (F-L6)."""

    async def main() -> None:
        clock, workers, random = VirtualClock(), LateWorkers(seed), Random(seed)
        dispatcher = Dispatcher(
            workers, clock, instances=Instances({"llm": LimitSettings(policy, BASE, PLACES)})
        )
        dispatcher.start()
        limits: list[int] = []
        for number in range(480):
            now = clock.now_us()
            session = f"s{number}"
            dispatcher.listen(session, lambda _: None)
            dispatcher.submit(job(f"j{number}", session, created_us=now, deadline_us=now + seconds(2)))
            await asyncio.sleep(0.25)
            if answers and random.random() < 0.5 and (held := sorted(workers.holding["w"])):
                workers.report("w", ReplyText(random.choice(held), "and"))
            limits += [one.jobs.limit for one in dispatcher.statistics().instances.values()]
        assert limits == sorted(limits, reverse=True)
        assert limits[0] <= BASE
        assert policy == "fixed" or limits[-1] < BASE
        assert len(workers.cancelled) > 10
        dispatcher.close()

    on_virtual_time(main())


def test_dispatcher_limit_comes_back_once_jobs_are_done_in_time() -> None:
    """The other direction, so that the former is no dead limit: after the time-outs successes raise it again."""

    async def main() -> None:
        clock, workers = VirtualClock(), LateWorkers(1)
        dispatcher = Dispatcher(
            workers, clock, instances=Instances({"llm": LimitSettings("aimd", BASE, PLACES)})
        )
        dispatcher.start()
        for number in range(200):
            session = f"s{number}"
            dispatcher.listen(session, lambda _: None)
            now = clock.now_us()
            dispatcher.submit(job(session, session, created_us=now, deadline_us=now + seconds(1)))
            if number < 100:
                await asyncio.sleep(0.25)
                continue
            if number == 100:
                await asyncio.sleep(5)
                low = dispatcher.statistics().instances["w"].jobs.limit
                assert low < BASE
                continue
            await tick()
            workers.report("w", Replied(session, "stop"))
        assert dispatcher.statistics().instances["w"].jobs.limit > low
        dispatcher.close()

    on_virtual_time(main())
