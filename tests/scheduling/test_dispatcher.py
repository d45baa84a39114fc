"""The dispatcher between sessions and workers, on virtual time with fake workers."""

import asyncio
import random

import pytest

from orchestrator.buffers.input_queue import QueueBounds
from orchestrator.clock import ms, seconds
from orchestrator.errors import InvalidState
from orchestrator.flow.concurrency import FixedLimit
from orchestrator.flow.limiter import Limiter
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.scheduling.work import (
    Failed,
    Replied,
    ReplyCall,
    ReplyText,
    Report,
    Transcribe,
    Transcribed,
)
from tests.scheduling.dispatching import House, llm, on_virtual_time, tick
from tests.scheduling.fake_workers import FakeWorkers
from tests.scheduling.jobs import job


def test_dispatcher_job_goes_to_a_worker_and_its_reports_to_its_session() -> None:
    """Pieces and end arrive in order, at the session that asked."""

    async def main() -> None:
        house = House(llm())
        house.listen("a", "b")
        house.dispatcher.submit(job("j1", "a"))
        house.dispatcher.submit(job("j2", "b"))
        await tick()
        assert house.workers.sent == [("w", ["j1", "j2"])], "what came in one tick is planned together"
        reports: list[Report] = [ReplyText("j1", "Hi"), ReplyText("j1", "!"), Replied("j1", "stop")]
        for report in reports:
            house.workers.report("w", report)
        await tick()
        assert house.inbox == {"a": reports, "b": []}
        counts = house.dispatcher.statistics()
        assert (counts.jobs.succeeded, counts.jobs.in_flight, counts.delivered) == (1, 1, 3)

    on_virtual_time(main())


def test_dispatcher_refusal_arrives_as_a_failed_report() -> None:
    """Submitting never raises and never waits: the answer says when to come back."""

    async def main() -> None:
        house = House(llm(0), Scheduler(QueueBounds(jobs=1, watermark=1.0)))
        house.listen("a", "b")
        house.dispatcher.submit(job("j1", "a"))
        house.dispatcher.submit(job("j2", "b"))
        assert house.inbox["b"] == [], "not from inside the call"
        await tick()
        (report,) = house.inbox["b"]
        assert isinstance(report, Failed)
        assert (report.job_id, report.code) == ("j2", "rate_limit_exceeded")
        assert report.retry_after_s > 0
        assert house.dispatcher.statistics().jobs.dropped == 1
        house.dispatcher.submit(job("j2", "b"))  # the id is free again
        await tick()
        assert len(house.inbox["b"]) == 2
        house.dispatcher.close()

    on_virtual_time(main())


def test_dispatcher_limit_of_jobs_inside_is_exact() -> None:
    """Two permits: the third job is refused, and let in once one has ended."""

    async def main() -> None:
        house = House(llm(2), limiter=Limiter(FixedLimit(2)))
        house.listen("a", "b", "c")
        for n, session in enumerate("abc"):
            house.dispatcher.submit(job(f"j{n}", session))
        await tick()
        assert [type(one) for one in house.inbox["c"]] == [Failed]
        house.workers.report("w", Replied("j0", "stop"))
        house.dispatcher.submit(job("j3", "c"))
        await tick()
        assert house.workers.sent[-1] == ("w", ["j3"])
        house.dispatcher.close()

    on_virtual_time(main())


def test_dispatcher_job_that_nobody_can_do_fails_at_once() -> None:
    """Where no worker of a kind can start the session hears so, long before the deadline; other kinds are done."""

    async def main() -> None:
        house = House(llm())
        house.workers.gone.add("asr")
        house.listen("a")
        house.dispatcher.submit(job("j1", "a", work="asr"))
        house.dispatcher.submit(job("j2", "a"))
        await tick()
        assert house.inbox["a"] == [Failed("j1", "worker_failed", "speech recognition is not available")]
        assert house.workers.sent == [("w", ["j2"])]
        house.dispatcher.close()

    on_virtual_time(main())


def test_dispatcher_refused_job_that_is_cancelled_stays_silent() -> None:
    """Nothing is delivered after a cancel, not even a refusal."""

    async def main() -> None:
        house = House(llm(), limiter=Limiter(FixedLimit(1)))
        house.listen("a")
        house.dispatcher.submit(job("j1", "a"))
        house.dispatcher.submit(job("j2", "a"))
        house.dispatcher.cancel("j2")
        await tick()
        assert house.inbox["a"] == []
        house.dispatcher.close()

    on_virtual_time(main())


def test_dispatcher_cancel_reaches_the_worker_and_silences_the_job() -> None:
    """Reports that were under way when the job was cancelled are dropped and counted; its permit is ignored."""

    async def main() -> None:
        house = House(llm())
        house.listen("a")
        house.dispatcher.submit(job("j1", "a"))
        await tick()
        house.workers.report("w", ReplyCall("j1", 0, "{", "under_way"))
        house.workers.report("w", ReplyText("j1", "behind it"))
        house.dispatcher.cancel("j1")
        house.workers.report("w", ReplyText("j1", "late"))
        house.workers.report("w", Replied("j1", "cancelled"))
        await tick()
        assert house.workers.cancelled == [("w", "j1")]
        assert house.inbox["a"] == []
        counts = house.dispatcher.statistics()
        assert (counts.jobs.ignored, counts.jobs.in_flight, counts.dropped_reports) == (1, 0, 4)

    on_virtual_time(main())


def test_dispatcher_words_go_at_once_and_never_past_another_report() -> None:
    """A word is there when `reported` returns, unless a report is before it on its way: the order is the worker's."""

    async def main() -> None:
        house = House(llm())
        house.listen("a")
        house.dispatcher.submit(job("j1", "a"))
        await tick()
        told: list[Report] = [
            ReplyText("j1", "One "),
            ReplyText("j1", "two "),
            ReplyCall("j1", 0, "{", "count"),
            ReplyText("j1", "three"),
            Replied("j1", "stop"),
        ]
        for report in told[:2]:
            house.workers.report("w", report)
        assert house.inbox["a"] == told[:2]
        for report in told[2:]:
            house.workers.report("w", report)
        assert house.inbox["a"] == told[:2]
        await tick()
        assert house.inbox["a"] == told
        house.dispatcher.close()

    on_virtual_time(main())


def test_dispatcher_session_that_fails_over_a_word_harms_nobody_else() -> None:
    """Not the worker that reports it, nor another session; the fault goes to the loop's exception handler."""

    async def main() -> None:
        house = House(llm(2))
        faults: list[object] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: faults.append(context["exception"])
        )

        def fail(report: Report) -> None:
            raise ZeroDivisionError

        house.dispatcher.listen("bad", fail)
        house.listen("a")
        house.dispatcher.submit(job("j1", "bad"))
        house.dispatcher.submit(job("j2", "a"))
        await tick()
        house.workers.report("w", ReplyText("j1", "x"))
        house.workers.report("w", ReplyText("j2", "y"))
        assert house.inbox["a"] == [ReplyText("j2", "y")]
        assert [type(fault) for fault in faults] == [ZeroDivisionError]
        house.dispatcher.close()

    on_virtual_time(main())


def test_dispatcher_cancel_of_an_ended_or_unknown_job_does_nothing() -> None:
    """Idempotent, and no permit ends twice."""

    async def main() -> None:
        house = House(llm())
        house.listen("a")
        house.dispatcher.submit(job("j1", "a"))
        await tick()
        house.workers.report("w", Replied("j1", "stop"))
        house.dispatcher.cancel("j1")  # reported, not yet delivered: still taken back
        house.dispatcher.cancel("j1")
        house.dispatcher.cancel("never")
        await tick()
        assert house.inbox["a"] == []
        assert house.workers.cancelled == []
        assert house.dispatcher.statistics().jobs.succeeded == 1

    on_virtual_time(main())


def test_dispatcher_gone_session_leaves_queue_and_engine() -> None:
    """A dropped session's jobs are cancelled wherever they are; others go on (F-L5)."""

    async def main() -> None:
        house = House(llm(1))
        house.listen("a", "b")
        for id, session in (("a1", "a"), ("a2", "a"), ("b1", "b")):
            house.dispatcher.submit(job(id, session))
        await tick()
        house.dispatcher.drop_session("a")
        house.dispatcher.drop_session("a")
        house.workers.report("w", Replied("a1", "cancelled"))
        await tick()
        assert house.workers.cancelled == [("w", "a1")]
        assert house.workers.sent == [("w", ["a1"]), ("w", ["b1"])]
        assert house.inbox["a"] == []
        with pytest.raises(InvalidState):
            house.dispatcher.submit(job("a3", "a"))
        house.dispatcher.close()
        assert house.dispatcher.statistics().jobs.in_flight == 0

    on_virtual_time(main())


def test_dispatcher_deadline_fires_by_timer_while_the_worker_is_busy() -> None:
    """A job queued behind one of 90 s expires after its 0.5 s, not when the worker is free (F-L4)."""

    async def main() -> None:
        house = House(llm(1))
        house.listen("a", "b")
        house.dispatcher.submit(job("long", "a", deadline_us=seconds(90)))
        house.dispatcher.submit(job("short", "b", deadline_us=ms(500)))
        await asyncio.sleep(0.499)
        assert house.inbox["b"] == []
        await asyncio.sleep(0.002)
        assert [(one.job_id, one.code) for one in house.inbox["b"] if isinstance(one, Failed)] == [
            ("short", "deadline_exceeded")
        ]
        await asyncio.sleep(90)
        assert [one.code for one in house.inbox["a"] if isinstance(one, Failed)] == ["deadline_exceeded"]
        assert house.workers.cancelled == [("w", "long")], "the engine is told"
        assert house.dispatcher.statistics().jobs.dropped == 2, "a time-out is a loss (F-L6)"

    on_virtual_time(main())


def test_dispatcher_later_job_with_an_earlier_deadline_moves_the_timer() -> None:
    """The timer stands at the nearest deadline, whatever the order of submission."""

    async def main() -> None:
        house = House(llm(0))
        house.listen("a")
        for id, at_s in (("late", 5), ("early", 1), ("middle", 3)):
            house.dispatcher.submit(job(id, "a", deadline_us=seconds(at_s)))
        await asyncio.sleep(1.001)
        assert [one.job_id for one in house.inbox["a"]] == ["early"]
        await asyncio.sleep(5)
        assert [one.job_id for one in house.inbox["a"]] == ["early", "middle", "late"]

    on_virtual_time(main())


def test_dispatcher_second_listener_and_second_job_of_one_id_are_our_fault() -> None:
    """Neither could be told apart from the first."""

    async def main() -> None:
        house = House(llm())
        house.listen("a")
        with pytest.raises(InvalidState):
            house.listen("a")
        house.dispatcher.submit(job("j1", "a"))
        with pytest.raises(InvalidState):
            house.dispatcher.submit(job("j1", "a"))
        house.dispatcher.close()

    on_virtual_time(main())


def test_dispatcher_session_that_fails_over_a_report_harms_no_other() -> None:
    """Its fault goes to the loop's exception handler; the other session gets its report."""

    async def main() -> None:
        house = House(llm())
        house.listen("b")
        faults: list[object] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: faults.append(context["exception"])
        )

        def broken(report: Report) -> None:
            raise KeyError(report.job_id)

        house.dispatcher.listen("a", broken)
        house.dispatcher.submit(job("j1", "a"))
        house.dispatcher.submit(job("j2", "b"))
        await tick()
        house.workers.report("w", Replied("j1", "stop"))
        house.workers.report("w", Replied("j2", "stop"))
        await tick()
        assert [type(fault) for fault in faults] == [KeyError]
        assert house.inbox["b"] == [Replied("j2", "stop")]

    on_virtual_time(main())


def test_dispatcher_64_streams_keep_their_order_under_random_delays() -> None:
    """Under load no stream's last chunk is processed before its first (F-L8)."""

    async def main() -> None:
        random_delay = random.Random(7)
        workers = FakeWorkers(w1=FreeSlots("asr", 8), w2=FreeSlots("asr", 8), w3=FreeSlots("asr", 8))
        house = House(workers)
        sessions = [f"s{n}" for n in range(64)]
        house.listen(*sessions)

        async def work() -> None:
            seen = 0
            while seen < 64 * 6:
                while seen < len(workers.sent):
                    worker, ids = workers.sent[seen]
                    seen += 1
                    tasks.create_task(answer(worker, ids))
                if sum(map(len, house.inbox.values())) == 64 * 6:
                    return
                await asyncio.sleep(0.001)

        async def answer(worker: str, ids: list[str]) -> None:
            await asyncio.sleep(random_delay.uniform(0.001, 0.3))
            for id in ids:
                workers.report(worker, Transcribed(id, id))

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(work())
            for chunk in range(6):
                for session in random_delay.sample(sessions, 64):
                    house.dispatcher.submit(job(f"{session}-{chunk}", session, Transcribe(0, 16_000)))
                await asyncio.sleep(random_delay.uniform(0.01, 0.1))
        for session in sessions:
            assert [one.job_id for one in house.inbox[session]] == [
                f"{session}-{chunk}" for chunk in range(6)
            ]

    on_virtual_time(main())
