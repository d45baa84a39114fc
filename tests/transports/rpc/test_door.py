"""What is known of all links of RPCs."""

import asyncio

import pytest

from orchestrator.errors import Overloaded
from orchestrator.transports.rpc.door import SHUTTING_DOWN, RpcDoor


class OneLink:
    """A link that only remembers."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.told = (2, 30)
        self.closed: list[tuple[int, str]] = []
        self.was_told_too_much = False

    def close(self, code: int, reason: str) -> None:
        self.closed.append((code, reason))


def test_door_refuses_a_link_over_its_bound_and_says_when_to_come_back() -> None:
    """At the bound nobody comes in, whoever is inside stays, and who leaves makes room."""

    async def main() -> None:
        door = RpcDoor(2)
        with door.holding(OneLink("a")):
            with door.holding(OneLink("b")):
                assert door.links == 2
                assert door.told() == (4, 60, 0)
                with pytest.raises(Overloaded) as caught, door.holding(OneLink("c")):
                    raise AssertionError("let in")
                assert caught.value.retry_after_s > 0
                with pytest.raises(Overloaded):
                    door.check_room()
            door.check_room()
        assert door.links == 0

    asyncio.run(main())


def test_closing_door_ends_every_link_and_knows_when_the_last_has_gone() -> None:
    """Each link is told once that the server goes; `wait_empty` returns when none is left, and not before."""

    async def main() -> None:
        door = RpcDoor(2)
        await door.wait_empty()
        link = OneLink("a")
        with door.holding(link):
            door.shut()
            waiting = asyncio.ensure_future(door.wait_empty())
            await asyncio.sleep(0)
            assert not waiting.done()
        await waiting
        assert link.closed == [(SHUTTING_DOWN.code, SHUTTING_DOWN.reason)]

    asyncio.run(main())
