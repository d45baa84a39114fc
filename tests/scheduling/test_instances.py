"""A limit for each worker: what is sent never passes it, every job that was sent is let go of once."""

import asyncio
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.clock import ms, seconds
from orchestrator.errors import InvalidState
from orchestrator.flow.policies import LimitSettings, Policy
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.instances import Instances
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.work import Failed, Replied, ReplyText, Report, Transcribed, WorkKind
from tests.scheduling.dispatching import on_virtual_time, tick
from tests.scheduling.fake_workers import FakeWorkers
from tests.scheduling.jobs import job
from tests.virtual_time import VirtualClock

FREE: Mapping[str, FreeSlots] = {"w": FreeSlots("llm", 8)}


def _instances(policy: Policy = "aimd", base: int = 4, most: int = 8, kind: WorkKind = "llm") -> Instances:
    return Instances({kind: LimitSettings(policy, base, most)})


def _room(instances: Instances, free: Mapping[str, FreeSlots] = FREE) -> int:
    capped = instances.cap(free)
    return capped["w"].jobs if "w" in capped else 0


def test_instances_cap_what_is_free() -> None:
    """The limit of the worker less what it has; at its limit it is left out, and other kinds are as they are."""
    instances = _instances(base=2)
    assert _room(instances) == 2
    instances.sent("w", ["a"], 0)
    assert _room(instances) == 1
    instances.sent("w", ["b"], 0)
    assert _room(instances) == 0
    with pytest.raises(InvalidState):
        instances.sent("w", ["c"], 0)
    voice = {"v": FreeSlots("speech", 3, 0.4)}
    assert instances.cap(voice) == voice
    instances.sent("v", ["d"], 0)  # nobody counts it


def test_instances_never_offer_more_than_is_free() -> None:
    """A limit above what the worker has room for changes nothing, least of all the memory that it tells."""
    free = {"w": FreeSlots("llm", 3, 0.25)}
    assert _instances(base=8).cap(free) == free


def test_instances_count_what_was_taken_back_until_it_is_let_go_of() -> None:
    """The worker still has it: its place is free with its last report, and the limit learns nothing."""
    instances = _instances(base=1)
    instances.cap(FREE)
    instances.sent("w", ["a"], 0)
    assert _room(instances) == 0
    instances.ended("w", Failed("a", "cancelled", "taken back"), seconds(90), wanted=False)
    assert _room(instances) == 1
    told = instances.statistics()["w"]
    assert (told.policy, told.jobs.ignored, told.jobs.limit) == ("aimd", 1, 1)


@pytest.mark.parametrize(
    ("report", "limit"),
    [
        (Replied("a", "stop"), 4),
        (Failed("a", "worker_failed", "a poisonous job"), 4),
        (Failed("a", "rate_limit_exceeded", "the endpoint is full", 3.0), 2),
        (
            Failed(
                "a", "worker_failed", "the language model failed over this request; try again in 7 s", 7.0
            ),
            2,
        ),
    ],
)
def test_instances_learn_from_how_a_job_ended(report: Report, limit: int) -> None:
    """Refused further down is a loss, as an endpoint's 429 is, which names a time to come back; a fault of one job says
    nothing about how many there may be."""
    instances = _instances()
    instances.cap(FREE)
    instances.sent("w", ["a"], 0)
    instances.ended("w", report, ms(10), wanted=True)
    assert instances.statistics()["w"].jobs.limit == limit


def test_instances_measure_the_time_to_the_first_report() -> None:
    """A long answer that began at once is quick; one that began late is slow, however it went on."""
    instances = _instances()
    instances.cap(FREE)
    instances.sent("w", ["long", "late"], 0)
    instances.answered("w", "long", ms(200))
    instances.ended("w", Replied("long", "stop"), seconds(60), wanted=True)
    assert instances.statistics()["w"].jobs.limit == 4
    instances.answered("w", "late", seconds(2))
    instances.ended("w", Replied("late", "stop"), seconds(60), wanted=True)
    assert instances.statistics()["w"].jobs.limit == 2


def test_instances_measure_the_result_of_what_is_done_in_batches() -> None:
    """Recognition answers once, with its result."""
    instances = _instances(kind="asr")
    instances.cap({"w": FreeSlots("asr", 8)})
    instances.sent("w", ["a"], 0)
    instances.answered("w", "a", 1)
    instances.ended("w", Transcribed("a", "hello"), seconds(3), wanted=True)
    assert instances.statistics()["w"].jobs.limit == 2


def test_instances_deadline_is_a_loss_at_once_and_only_once() -> None:
    """The limit falls when the time is over, not when the worker lets go; the place is kept until then (F-L6)."""
    instances = _instances()
    instances.cap(FREE)
    instances.sent("w", ["a"], 0)
    instances.expired("w", "a", seconds(5))
    assert instances.statistics()["w"].jobs.limit == 2
    assert instances.statistics()["w"].jobs.in_flight == 1
    instances.ended("w", Failed("a", "cancelled", "taken back"), seconds(60), wanted=False)
    assert instances.statistics()["w"].jobs.limit == 2
    assert instances.statistics()["w"].jobs.in_flight == 0


def test_instances_lost_worker_has_nothing_inside() -> None:
    """All its places are free again when it is back, and what it lost is a loss."""
    instances = _instances()
    instances.cap(FREE)
    instances.sent("w", ["a", "b"], 0)
    instances.lost("w", seconds(1))
    instances.ended("w", Replied("a", "stop"), seconds(2), wanted=True)  # an echo
    told = instances.statistics()["w"].jobs
    assert (told.in_flight, told.dropped, told.limit) == (0, 2, 2)


def test_instances_tick_tells_each_limit_its_own_memory() -> None:
    """A full worker takes less, an empty one as before, and one that has not told too."""
    instances = _instances("reference", base=8)
    free = {name: FreeSlots("llm", 8) for name in ("full", "empty", "silent")}
    instances.cap(free)
    instances.tick(seconds(1), {"full": 0.95, "empty": 0.1, "silent": None})
    assert {name: slots.jobs for name, slots in instances.cap(free).items()} == {
        "full": 4,
        "empty": 8,
        "silent": 8,
    }


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["send", "end", "expire", "lose", "tick"]), st.integers(0, 7), st.booleans()
        ),
        max_size=100,
    ),
    policy=st.sampled_from(["fixed", "reference", "aimd", "gradient"]),
)
def test_instances_permits_balance_in_any_order(steps: list[tuple[str, int, bool]], policy: Policy) -> None:
    """Send, end, expire, lose, in any order: what is inside is what was sent and not let go of."""
    instances, inside, now = _instances(policy), list[str](), 0
    instances.cap(FREE)
    for number, (verb, which, wanted) in enumerate(steps):
        now += ms(100 * which)
        if verb == "send" and _room(instances):
            instances.sent("w", [f"j{number}"], now)
            inside.append(f"j{number}")
        elif verb == "end" and inside:
            id = inside.pop(which % len(inside))
            instances.ended("w", Replied(id, "stop"), now, wanted=wanted)
        elif verb == "expire" and inside:
            instances.expired("w", inside[which % len(inside)], now)
        elif verb == "lose":
            instances.lost("w", now)
            inside.clear()
        else:
            instances.tick(now, {"w": which / 7})
        told = instances.statistics()["w"].jobs
        assert told.in_flight == len(inside)
        assert told.acquired == told.succeeded + told.dropped + told.ignored + told.in_flight
        assert 1 <= told.limit <= 8


class _WithMemory(FakeWorkers):
    """Workers that tell how full they are."""

    share: float | None = None

    def memory_shares(self) -> Mapping[str, float | None]:
        return {"w": self.share}


def test_dispatcher_sends_as_many_as_the_limit_of_the_worker() -> None:
    """Four fit into the worker, two are let in; a cancelled one makes room when the worker says so."""

    async def main() -> None:
        workers = FakeWorkers(w=FreeSlots("llm", 4))
        dispatcher = Dispatcher(workers, VirtualClock(), instances=_instances(base=2))
        dispatcher.start()
        for number in range(4):
            dispatcher.listen(f"s{number}", lambda _: None)
            dispatcher.submit(job(f"j{number}", f"s{number}"))
        await tick()
        assert workers.sent == [("w", ["j0", "j1"])]
        workers.report("w", ReplyText("j0", "Hi"))
        dispatcher.cancel("j1")
        await tick()
        assert len(workers.sent) == 1, "the worker has it still"
        workers.report("w", Failed("j1", "cancelled", "taken back"))
        await tick()
        assert workers.sent[1:] == [("w", ["j2"])]
        workers.report("w", Replied("j0", "stop"))
        await tick()
        assert workers.sent[2:] == [("w", ["j3"])]
        told = dispatcher.statistics().instances["w"].jobs
        assert (told.in_flight, told.succeeded, told.ignored) == (2, 1, 1)
        dispatcher.close()

    on_virtual_time(main())


def test_dispatcher_looks_at_the_memory_of_workers_each_second() -> None:
    """A worker whose memory fills takes fewer jobs from the next second on, and more again when it is free."""

    async def main() -> None:
        clock, workers = VirtualClock(), _WithMemory(w=FreeSlots("llm", 8))
        dispatcher = Dispatcher(workers, clock, instances=_instances("reference", base=8))
        dispatcher.start()
        for number in range(8):
            dispatcher.listen(f"s{number}", lambda _: None)
        dispatcher.submit(job("first", "s0"))
        await tick()
        workers.share = 1.0
        await asyncio.sleep(1.1)
        assert dispatcher.statistics().instances["w"].jobs.limit == 4
        for number in range(1, 8):
            dispatcher.submit(job(f"j{number}", f"s{number}"))
        await tick()
        assert sum(len(ids) for _, ids in workers.sent) == 4
        workers.share = 0.2
        await asyncio.sleep(1.1)
        assert sum(len(ids) for _, ids in workers.sent) == 8
        dispatcher.close()

    on_virtual_time(main())


def test_dispatcher_deadline_lowers_the_limit_of_its_worker() -> None:
    """Steady time-outs on the way through the dispatcher are losses (F-L6)."""

    async def main() -> None:
        workers = FakeWorkers(w=FreeSlots("llm", 8))
        dispatcher = Dispatcher(workers, VirtualClock(), instances=_instances("aimd", base=8))
        dispatcher.start()
        for number in range(8):
            dispatcher.listen(f"s{number}", lambda _: None)
            dispatcher.submit(job(f"j{number}", f"s{number}", deadline_us=seconds(3)))
        await asyncio.sleep(3.5)
        told = dispatcher.statistics().instances["w"].jobs
        assert told.limit == 5
        assert told.in_flight == 8
        dispatcher.close()

    on_virtual_time(main())
