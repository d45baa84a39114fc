"""Work for a request: in order, at its key's tier, taken back with its caller, refused in the protocol's words."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing

import pytest

from orchestrator.errors import ChoraleError, Overloaded, WireError, WorkerFailed
from orchestrator.flow.concurrency import FixedLimit
from orchestrator.flow.limiter import Limiter
from orchestrator.flow.tenants import TenantLimits, quotas
from orchestrator.observability.instrument import Instrument, JobRecord, Silent
from orchestrator.scheduling.cost import Costs
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.job import Job, Tier
from orchestrator.scheduling.work import (
    Failed,
    PromptMessage,
    Replied,
    Reply,
    ReplyText,
    Report,
    SpeechPiece,
    Spoke,
    Transcribe,
    Transcribed,
    WorkKind,
)
from orchestrator.transports.auth import LOCAL, Principal
from orchestrator.transports.errand import (
    MOST_ERRANDS,
    MOST_OF_A_TENANT,
    MOST_REPORTS,
    Errand,
    Errands,
    error_of,
)
from orchestrator.transports.refusals import Refusal, ShuttingDown
from tests.fakes.workers import Answer, FakeWorkers, obliging
from tests.scheduling.dispatching import tick
from tests.virtual_time import VirtualClock, run

HELLO = Reply((PromptMessage("user", "hello"),))
SECOND_US = 1_000_000


class Told(Silent):
    """Remembers what it is told of jobs."""

    def __init__(self, told: list[JobRecord]) -> None:
        self._told = told

    def job(self, record: JobRecord) -> None:
        self._told.append(record)


class House:
    """Errands, and the workers that do them."""

    def __init__(
        self,
        answer: Answer = obliging,
        delay_s: float = 0.05,
        best_tier: Tier | None = None,
        most_jobs: int = 100,
        costs: Costs | None = None,
        places: Mapping[WorkKind, int] | None = None,
        instrument: Instrument | None = None,
    ) -> None:
        self.workers = FakeWorkers(answer, delay_s)
        limiter = Limiter(FixedLimit(most_jobs))
        self.dispatcher = Dispatcher(
            self.workers, VirtualClock(), limiter=limiter, costs=costs, instrument=instrument
        )
        self.dispatcher.start()
        self.errands = Errands(self.dispatcher, VirtualClock(), best_tier, places)

    @property
    def in_flight(self) -> int:
        return self.dispatcher.statistics().jobs.in_flight


async def all_of(errand: Errand, within_us: int = 10 * SECOND_US) -> list[Report]:
    return [report async for report in errand.run(HELLO, within_us)]


def test_errand_gives_every_report_of_its_work_in_order() -> None:
    """From the first word to the end; the next piece of work follows."""

    async def main() -> None:
        house = House()
        with house.errands.open(LOCAL) as errand:
            for _ in range(2):
                first, last = await all_of(errand)
                assert isinstance(first, ReplyText)
                assert isinstance(last, Replied)
                assert first.text == "You said: hello."
        assert house.in_flight == len(house.errands) == house.dispatcher.statistics().sessions == 0

    run(main())


@pytest.mark.parametrize(
    ("best", "tier"), [(None, Tier.PLATINUM), (Tier.SILVER, Tier.SILVER), (Tier.PLATINUM, Tier.PLATINUM)]
)
def test_errand_runs_at_the_tier_of_its_key(best: Tier | None, tier: Tier) -> None:
    """The configuration may lower it, and never raises it; the level in the queue is the tier's."""

    async def main() -> None:
        house = House(best_tier=best)
        with house.errands.open(Principal("acme", Tier.PLATINUM)) as errand:
            await all_of(errand)
        (job,) = house.workers.jobs
        assert (job.tier, job.level) == (tier, int(tier))

    run(main())


def test_errand_may_be_patient() -> None:
    """Work that can wait is missed later than what is wanted at once; its deadline is its own."""

    async def main() -> None:
        house = House()
        with house.errands.open(LOCAL) as errand:
            async for _ in errand.run(HELLO, SECOND_US, patience_us=300_000):
                pass
            await all_of(errand, SECOND_US)
        patient, other = house.workers.jobs
        assert patient.due_us - patient.created_us == 300_000
        assert patient.deadline_us - patient.created_us == SECOND_US
        assert other.due_us == other.created_us

    run(main())


def test_errand_that_is_left_takes_its_work_back() -> None:
    """A caller who goes while a worker is at it frees the worker; nothing is delivered after."""

    async def main() -> None:
        house = House(delay_s=100.0)
        with house.errands.open(LOCAL) as errand:
            waiting = asyncio.create_task(all_of(errand))
            await tick()
            assert house.in_flight == 1
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            assert house.in_flight == 0
        assert house.workers.cancelled == [house.workers.jobs[0].id]

    run(main())


def test_errand_whose_iteration_is_left_takes_the_rest_back() -> None:
    """Reading the first word only is enough for who has enough."""

    def words_only(job: Job) -> Sequence[Report]:
        return [ReplyText(job.id, "one")]

    async def main() -> None:
        house = House(words_only)
        with house.errands.open(LOCAL) as errand:
            async with aclosing(errand.run(HELLO, SECOND_US)) as reports:
                assert await anext(reports) == ReplyText(house.workers.jobs[0].id, "one")
            assert house.in_flight == 0

    run(main())


def test_errand_puts_text_together_that_nobody_reads() -> None:
    """A slow reader costs one report, not one a word; no word is lost."""

    def many_words(job: Job) -> Sequence[Report]:
        return [*(ReplyText(job.id, f"{n} ") for n in range(2 * MOST_REPORTS)), Replied(job.id, "stop")]

    async def main() -> None:
        house = House(many_words)
        with house.errands.open(LOCAL) as errand:
            reports = await all_of(errand)
        assert len(reports) < 10
        text = "".join(one.text for one in reports if isinstance(one, ReplyText))
        assert text == "".join(f"{n} " for n in range(2 * MOST_REPORTS))

    run(main())


def test_errand_read_too_slowly_ends() -> None:
    """Sound that nobody takes is bounded: the work is taken back and the reader told why."""

    def much_sound(job: Job) -> Sequence[Report]:
        pieces = [SpeechPiece(job.id, n, 24_000, 1, b"ab") for n in range(2 * MOST_REPORTS)]
        return [*pieces, Spoke(job.id, len(pieces))]

    async def main() -> None:
        house = House(much_sound)
        with house.errands.open(LOCAL) as errand:
            reports = errand.run(HELLO, 10 * SECOND_US)
            first = await anext(reports)
            assert isinstance(first, SpeechPiece)
            with pytest.raises(Refusal, match="too slowly"):
                assert len([one async for one in reports]) < MOST_REPORTS
            assert house.in_flight == 0

    run(main())


def test_errand_waits_no_longer_than_it_may() -> None:
    """Work that is not done by its deadline fails, wherever it is."""

    async def main() -> None:
        house = House(delay_s=100.0)
        with house.errands.open(LOCAL) as errand, pytest.raises(Refusal) as caught:
            await all_of(errand, SECOND_US)
        assert caught.value.status == 504
        assert house.in_flight == 0

    run(main())


def test_errand_that_finds_no_room_is_told_when_to_come_back() -> None:
    """A full house is 503 with a time, not 429: the caller has done nothing wrong."""

    async def main() -> None:
        house = House(most_jobs=1, delay_s=100.0)
        with house.errands.open(LOCAL) as first, house.errands.open(LOCAL) as second:
            waiting = asyncio.create_task(all_of(first))
            await tick()
            with pytest.raises(Refusal) as caught:
                await all_of(second)
            assert caught.value.status == 503
            assert int(caught.value.headers["Retry-After"]) >= 1
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    run(main())


def test_errand_over_its_tenants_quota_is_429() -> None:
    """The reply that a quota does not bear is refused with a time to come back, and so is a booked request; another
    tenant's are not."""

    async def main() -> None:
        costs = Costs(TenantLimits({Tier.GOLD: quotas(requests=1)}))
        house = House(costs=costs)
        with house.errands.open(LOCAL) as errand, house.errands.open(Principal("b", Tier.GOLD)) as other:
            await all_of(errand)
            for refused in (all_of(errand), _book(errand)):
                with pytest.raises(Refusal) as caught:
                    await refused
                assert caught.value.status == 429
                assert int(caught.value.headers["Retry-After"]) >= 1
            other.book()

    run(main())


async def _book(errand: Errand) -> None:
    errand.book()


def test_errands_are_bounded_in_all_and_for_each_tenant() -> None:
    """One tenant leaves room for others; what ends makes room again."""

    async def main() -> None:
        house = House()
        mine = [house.errands.open(LOCAL) for _ in range(MOST_OF_A_TENANT)]
        with pytest.raises(Overloaded):
            house.errands.open(LOCAL)
        others = [
            house.errands.open(Principal(f"t{n % 3}", Tier.GOLD))
            for n in range(MOST_ERRANDS - MOST_OF_A_TENANT)
        ]
        with pytest.raises(Overloaded):
            house.errands.open(Principal("new", Tier.GOLD))
        mine[0].close()
        mine[0].close()
        house.errands.open(LOCAL).close()
        for errand in (*mine, *others):
            errand.close()
        await house.errands.wait_empty()
        assert len(house.errands) == 0

    run(main())


def test_errands_that_close_tell_who_waits() -> None:
    """A server that stops ends what runs, with the reason, and begins nothing more."""

    async def main() -> None:
        house = House(delay_s=100.0)
        with house.errands.open(LOCAL) as errand:
            waiting = asyncio.create_task(all_of(errand))
            await tick()
            house.errands.close()
            with pytest.raises(ShuttingDown):
                await waiting
            with pytest.raises(ShuttingDown):
                await all_of(errand)
        with pytest.raises(ShuttingDown):
            house.errands.open(LOCAL)
        assert house.in_flight == 0

    run(main())


@pytest.mark.parametrize(
    ("failed", "kind", "status", "headers"),
    [
        (Failed("j", "rate_limit_exceeded", "m", 2.5, "tenant_limit"), Refusal, 429, {"Retry-After": "3"}),
        (
            Failed("j", "rate_limit_exceeded", "m", 0.0, "tenant_limit"),
            Refusal,
            429,
            {"x-should-retry": "false"},
        ),
        (Failed("j", "rate_limit_exceeded", "m", 2.5, "queue_full"), Refusal, 503, {"Retry-After": "3"}),
        (Failed("j", "worker_failed", "m", 7.0), Refusal, 503, {"Retry-After": "7"}),
        (Failed("j", "worker_failed", "m"), WorkerFailed, None, None),
        (Failed("j", "deadline_exceeded", "m"), Refusal, 504, {"x-should-retry": "false"}),
    ],
)
def test_failed_work_is_told_in_http(
    failed: Failed, kind: type[ChoraleError], status: int | None, headers: dict[str, str] | None
) -> None:
    """Who asks too much is told so apart from who finds no room; both hear when to come back, unless that is never."""
    error = error_of(failed, HELLO)
    assert type(error) is kind
    if isinstance(error, Refusal):
        assert (error.status, error.headers) == (status, headers)


def test_what_does_not_fit_names_the_field() -> None:
    """A prompt that is too long is the client's fault, and final."""
    error = error_of(Failed("j", "context_length_exceeded", "m"), HELLO, "messages")
    assert isinstance(error, WireError)
    assert (error.wire_code, error.param) == ("context_length_exceeded", "messages")


def test_errand_drops_what_was_meant_for_work_before() -> None:
    """A report that comes late, while the next work is being done, belongs to nobody."""

    def heard(job: Job) -> Sequence[Report]:
        return [Transcribed(job.id, "hello")]

    async def main() -> None:
        house = House(heard)
        with house.errands.open(LOCAL) as errand:
            running = errand.run(Transcribe(0, 1, audio=b"ab"), SECOND_US)
            first = asyncio.ensure_future(anext(running))
            await tick()
            errand.take(Transcribed("another", "nonsense"))
            reports = [await first, *[one async for one in running]]
        assert [one.text for one in reports if isinstance(one, Transcribed)] == ["hello"]

    run(main())
