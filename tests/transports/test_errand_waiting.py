"""Work for requests that waits: before the queue for a place, and for a quota once it has begun."""

import asyncio
import logging
from collections.abc import Sequence

import pytest
from msgspec import structs

from orchestrator.errors import Overloaded
from orchestrator.flow.tenants import TenantLimits, quotas
from orchestrator.observability.instrument import JobRecord
from orchestrator.scheduling.cost import Costs
from orchestrator.scheduling.job import Job, Tier
from orchestrator.scheduling.work import Failed, Replied, Reply, Report
from orchestrator.transports.auth import LOCAL, Principal
from orchestrator.transports.errand import MOST_OF_A_TENANT, Errand
from orchestrator.transports.refusals import Refusal, ShuttingDown
from tests.fakes.workers import obliging
from tests.scheduling.dispatching import tick
from tests.transports.test_errand import HELLO, SECOND_US, House, Told, all_of
from tests.virtual_time import VirtualClock, run


def test_errand_counts_by_the_quotas_of_its_key_wherever_it_stands() -> None:
    """What lowers the work of all requests gives nobody the quotas of another tier: not smaller ones, and none
    beside its own."""

    async def main() -> None:
        limits = TenantLimits({Tier.PLATINUM: quotas(requests=3), Tier.SILVER: quotas(requests=1)})
        house = House(best_tier=Tier.SILVER, costs=Costs(limits))
        principal = Principal("acme", Tier.PLATINUM)
        with house.errands.open(principal) as errand:
            errand.book()
            await all_of(errand)
            reports = await all_of(errand)
            assert isinstance(reports[-1], Replied)
            assert [(one.limit, one.remaining) for one in reports[-1].limits] == [(3, 0)]
            assert [(one.limit, one.remaining) for one in house.errands.left(principal)] == [(3, 0)]
            with pytest.raises(Refusal):
                errand.book()
        assert {job.tier for job in house.workers.jobs} == {Tier.SILVER}

    run(main())


def test_errand_that_has_begun_waits_out_what_is_refused_for_now() -> None:
    """Its first piece of work is refused at once; a later one is asked for again when there is room, and what is
    refused for ever is not. Meanwhile its place is another's."""
    refusals = [Failed("", "rate_limit_exceeded", "m", 20.0, "tenant_limit") for _ in range(2)]
    refusals += [Failed("", "rate_limit_exceeded", "m", 0.0, "tenant_limit")]
    refused = iter(refusals)

    def answer(job: Job) -> Sequence[Report]:
        assert isinstance(job.work, Reply)
        if job.work.seed is not None and (failed := next(refused, None)) is not None:
            return [structs.replace(failed, job_id=job.id)]
        return obliging(job)

    later = structs.replace(HELLO, seed=1)

    async def main() -> None:
        house = House(answer, places={"llm": 1})
        clock = VirtualClock()
        with house.errands.open(LOCAL) as errand, house.errands.open(LOCAL) as other:
            with pytest.raises(Refusal) as caught:
                [one async for one in errand.run(later, 60 * SECOND_US)]
            assert caught.value.status == 429
            await all_of(errand)
            began = clock.now_us()
            with pytest.raises(Refusal):
                [one async for one in errand.run(later, 10 * SECOND_US)]
            assert clock.now_us() - began < SECOND_US, "20 s are more than it has"
            with pytest.raises(Refusal):
                [one async for one in errand.run(later, 60 * SECOND_US)]
            waiting = asyncio.ensure_future(_last(errand, later))
            await all_of(other)
            assert isinstance(await waiting, Replied)

    run(main())


async def _last(errand: Errand, work: Reply) -> Report:
    return [one async for one in errand.run(work, 60 * SECOND_US)][-1]


def test_errand_pauses_no_longer_than_the_server_lives() -> None:
    """Who waits for a quota is told at once that the server stops."""

    def answer(job: Job) -> Sequence[Report]:
        if job.id.endswith("_1"):
            return obliging(job)
        return [Failed(job.id, "rate_limit_exceeded", "m", 50.0, "tenant_limit")]

    async def main() -> None:
        house = House(answer)
        clock = VirtualClock()
        with house.errands.open(LOCAL) as errand:
            await all_of(errand)
            waiting = asyncio.create_task(all_of(errand, 100 * SECOND_US))
            await asyncio.sleep(1)
            house.errands.close()
            with pytest.raises(ShuttingDown):
                await waiting
        assert clock.now_us() < 10 * SECOND_US

    run(main())


def test_errands_beyond_their_places_wait_outside() -> None:
    """Only so many jobs of a kind are in the queue; who waits for a place has its deadline there too, and who leaves
    takes none along."""

    async def main() -> None:
        house = House(delay_s=5.0, places={"llm": 3})
        errands = [house.errands.open(LOCAL) for _ in range(5)]
        tasks = [asyncio.create_task(all_of(one)) for one in errands]
        await tick()
        assert house.in_flight == 2
        tasks[2].cancel()
        tasks[0].cancel()
        await tick()
        assert house.in_flight == 2, "the place of the one that left is the next one's"
        with house.errands.open(LOCAL) as late, pytest.raises(Refusal) as caught:
            await all_of(late, SECOND_US)
        assert caught.value.status == 504
        assert len(house.errands.turnstiles["llm"]) == 1
        house.errands.close()
        await asyncio.gather(*tasks, return_exceptions=True)
        for one in errands:
            one.close()
        assert house.in_flight == 0

    run(main())


def test_errand_of_a_client_that_traces_belongs_to_its_span() -> None:
    """What is told of its jobs names the client's span; a header that is none is ignored."""

    async def main() -> None:
        told: list[JobRecord] = []
        house = House(instrument=Told(told))
        trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        for header in (trace, "nonsense", None):
            with house.errands.open(LOCAL, header) as errand:
                await all_of(errand)
        remotes = [one.remote for one in told]
        assert remotes[0] is not None
        assert remotes[0].trace_id == 0x4BF92F3577B34DA6A3CE929D0E0E4736
        assert remotes[1:] == [None, None]

    run(main())


@pytest.mark.parametrize("what", ["seats", "quota"])
def test_errands_tell_the_log_whom_they_refuse(what: str, caplog: pytest.LogCaptureFixture) -> None:
    """As the queue does: who, why, and once in a while only. A tenant that has all that it may have is its own
    fault."""
    costs = Costs(TenantLimits({Tier.GOLD: quotas(requests=1)}))

    async def main() -> None:
        house = House(costs=costs)
        with caplog.at_level(logging.INFO, "chorale.flow"):
            if what == "seats":
                mine = [house.errands.open(LOCAL) for _ in range(MOST_OF_A_TENANT)]
                for _ in range(2):
                    with pytest.raises(Overloaded) as caught:
                        house.errands.open(LOCAL)
                    assert caught.value.is_tenant
                assert house.errands.refused == 2
                for one in mine:
                    one.close()
            else:
                with house.errands.open(LOCAL) as errand:
                    errand.book()
                    for _ in range(2):
                        with pytest.raises(Refusal):
                            errand.book()

    run(main())
    (line,) = [one for one in caplog.records if one.getMessage() == "refused"]
    assert (line.__dict__["tenant"], line.__dict__["reason"]) == ("local", "tenant_limit")
