"""A dispatcher with marks, quotas and shedding under more than it can do: nothing that was accepted is lost."""

import asyncio
from collections.abc import Sequence
from random import Random

import pytest

from orchestrator.buffers.input_queue import QueueBounds
from orchestrator.clock import ms, seconds
from orchestrator.flow.limiter import RefusalReason
from orchestrator.flow.policies import LimitSettings
from orchestrator.flow.shedding import DEGRADED_REPLY_TOKENS, Sheddable
from orchestrator.flow.tenants import TenantLimits, quotas
from orchestrator.flow.watermark import AdaptiveWatermark
from orchestrator.observability.instrument import Ending, TurnRecord
from orchestrator.scheduling.cost import Costs
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.instances import Instances
from orchestrator.scheduling.job import Job, Tier
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.scheduling.serving import Serving
from orchestrator.scheduling.splice import ends_a_job
from orchestrator.scheduling.work import REFUSED, Failed, Replied, Reply, ReplyText, Report, Transcribe
from tests.scheduling.dispatching import on_virtual_time, tick
from tests.scheduling.fake_workers import FakeWorkers
from tests.scheduling.jobs import job
from tests.virtual_time import VirtualClock


class KeepingWorkers(FakeWorkers):
    """Remembers the jobs as they were sent."""

    def __init__(self, **slots: FreeSlots) -> None:
        super().__init__(**slots)
        self.jobs: dict[str, Job] = {}

    def send(self, worker_id: str, jobs: Sequence[Job]) -> None:
        super().send(worker_id, jobs)
        self.jobs.update({one.id: one for one in jobs})


class LoadedHouse:
    """All that admission has, around a language model with `places`; the test says what is done and when."""

    def __init__(self, places: int = 2, jobs: int = 20, costs: Costs | None = None) -> None:
        self.workers = KeepingWorkers(w=FreeSlots("llm", places))
        self.clock = VirtualClock()
        self.serving = Serving()
        self.dispatcher = Dispatcher(
            self.workers,
            self.clock,
            Scheduler(
                QueueBounds(jobs=jobs, watermark=1.0),
                marks={"llm": AdaptiveWatermark(jobs, ms(640), floor=max(1, jobs // 2), share=1.0)},
            ),
            instances=Instances({"llm": LimitSettings(base=places, most=places)}),
            costs=costs,
            serving=self.serving,
        )
        self.dispatcher.start()
        self.reports: dict[str, list[Report]] = {}

    def listen(self, session: str, tenant: str = "") -> None:
        self.dispatcher.listen(session, self._note, tenant)

    def _note(self, report: Report) -> None:
        self.reports.setdefault(report.job_id, []).append(report)

    def last(self, job_id: str) -> Report:
        return self.reports[job_id][-1]

    def finish(self, job_id: str) -> None:
        self.workers.report("w", Replied(job_id, "stop"))

    def running(self) -> list[str]:
        return sorted(self.workers.holding["w"])


def test_dispatcher_leaves_out_drafts_under_pressure_and_takes_them_back_after() -> None:
    """The refusal says why and when; once the queue has emptied drafts are taken again though nobody submits."""

    async def main() -> None:
        house = LoadedHouse(jobs=10)
        house.workers.slots["a"], house.workers.holding["a"] = FreeSlots("asr", 4), set()
        house.listen("d")
        for n in range(8):
            house.listen(f"s{n}")
            house.dispatcher.submit(job(f"j{n}", f"s{n}", level=1))
        await tick()
        await asyncio.sleep(1)
        house.dispatcher.submit(job("draft", "d", Transcribe(0, 1, draft=True), level=1))
        await tick()
        refused = house.last("draft")
        assert isinstance(refused, Failed)
        assert (refused.code, refused.reason) == (REFUSED, RefusalReason.SHED.value)
        assert refused.retry_after_s >= 1
        while house.running():
            house.finish(house.running()[0])
            await tick()
        await asyncio.sleep(10)
        assert house.serving.service.level == 0
        house.dispatcher.submit(job("again", "d", Transcribe(0, 1, draft=True), level=1))
        await tick()
        assert "again" in house.workers.jobs
        house.dispatcher.close()

    on_virtual_time(main())


def test_dispatcher_sends_short_replies_and_fewer_of_them_while_degraded() -> None:
    """Of ten places seven are used, each reply is held to 60 tokens; afterwards all places are used again."""

    async def main() -> None:
        house = LoadedHouse(places=10, jobs=100)
        for turn in range(100):
            now = house.clock.now_us()
            house.serving.turn(
                TurnRecord(
                    session_id="x", conversation_id="", turn=turn, tier=3, modality="text", began_us=now,
                    ended_us=now, outcome=Ending.FAILED, error="worker_failed",
                )
            )  # fmt: skip
        await asyncio.sleep(1)
        for n in range(10):
            house.listen(f"s{n}")
            house.dispatcher.submit(job(f"j{n}", f"s{n}", Reply(()), level=1))
        await tick()
        assert len(house.running()) == 7
        work = house.workers.jobs["j0"].work
        assert isinstance(work, Reply)
        assert work.max_tokens == DEGRADED_REPLY_TOKENS
        await asyncio.sleep(120)
        await tick()
        assert not house.serving.service.degraded
        assert len(house.running()) == 10
        house.dispatcher.close()

    on_virtual_time(main())


def test_dispatcher_of_a_burst_no_two_pass_one_place_of_a_quota() -> None:
    """F-L3: five replies of 40 tokens at the same time, 100 tokens allowed: two run, three are refused at once."""

    async def main() -> None:
        limits = TenantLimits({Tier.SILVER: quotas(100, None, None, 60.0, 1.0)}, {}, 10)
        house = LoadedHouse(places=5, costs=Costs(limits))
        house.listen("s0", "tenant")
        for n in range(1, 5):
            house.listen(f"s{n}", "tenant")
        for n in range(5):
            house.dispatcher.submit(job(f"j{n}", f"s{n}", Reply((), max_tokens=40), level=3))
        await tick()
        assert house.running() == ["j0", "j1"]
        refused = [house.last(f"j{n}") for n in (2, 3, 4)]
        assert {one.reason for one in refused if isinstance(one, Failed)} == {RefusalReason.TENANT.value}
        house.dispatcher.cancel("j0")
        await tick()
        house.dispatcher.submit(job("j5", "s4", Reply((), max_tokens=40), level=3))
        await tick()
        assert "j5" in house.workers.jobs, "what a job that never began had reserved is given back"
        house.dispatcher.close()

    on_virtual_time(main())


def test_dispatcher_deadlines_hold_with_an_adaptive_mark() -> None:
    """F-L4: what waits too long ends at its deadline, in the queue and at the worker, with no event to wake it."""

    async def main() -> None:
        house = LoadedHouse(places=1)
        for n in range(3):
            house.listen(f"s{n}")
            house.dispatcher.submit(job(f"j{n}", f"s{n}", level=1, deadline_us=seconds(1 + n)))
        await asyncio.sleep(1.001)
        assert "j0" in house.reports
        assert "j1" not in house.reports
        await asyncio.sleep(2.001)
        codes = [one.code for n in range(3) if isinstance(one := house.last(f"j{n}"), Failed)]
        assert codes == ["deadline_exceeded"] * 3
        assert house.dispatcher.statistics().transit.processing == 0
        house.dispatcher.close()

    on_virtual_time(main())


def test_dispatcher_a_dropped_session_costs_nobody_else() -> None:
    """F-L5: its jobs leave queue, slots and worker; another session's next job starts once the place is free."""

    async def main() -> None:
        house = LoadedHouse(places=1)
        house.listen("gone")
        house.listen("stays")
        house.dispatcher.submit(job("g1", "gone", level=1))
        house.dispatcher.submit(job("g2", "gone", level=1))
        house.dispatcher.submit(job("k", "stays", level=1))
        await tick()
        house.dispatcher.drop_session("gone")
        assert house.workers.cancelled == [("w", "g1")]
        house.workers.report("w", Replied("g1", "cancelled"))
        await tick()
        assert house.running() == ["k"]
        assert not house.reports
        house.dispatcher.close()

    on_virtual_time(main())


def test_dispatcher_a_lost_workers_late_word_is_not_heard() -> None:
    """F-L7: the repeat has a new version of the slot; what the lost worker still says comes to nothing."""

    async def main() -> None:
        house = LoadedHouse(places=1)
        house.listen("s")
        house.dispatcher.submit(job("j", "s", level=1))
        await tick()
        house.workers.slots["w2"], house.workers.holding["w2"] = FreeSlots("llm", 1), set()
        del house.workers.slots["w"]
        events = house.workers.events
        assert events is not None
        events.lost("w")
        await tick()
        events.reported("w", ReplyText("j", "late"))
        events.reported("w", Replied("j", "stop"))
        house.workers.report("w2", ReplyText("j", "in time"))
        house.workers.report("w2", Replied("j", "stop"))
        await tick()
        assert house.reports["j"] == [ReplyText("j", "in time"), Replied("j", "stop")]
        told = house.dispatcher.statistics()
        assert (told.dropped_reports, told.transit.repeated, told.transit.done) == (2, 1, 1)
        house.dispatcher.close()

    on_virtual_time(main())


@pytest.mark.parametrize("seed", range(8))
def test_dispatcher_what_is_accepted_ends_and_everything_balances(seed: int) -> None:
    """Submit, finish, cancel, lose, expire and drop at random, with marks, quotas and shedding at once: every job that
    its session did not take back gets exactly one last report, and every place, slot and count comes back."""

    async def main() -> None:
        random = Random(seed)
        limits = TenantLimits({Tier.SILVER: quotas(100_000, None, 300, 5.0, 1.0)}, {}, 10)
        house = LoadedHouse(places=3, jobs=12, costs=Costs(limits))
        house.workers.slots["v"], house.workers.holding["v"] = FreeSlots("llm", 2), set()
        submitted: dict[str, str] = {}
        taken_back: set[str] = set()
        for n in range(12):
            house.listen(f"s{n}", f"tenant {n % 3}")
        for n in range(400):
            match random.choices("sfcldw", (8, 5, 1, 0.3, 0.3, 3))[0]:
                case "s":
                    session = f"s{random.randrange(12)}"
                    now = house.clock.now_us()
                    one = job(
                        f"j{n}", session, Reply(()), random.choice((0, 1, 2, 3, 3)), now, now + seconds(2)
                    )
                    submitted[one.id] = session
                    house.dispatcher.submit(one)
                case "f":
                    worker = random.choice(("w", "v"))
                    if held := sorted(house.workers.holding[worker]):
                        house.workers.report(worker, Replied(random.choice(held), "stop"))
                case "c" if open_jobs := sorted(submitted.keys() - house.reports.keys() - taken_back):
                    taken_back.add(cancelled := random.choice(open_jobs))
                    house.dispatcher.cancel(cancelled)
                case "l":
                    house.workers.die(random.choice(("w", "v")))
                case "d":
                    session = f"s{random.randrange(12)}"
                    taken_back |= {
                        id for id, of in submitted.items() if of == session and id not in house.reports
                    }
                    house.dispatcher.drop_session(session)
                    house.listen(session, "tenant 0")
                case _:
                    await asyncio.sleep(random.random() / 5)
        await asyncio.sleep(5)
        for worker in ("w", "v"):
            for held_job in sorted(house.workers.holding[worker]):
                house.workers.report(worker, Replied(held_job, "cancelled"))
        await tick()
        ends = {id: sum(map(ends_a_job, told)) for id, told in house.reports.items()}
        assert set(ends.values()) <= {1}
        assert submitted.keys() - taken_back <= ends.keys()
        told = house.dispatcher.statistics()
        assert told.jobs.in_flight == 0
        assert (told.transit.ready, told.transit.processing) == (0, 0)
        assert all(one.jobs.in_flight == 0 for one in told.instances.values())
        assert not any(told.scheduler.queued.values())
        assert not any(told.scheduler.running.values())
        assert told.scheduler.queued_audio_bytes == 0
        assert told.service is not None
        assert sum(told.service.shed[what] for what in (Sheddable.DRAFT, Sheddable.SPEECH)) == 0
        house.dispatcher.close()

    on_virtual_time(main())
