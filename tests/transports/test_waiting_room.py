"""Seats that one waits for."""

import asyncio

from orchestrator.transports.waiting_room import WaitingRoom
from tests.scheduling.dispatching import tick
from tests.virtual_time import run


def test_seats_are_waited_for_in_order() -> None:
    """Two sit, the others follow as they came, each once; in the end the room is empty."""

    async def main() -> None:
        room, sitting, order = WaitingRoom(4), 0, []

        async def visit(number: int) -> None:
            nonlocal sitting
            async with room.seat("a"):
                order.append(number)
                sitting += 1
                assert sitting <= 2
                await asyncio.sleep(1)
                sitting -= 1

        await asyncio.gather(*(visit(number) for number in range(7)))
        assert order == list(range(7))
        async with room.seat("a"), room.seat("a"):
            pass

    run(main())


def test_tenant_with_all_its_seats_keeps_nobody_waiting() -> None:
    """Its third visit waits; another tenant's first one does not."""

    async def main() -> None:
        room = WaitingRoom(4)
        async with room.seat("a"), room.seat("a"):
            third = asyncio.ensure_future(room.seat("a").__aenter__())
            await tick()
            async with room.seat("b"):
                assert not third.done()
        await third

    run(main())


def test_three_tenants_that_sit_for_long_leave_a_seat_to_a_fourth() -> None:
    """Whatever each of them waits for: of eight they have seven, and who is alone has four."""

    async def main() -> None:
        room = WaitingRoom(8)
        visits, places = [], []  # a place that nobody holds is given back
        for tenant, sits in (("a", 4), ("b", 2), ("c", 1), ("d", 1), ("e", 0)):
            places += (these := [room.seat(tenant) for _ in range(8)])
            visits += (mine := [asyncio.ensure_future(one.__aenter__()) for one in these])
            await tick()
            assert sum(one.done() for one in mine) == sits
        for one in visits:
            one.cancel()
        await asyncio.gather(*visits, return_exceptions=True)

    run(main())


def test_one_who_gives_up_waiting_takes_no_seat() -> None:
    """The seat goes to the next."""

    async def main() -> None:
        room = WaitingRoom(1)
        async with room.seat("a"):
            waiting = asyncio.ensure_future(room.seat("b").__aenter__())
            await tick()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        async with room.seat("c"):
            pass

    run(main())
