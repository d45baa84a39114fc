"""A fault in one of the dispatcher's timers ends neither the timer nor what it would have done for others."""

import asyncio
from collections.abc import Mapping, Sequence

from orchestrator.clock import seconds
from orchestrator.flow.policies import LimitSettings
from orchestrator.observability.faults import FAULTS
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.instances import Instances
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.serving import Serving
from orchestrator.scheduling.work import Failed, Report
from tests.scheduling.dispatching import House, llm, on_virtual_time, tick
from tests.scheduling.fake_workers import FakeWorkers
from tests.scheduling.jobs import job
from tests.virtual_time import VirtualClock


class Broken(Exception):
    """Nothing that anybody would have foreseen."""


class ForgetfulWorkers(FakeWorkers):
    """Fails the first three times that it is asked for its memory."""

    asked = 0

    def memory_shares(self) -> Mapping[str, float | None]:
        self.asked += 1
        if self.asked <= 3:
            raise Broken
        return {}


def counted(loop: str) -> int:
    return FAULTS.counts().get(loop, 0)


def test_dispatcher_looks_at_memory_again_after_a_look_that_failed() -> None:
    """Once a second, whatever came of the last one; each fault is counted."""

    async def main() -> None:
        before = counted("limits")
        workers = ForgetfulWorkers(w=FreeSlots("llm", 1))
        dispatcher = Dispatcher(workers, VirtualClock(), instances=Instances({"llm": LimitSettings()}))
        dispatcher.start()
        await asyncio.sleep(10)
        assert workers.asked >= 10
        assert counted("limits") == before + 3
        dispatcher.close()

    on_virtual_time(main())


def test_dispatcher_looks_at_what_is_served_again_after_a_look_that_failed() -> None:
    """Shedding that stood still after one fault would leave things out for ever."""

    async def main() -> None:
        asked = 0

        def lag_s() -> float:
            nonlocal asked
            asked += 1
            if asked <= 3:
                raise Broken
            return 0.0

        before = counted("service")
        dispatcher = Dispatcher(FakeWorkers(), VirtualClock(), serving=Serving(lag_s=lag_s))
        dispatcher.start()
        await asyncio.sleep(10)
        assert asked >= 20
        assert counted("service") == before + 3
        dispatcher.close()

    on_virtual_time(main())


def test_dispatcher_tells_every_deadline_though_a_worker_cannot_be_told() -> None:
    """Three jobs are late in one moment, the worker fails over the first cancel: all three are told, and so is one
    that is late afterwards."""

    class Deaf(FakeWorkers):
        def cancel(self, worker_id: str, job_id: str) -> None:
            if job_id == "j0":
                raise Broken
            super().cancel(worker_id, job_id)

    async def main() -> None:
        before = counted("deadlines")
        workers = Deaf(w=FreeSlots("llm", 4))
        house = House(workers)
        house.listen("s0", "s1", "s2", "s3")
        for n, late_s in enumerate((1, 1, 1, 2)):
            house.dispatcher.submit(job(f"j{n}", f"s{n}", deadline_us=seconds(late_s)))
        await asyncio.sleep(1.5)
        assert [len(house.inbox[f"s{n}"]) for n in range(4)] == [1, 1, 1, 0]
        await asyncio.sleep(1)
        ends: list[Report] = [house.inbox[f"s{n}"][0] for n in range(4)]
        assert {one.code for one in ends if isinstance(one, Failed)} == {"deadline_exceeded"}
        assert counted("deadlines") == before + 1

    on_virtual_time(main())


def test_dispatcher_gives_work_to_one_worker_though_another_cannot_be_given_any() -> None:
    """A plan for two goes to the second though the first fails; the deadline ends what that one was to do."""

    class Half(FakeWorkers):
        def send(self, worker_id: str, jobs: Sequence[Job]) -> None:
            if worker_id == "a":
                raise Broken
            super().send(worker_id, jobs)

    async def main() -> None:
        before = counted("plan")
        workers = Half(a=FreeSlots("llm", 1), b=FreeSlots("llm", 1))
        house = House(workers)
        house.listen("s0", "s1")
        for n in range(2):
            house.dispatcher.submit(job(f"j{n}", f"s{n}", deadline_us=seconds(5)))
        await tick()
        assert [worker for worker, _ in workers.sent] == ["b"]
        assert counted("plan") == before + 1
        await asyncio.sleep(6)
        assert [len(house.inbox[f"s{n}"]) for n in range(2)] == [1, 1]

    on_virtual_time(main())


def test_dispatcher_that_never_fails_counts_nothing() -> None:
    """The counts are those of faults, not of turns."""

    async def main() -> None:
        before = FAULTS.counts()
        house = House(llm())
        house.listen("s")
        house.dispatcher.submit(job("j", "s"))
        await asyncio.sleep(3)
        assert {loop: count - before.get(loop, 0) for loop, count in FAULTS.counts().items()}.keys() >= {
            "plan"
        }
        assert all(count == before.get(loop, 0) for loop, count in FAULTS.counts().items())

    on_virtual_time(main())
