"""A flood of requests beside live sessions, with the dispatcher as a server has it: live talk does not notice."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from orchestrator.clock import seconds
from orchestrator.observability.instrument import Ending, TurnRecord
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.instances import Instances
from orchestrator.scheduling.job import Job, Tier
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.serving import Serving
from orchestrator.scheduling.work import (
    Embed,
    PromptMessage,
    Replied,
    Reply,
    ReplyText,
    Report,
    Speak,
    Transcribe,
    Work,
    WorkKind,
)
from orchestrator.scheduling.worker_ports import WorkerEvents
from orchestrator.settings import load
from orchestrator.settings.parts import limit_settings, openai, scheduler
from orchestrator.settings.schema import Settings
from orchestrator.transports.auth import Principal
from orchestrator.transports.errand import Errands, places_of_requests
from tests.fakes.workers import obliging
from tests.virtual_time import VirtualClock, run

FIRST_WORD_S = 0.3
REQUEST_S = 30.0
TALK_S = 2.0
FLOOD = 100
SILVER = Principal("batch", Tier.SILVER)
HELLO = Reply((PromptMessage("user", "hello"),))


class BusyWorkers:
    """One worker a kind with as many places as it has; work of requests takes `REQUEST_S`, that of talk `TALK_S`."""

    def __init__(self, places: Mapping[WorkKind, int]) -> None:
        self.places = places
        self.holding: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.tiers: list[Tier] = []
        self._gone: set[str] = set()
        self._events: WorkerEvents | None = None

    def listen(self, events: WorkerEvents) -> None:
        self._events = events

    def free(self) -> Mapping[str, FreeSlots]:
        return {kind: FreeSlots(kind, places - self.holding[kind]) for kind, places in self.places.items()}

    def hopeless(self, kind: WorkKind) -> bool:
        return False

    def send(self, worker_id: str, jobs: Sequence[Job]) -> None:
        loop = asyncio.get_running_loop()
        for job in jobs:
            self.holding[worker_id] += 1
            is_request = job.session_id.startswith("http_")
            if is_request:
                self.tiers.append(job.tier)
                self.most[worker_id] = max(self.most[worker_id], self.holding[worker_id])
            if isinstance(job.work, Reply):
                loop.call_later(FIRST_WORD_S, self._report, worker_id, job, ReplyText(job.id, "word"))
            loop.call_later(REQUEST_S if is_request else TALK_S, self._end, worker_id, job)

    def cancel(self, worker_id: str, job_id: str) -> None:
        self._gone.add(job_id)

    def _report(self, worker_id: str, job: Job, report: Report) -> None:
        assert self._events is not None
        if job.id not in self._gone:
            self._events.reported(worker_id, report)

    def _end(self, worker_id: str, job: Job) -> None:
        assert self._events is not None
        self.holding[worker_id] -= 1
        last = Replied(job.id, "stop", 1, 0, 1) if isinstance(job.work, Reply) else obliging(job)[-1]
        self._report(worker_id, job, last)
        self._events.freed()


class Machine:
    """What a server makes of its default configuration, around workers that are busy."""

    def __init__(self, settings: Settings) -> None:
        clock = VirtualClock()
        workers = settings.workers.by_role()
        self.workers = BusyWorkers({role: one.count * one.parallel for role, one in workers.items()})
        self.serving = Serving(settings.flow.slo_error_rate, settings.flow.shedding)
        self.dispatcher = Dispatcher(
            self.workers,
            clock,
            scheduler=scheduler(settings),
            instances=Instances(limit_settings(settings)),
            serving=self.serving,
        )
        self.dispatcher.start()
        self.clock = clock
        self.errands: Errands = openai(settings, self.dispatcher, clock).errands
        self.levels: set[int] = set()

    async def ask(self, who: Principal, work: Work) -> None:
        with self.errands.open(who) as errand:
            async for _ in errand.run(work, seconds(24 * 3600)):
                pass

    async def first_word_s(self, turn: int) -> float:
        """Returns how long a platinum session waits for the first report of a piece of its work."""
        came = asyncio.Event()
        began = self.clock.now_us()
        name = f"live-{turn}"
        self.dispatcher.listen(name, lambda report: came.set(), "talk")
        job = Job(name, name, HELLO, Tier.PLATINUM, int(Tier.PLATINUM), began, began + seconds(600))
        self.dispatcher.submit(job)
        await came.wait()
        took = (self.clock.now_us() - began) / 1_000_000
        await asyncio.sleep(TALK_S)
        self.dispatcher.drop_session(name)
        return took


@pytest.mark.parametrize(
    "work",
    [HELLO, Speak("Hello."), Embed(("a",)), Transcribe(0, 16_000, audio=bytes(32_000))],
    ids=["chat", "speech", "embeddings", "transcriptions"],
)
def test_flood_of_requests_costs_a_live_session_nothing(work: Work) -> None:
    """A hundred silver requests of half a minute each, on a server as it is by default: every first word of a platinum
    session comes as soon as on an idle machine, nothing is left out for anybody, and every request is done."""

    async def main() -> None:
        machine = Machine(load(None, {}, {}))
        flood = [asyncio.ensure_future(machine.ask(SILVER, work)) for _ in range(FLOOD)]
        for turn in range(40):
            assert await machine.first_word_s(turn) == pytest.approx(FIRST_WORD_S, abs=0.001)
            assert machine.serving.service.level == 0
        await asyncio.gather(*flood)
        kind: WorkKind = Job("", "", work, Tier.SILVER, 3, 0, 0).kind
        assert machine.workers.most[kind] <= machine.workers.places[kind]
        machine.dispatcher.close()

    run(main())


def test_requests_leave_a_place_of_those_that_there_are_now() -> None:
    """Where workers may have fewer jobs for a while (here: too many turns failed) requests take fewer places too."""

    async def main() -> None:
        machine = Machine(load(None, {}, {}))
        for turn in range(100):
            record = TurnRecord(
                session_id="x", conversation_id="", turn=turn, tier=1, modality="text", began_us=0, ended_us=0,
                outcome=Ending.FAILED, error="worker_failed",
            )  # fmt: skip
            machine.serving.turn(record)
        await asyncio.sleep(1)
        assert machine.dispatcher.places("llm") == 2, "of four, while the server is degraded"
        flood = [asyncio.ensure_future(machine.ask(SILVER, HELLO)) for _ in range(8)]
        await asyncio.sleep(1)
        assert machine.workers.holding["llm"] == 1
        await asyncio.gather(*flood)
        machine.dispatcher.close()

    run(main())


@pytest.mark.parametrize(
    ("batch_tier", "tier"), [(None, Tier.PLATINUM), ("gold", Tier.GOLD), ("silver", Tier.SILVER)]
)
def test_batch_tier_lowers_all_requests(batch_tier: str | None, tier: Tier) -> None:
    """By configuration: the work of a platinum key stands where it says, and never higher than its key."""

    async def main() -> None:
        machine = Machine(load(None, {}, {"server.batch_tier": batch_tier} if batch_tier else {}))
        await machine.ask(Principal("best", Tier.PLATINUM), HELLO)
        await machine.ask(SILVER, HELLO)
        assert machine.workers.tiers == [tier, Tier.SILVER]
        machine.dispatcher.close()

    run(main())


def test_requests_leave_a_place_of_every_kind_that_has_two() -> None:
    """All but one of those that do one job at a time, half a batch of the others; never none."""
    assert [places_of_requests("llm", n) for n in (1, 2, 4, 32)] == [1, 1, 3, 31]
    assert [places_of_requests("asr", n) for n in (1, 2, 4, 32)] == [1, 1, 2, 16]
