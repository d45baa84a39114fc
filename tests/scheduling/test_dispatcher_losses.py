"""The dispatcher when workers die: repeats, and what sessions are told of them."""

from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.work import Failed, Replied, ReplyText
from tests.scheduling.dispatching import House, llm, on_virtual_time, tick
from tests.scheduling.fake_workers import FakeWorkers
from tests.scheduling.jobs import job


def test_dispatcher_lost_worker_repeats_without_telling_twice() -> None:
    """The repeat goes on where the first run broke off; the session notices nothing."""

    async def main() -> None:
        house = House(llm())
        house.listen("a")
        house.dispatcher.submit(job("j1", "a"))
        await tick()
        house.workers.report("w", ReplyText("j1", "Hello "))
        house.workers.die("w")
        await tick()
        assert house.workers.sent == [("w", ["j1"]), ("w", ["j1"])]
        for report in (ReplyText("j1", "Hello "), ReplyText("j1", "world"), Replied("j1", "stop")):
            house.workers.report("w", report)
        await tick()
        assert house.inbox["a"] == [
            ReplyText("j1", "Hello "),
            ReplyText("j1", "world"),
            Replied("j1", "stop"),
        ]
        assert house.dispatcher.statistics().lost_workers == 1

    on_virtual_time(main())


def test_dispatcher_repeat_that_differs_fails_and_is_stopped() -> None:
    """A reply that came out differently is not mixed with its first half; the engine is told to stop."""

    async def main() -> None:
        house = House(llm())
        house.listen("a")
        house.dispatcher.submit(job("j1", "a"))
        await tick()
        house.workers.report("w", ReplyText("j1", "Yes"))
        house.workers.die("w")
        await tick()
        house.workers.report("w", ReplyText("j1", "No"))
        house.workers.report("w", ReplyText("j1", "!"))
        await tick()
        assert [type(one) for one in house.inbox["a"]] == [ReplyText, Failed]
        assert house.workers.cancelled == [("w", "j1")]

    on_virtual_time(main())


def test_dispatcher_job_that_kills_every_worker_fails_once() -> None:
    """After two repeats the turn fails, with a message fit for a client."""

    async def main() -> None:
        house = House(llm())
        house.listen("a")
        house.dispatcher.submit(job("j1", "a"))
        for _ in range(3):
            await tick()
            house.workers.die("w")
        await tick()
        (report,) = house.inbox["a"]
        assert isinstance(report, Failed)
        assert report.code == "worker_failed"
        assert len(house.workers.sent) == 3

    on_virtual_time(main())


def test_dispatcher_fails_what_waits_once_nobody_can_do_it() -> None:
    """A job that was queued before its kind became hopeless fails then, at once and once, not at its deadline."""

    async def main() -> None:
        house = House(llm(slots=1))
        house.listen("a", "b")
        house.dispatcher.submit(job("j1", "a"))
        house.dispatcher.submit(job("j2", "b"))
        await tick()
        house.workers.slots.clear()
        house.workers.gone.add("llm")
        assert house.workers.events is not None
        house.workers.events.lost("w")
        house.workers.events.gave_up("llm")
        await tick()
        for session in "ab":
            (report,) = house.inbox[session]
            assert isinstance(report, Failed)
            assert (report.code, report.message) == ("worker_failed", "the language model is not available")
        statistics = house.dispatcher.statistics()
        assert statistics.jobs.in_flight == 0

    on_virtual_time(main())


def test_dispatcher_report_of_a_worker_that_no_longer_has_the_job_is_dropped() -> None:
    """After the repeat has moved to another worker, the first one's voice does not count."""

    async def main() -> None:
        house = House(FakeWorkers(w1=FreeSlots("llm", 1), w2=FreeSlots("llm", 1)))
        house.listen("a")
        house.dispatcher.submit(job("j1", "a"))
        await tick()
        del house.workers.slots["w1"]
        house.workers.die("w1")
        await tick()
        assert house.workers.sent[-1] == ("w2", ["j1"])
        house.workers.report("w1", Replied("j1", "stop"))
        await tick()
        assert house.inbox["a"] == []
        assert house.dispatcher.statistics().dropped_reports == 1
        house.dispatcher.close()

    on_virtual_time(main())
