"""What becomes of every job is told once, whatever becomes of it."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.buffers.input_queue import QueueBounds
from orchestrator.flow.concurrency import FixedLimit
from orchestrator.flow.limiter import Limiter
from orchestrator.observability.instrument import Ending, JobRecord, Silent
from orchestrator.observability.traceparent import TraceParent
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.job_watch import Followed
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.scheduling.work import Failed, Replied, ReplyText, Report, Transcribe, Transcribed
from tests.scheduling.dispatching import House, on_virtual_time, tick
from tests.scheduling.fake_workers import FakeWorkers
from tests.scheduling.jobs import job
from tests.virtual_time import VirtualClock

MS = 1_000


class Told(Silent):
    """Keeps what it is told of jobs."""

    def __init__(self) -> None:
        self.jobs: list[JobRecord] = []

    def job(self, record: JobRecord) -> None:
        self.jobs.append(record)

    @property
    def endings(self) -> list[tuple[Ending, str]]:
        return [(one.outcome, one.error) for one in self.jobs]


class WatchedHouse(House):
    """A house whose jobs are told of."""

    def __init__(
        self, workers: FakeWorkers, scheduler: Scheduler | None = None, limiter: Limiter | None = None
    ) -> None:
        super().__init__(workers)
        self.told = Told()
        self.dispatcher = Dispatcher(workers, VirtualClock(), scheduler, limiter, instrument=self.told)
        self.dispatcher.start()
        self.listen("a")


def test_dispatcher_tells_of_a_job_with_its_times() -> None:
    """Its wait, its first report, when the worker was at it, its end; its turn, and the tokens that it took."""

    async def main() -> None:
        workers = FakeWorkers(w=FreeSlots("llm", 0))
        house = WatchedHouse(workers)
        began = VirtualClock().now_us()
        house.dispatcher.submit(job("j1", "a", level=2), turn=7)
        await asyncio.sleep(0.05)
        workers.slots["w"] = FreeSlots("llm", 4)
        house.dispatcher.freed()
        await asyncio.sleep(0.1)
        workers.report("w", ReplyText("j1", "Hi"))
        await asyncio.sleep(0.2)
        house.dispatcher.worked("w", "j1", began + 60 * MS, began + 340 * MS)
        house.dispatcher.worked("another", "j1", 0, 1)
        workers.report("w", Replied("j1", "stop", 30, 20, 10))
        (told,) = house.told.jobs
        assert (told.session_id, told.turn, told.kind, told.tier, told.work) == ("a", 7, "llm", 2, "reply")
        assert told.outcome is Ending.COMPLETED
        assert told.submitted_us == began
        assert told.sent_us == began + 50 * MS
        assert told.first_us == began + 150 * MS
        assert told.ended_us == began + 350 * MS
        assert told.worked == (began + 60 * MS, began + 340 * MS)
        assert (told.input_tokens, told.cached_tokens, told.output_tokens) == (30, 20, 10)

    on_virtual_time(main())


def test_dispatcher_tells_the_size_of_a_batch() -> None:
    """Of each of its jobs."""

    async def main() -> None:
        workers = FakeWorkers(w=FreeSlots("asr", 4))
        house = WatchedHouse(workers)
        house.listen("b", "c")
        for session in "abc":
            house.dispatcher.submit(job(session, session, work="asr"))
        await tick()
        for session in "abc":
            workers.report("w", Transcribed(session, "hello"))
        assert [one.batch for one in house.told.jobs] == [3, 3, 3]
        house.dispatcher.close()

    on_virtual_time(main())


def test_dispatcher_tells_why_a_job_was_refused() -> None:
    """A full queue, too many inside: each by its reason, which the session is told as well."""

    async def main() -> None:
        house = WatchedHouse(
            FakeWorkers(w=FreeSlots("llm", 0)), Scheduler(QueueBounds(jobs=1, watermark=1.0))
        )
        house.listen("b")
        house.dispatcher.submit(job("j1", "a"))
        house.dispatcher.submit(job("j2", "b"))
        await tick()
        assert house.told.endings == [(Ending.REFUSED, "queue_full")]
        (report,) = house.inbox["b"]
        assert isinstance(report, Failed)
        assert report.reason == "queue_full"
        house.dispatcher.close()
        inside = WatchedHouse(FakeWorkers(w=FreeSlots("llm", 4)), limiter=Limiter(FixedLimit(1)))
        inside.dispatcher.submit(job("j1", "a"))
        inside.dispatcher.submit(job("j2", "a"))
        assert [one.outcome for one in inside.told.jobs] == [Ending.REFUSED]
        assert inside.told.jobs[0].sent_us is None
        inside.dispatcher.close()

    on_virtual_time(main())


def test_dispatcher_tells_of_what_was_taken_back_and_what_came_too_late() -> None:
    """Cancelled is no failure; a deadline is one; nobody to do it is one."""

    async def main() -> None:
        workers = FakeWorkers(w=FreeSlots("llm", 4))
        house = WatchedHouse(workers)
        now = VirtualClock().now_us()
        house.dispatcher.submit(job("j1", "a", deadline_us=now + 100 * MS))
        await asyncio.sleep(0.2)
        house.dispatcher.submit(job("j2", "a"))
        await tick()
        house.dispatcher.cancel("j2")
        house.dispatcher.cancel("j2")
        workers.gone.add("asr")
        house.dispatcher.submit(job("j3", "a", work="asr"))
        house.dispatcher.submit(job("j4", "a"))
        house.dispatcher.drop_session("a")
        assert house.told.endings == [
            (Ending.FAILED, "deadline_exceeded"),
            (Ending.CANCELLED, ""),
            (Ending.FAILED, "worker_failed"),
            (Ending.CANCELLED, ""),
        ]

    on_virtual_time(main())


def test_dispatcher_tells_how_often_a_job_was_begun_again() -> None:
    """A lost worker's figures are forgotten with it: the wait goes on until the job is sent again."""

    async def main() -> None:
        workers = FakeWorkers(w=FreeSlots("llm", 4))
        house = WatchedHouse(workers)
        began = VirtualClock().now_us()
        house.dispatcher.submit(job("j1", "a"))
        await tick()
        workers.report("w", ReplyText("j1", "He"))
        house.dispatcher.worked("w", "j1", 1, 2)
        await asyncio.sleep(0.1)
        workers.die("w")
        await tick()
        workers.report("w", Replied("j1", "stop"))
        (told,) = house.told.jobs
        assert told.repeats == 1
        assert told.sent_us == began + 100 * MS
        assert told.worked is None

    on_virtual_time(main())


_REPORTS: list[Report | None] = [
    None,
    Failed("j", "rate_limit_exceeded", "no"),
    Failed("j", "worker_failed", "no"),
    Replied("j", "stop"),
    Replied("j", "cancelled"),
]


@given(st.lists(st.sampled_from(_REPORTS), min_size=1, max_size=4))
def test_followed_job_ends_once(reports: list[Report | None]) -> None:
    """The first end counts; drafts are marked as such."""
    followed = Followed(job("j", work=Transcribe(0, 16_000, draft=True)), 1, 0)
    told = [followed.end(report, 5) for report in reports]
    assert told[0] is not None
    assert told[0].draft
    assert told[0].work == "transcribe"
    assert set(told[1:]) <= {None}


def test_record_of_a_job_names_the_clients_span_of_its_session() -> None:
    """What is told of a job belongs to the trace of whoever it was done for, and of nobody else."""
    remote = TraceParent(7, 8, sampled=True)

    async def main() -> None:
        house = WatchedHouse(FakeWorkers(w=FreeSlots("llm", 0)))
        house.dispatcher.listen("traced", lambda _: None, remote=remote)
        for session in ("traced", "a"):
            house.dispatcher.submit(job(session, session))
            house.dispatcher.drop_session(session)
        assert {one.session_id: one.remote for one in house.told.jobs} == {"traced": remote, "a": None}

    on_virtual_time(main())
