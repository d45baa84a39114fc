"""Who is next of those that ask for work in the background."""

import asyncio

from orchestrator.transports.turnstile import Turnstile
from tests.scheduling.dispatching import tick
from tests.virtual_time import run


def test_turnstile_lets_in_as_many_as_there_are_places() -> None:
    """The next one has the place that is given back, at once."""

    async def main() -> None:
        turnstile = Turnstile(lambda: 2)
        inside: list[int] = []

        async def enter(n: int) -> None:
            await turnstile.enter("a", 2)
            inside.append(n)

        tasks = [asyncio.ensure_future(enter(n)) for n in range(4)]
        await tick()
        assert (inside, len(turnstile)) == ([0, 1], 2)
        turnstile.leave()
        await tick()
        assert inside == [0, 1, 2]
        turnstile.leave()
        await asyncio.gather(*tasks)
        for _ in range(2):
            turnstile.leave()
        await turnstile.enter("b", 3)
        assert len(turnstile) == 0

    run(main())


def test_turnstile_has_tenants_take_turns_by_the_weights_of_their_levels() -> None:
    """One tenant's hundred waiting requests do not keep another's one waiting; platinum goes four times as often as
    silver."""

    async def main() -> None:
        turnstile = Turnstile(lambda: 1)
        inside: list[str] = []

        async def enter(tenant: str, level: int) -> None:
            await turnstile.enter(tenant, level)
            inside.append(tenant)

        await turnstile.enter("first", 3)
        tasks = [asyncio.ensure_future(enter("silver", 3)) for _ in range(20)]
        await tick()
        tasks += [asyncio.ensure_future(enter("platinum", 1)) for _ in range(20)]
        await tick()
        for _ in range(10):
            turnstile.leave()
            await tick()
        assert inside.count("platinum") == 8
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(main())


def test_turnstile_loses_no_place_to_who_goes_away() -> None:
    """Whoever leaves the queue is not counted any more; whoever leaves just as its turn comes passes the place on."""

    async def main() -> None:
        turnstile = Turnstile(lambda: 1)
        await turnstile.enter("a", 2)
        tasks = [asyncio.ensure_future(turnstile.enter("a", 2)) for _ in range(3)]
        await tick()
        tasks[0].cancel()
        await tick()
        assert len(turnstile) == 2
        turnstile.leave()  # it is the second one's turn, which goes at the same moment
        tasks[1].cancel()
        await tick()
        assert tasks[1].cancelled()
        assert tasks[2].done()
        turnstile.leave()
        await turnstile.enter("a", 2)

    run(main())


def test_turnstile_that_closes_lets_everybody_in() -> None:
    """Who waits is told by what it meets inside."""

    async def main() -> None:
        turnstile = Turnstile(lambda: 1)
        await turnstile.enter("a", 2)
        tasks = [asyncio.ensure_future(turnstile.enter("a", 2)) for _ in range(3)]
        await tick()
        turnstile.close()
        await asyncio.gather(*tasks)
        await turnstile.enter("b", 1)
        for _ in range(5):
            turnstile.leave()

    run(main())


def test_turnstile_follows_the_number_of_places() -> None:
    """Fewer: those inside stay, and the next ones wait until enough have gone. More: they come as soon as one goes."""

    async def main() -> None:
        places = 3
        turnstile = Turnstile(lambda: places)
        for _ in range(3):
            await turnstile.enter("a", 2)
        places = 1
        tasks = [asyncio.ensure_future(turnstile.enter("a", 2)) for _ in range(4)]
        for _ in range(2):
            turnstile.leave()
            await tick()
        assert len(turnstile) == 4
        turnstile.leave()
        await tick()
        assert len(turnstile) == 3
        places = 3
        turnstile.leave()
        await asyncio.gather(*tasks)
        assert len(turnstile) == 0

    run(main())
