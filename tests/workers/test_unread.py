"""A worker that leaves its pipe unread, under a real dispatcher and a real pipe."""

import asyncio
from collections.abc import Sequence

from orchestrator.scheduling.job import Job
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.splice import ends_a_job
from orchestrator.scheduling.work import Replied, Reply, Report
from orchestrator.workers.frames import Cancel, Run, Task
from orchestrator.workers.pipe import Pipe
from tests.scheduling.dispatching import House, on_virtual_time, tick
from tests.scheduling.fake_workers import FakeWorkers
from tests.scheduling.jobs import job


class UnreadWorkers(FakeWorkers):
    """Two language models behind pipes of which nobody reads the first: its bound is a few hundred bytes."""

    def __init__(self) -> None:
        super().__init__(deaf=FreeSlots("llm", 2), good=FreeSlots("llm", 2))
        self.busy = False
        self.lost_within_a_call = 0
        self.losses = 0
        self.pipes = {
            "deaf": Pipe(lambda _: None, self._ended, most_unread=400),
            "good": Pipe(lambda _: None, self._ended),
        }
        for pipe in self.pipes.values():
            pipe.connection_made(_Unread())
            pipe.pause_writing()

    def send(self, worker_id: str, jobs: Sequence[Job]) -> None:
        super().send(worker_id, jobs)
        self._call(worker_id, Run(tuple(Task(one.id, one.work) for one in jobs)))

    def cancel(self, worker_id: str, job_id: str) -> None:
        super().cancel(worker_id, job_id)
        self._call(worker_id, Cancel(job_id))

    def _call(self, worker_id: str, message: Run | Cancel) -> None:
        self.busy = True
        self.pipes[worker_id].send(message)
        self.busy = False

    def _ended(self, why: str) -> None:
        assert why == "does not read what it is sent"
        self.lost_within_a_call += self.busy
        self.losses += 1
        self.slots["deaf"] = FreeSlots("llm", 0)
        self.die("deaf")


class _Unread(asyncio.WriteTransport):
    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        raise AssertionError("nobody reads")

    def abort(self) -> None:
        """Nothing to cut."""


def test_dispatcher_hears_of_a_worker_that_does_not_read_after_it_has_planned() -> None:
    """A plan is carried out to its end before its worker counts as lost; each job still ends once, elsewhere."""

    async def main() -> None:
        workers = UnreadWorkers()
        house = House(workers)
        house.listen(*(f"s{n}" for n in range(4)))
        work = Reply((), cache_key="x" * 300)
        workers.pipes["deaf"]._unread.put_nowait(bytes(300))
        for n in range(4):
            house.dispatcher.submit(job(f"j{n}", f"s{n}", work))
        await tick()
        assert workers.losses == 1
        assert workers.lost_within_a_call == 0
        for _ in range(8):
            for held in sorted(workers.holding["good"]):
                workers.report("good", Replied(held, "stop"))
            await tick()
        ends = [report for inbox in house.inbox.values() for report in inbox if ends_a_job(report)]
        assert sorted(report.job_id for report in ends) == [f"j{n}" for n in range(4)]
        assert all(isinstance(report, Replied) for report in ends)

    on_virtual_time(main())


def test_dispatcher_may_cancel_what_a_worker_that_does_not_read_has() -> None:
    """Taking a session back fills the pipe: the worker is lost once the session is gone, with all its jobs."""

    async def main() -> None:
        workers = UnreadWorkers()
        workers.slots["good"] = FreeSlots("llm", 0)
        house = House(workers)
        house.listen("s0", "s1")
        reports: list[Report] = house.inbox["s1"]
        for n in range(2):
            house.dispatcher.submit(job(f"j{n}", f"s{n}", Reply((), cache_key="x" * 30)))
        await tick()
        assert sorted(workers.holding["deaf"]) == ["j0", "j1"]
        held = workers.pipes["deaf"]._unread
        held.put_nowait(bytes(400 - held.held))
        house.dispatcher.drop_session("s0")
        assert workers.losses == 0
        await tick()
        assert workers.losses == 1
        assert workers.lost_within_a_call == 0
        workers.slots["good"] = FreeSlots("llm", 2)
        assert workers.events is not None
        workers.events.freed()
        await tick()
        workers.report("good", Replied("j1", "stop"))
        await tick()
        assert [type(one) for one in reports] == [Replied]
        assert house.inbox["s0"] == []

    on_virtual_time(main())
