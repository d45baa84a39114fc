"""What clients of the protocol are told by a server that is asked for far more than it can do, and after that."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection

from tests.real.accelerated import roles, words_of
from tests.real.loading import LONG_S, Event, Talker, crowd, error_of, loaded
from tests.real.serving import Served
from tests.sessions.strict_client import StrictClient

pytestmark = pytest.mark.real

PLACES = 8
CROWD = 180
"""Three times what the accelerator and its queue hold by default: 8 places, and 51 of 512 that may wait."""

TURNS = 3
TOKENS, FEW = 24, 6
AT_EASE = 4
TENANTS: dict[str, dict[str, Any]] = {tier: {"tier": tier} for tier in ("platinum", "gold", "silver")}
REASONS = {"queue_full", "shed"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that has all its own ways of leaving things out, as they come."""
    speech = {"engine": "scripted", "options": {"ms_per_character": 4.0}, "parallel": 4}
    tree = {
        "server": {"max_sessions": 2 * CROWD, "max_links": 2 * CROWD},
        "workers": {**roles(PLACES), "speech": speech},
    }
    with loaded(tmp_path_factory.mktemp("overload"), tree, TENANTS) as running:
        yield running


class Strict(Talker):
    """Believes nothing that it is told."""

    def __init__(self, socket: ClientConnection) -> None:
        super().__init__(socket)
        self.client = StrictClient(on_the_wire=True)
        self.asked = False
        self.overloads: list[Event] = []
        self.refused = 0

    async def next(self) -> Event:
        event = await super().next()
        self.client.feed(event)
        if event["type"] == "chorale.overload":
            self.overloads.append(event)
        return event

    async def begin(self, *, asks: bool) -> None:
        """Those that ask want to be told of overload; the others know the protocol and nothing else."""
        self.asked = asks
        chorale = {"chorale": {"events": ["chorale.overload"]}} if asks else {}
        await self.send(type="session.update", session={"type": "realtime", **chorale})
        await self.until("session.updated")

    async def turn(self, name: str, tokens: int) -> str:
        """Takes one turn; returns how it ended. What was told of it is as docs/protocol.md says."""
        self.overloads = []
        await self.ask(name, tokens)
        response = await self.answer()
        told = [event for event in self.overloads if event["response_id"] == response["id"]]
        if response["status"] == "completed":
            (item,) = response["output"]
            assert item["content"][0].get("transcript", item["content"][0].get("text")) == words_of(
                name, tokens
            )
            assert [event["kind"] for event in told] in ([], ["speech"])
        else:
            self.refused += 1
            error = error_of(response)
            assert (error["type"], error["code"]) == ("server_error", "rate_limit_exceeded")
            assert "try again in" in error["message"]
            assert response["output"] == []
            assert [event["kind"] for event in told] == (["llm"] if self.asked else [])
        assert {event["reason"] for event in told} <= REASONS
        assert all(event["retry_after_s"] > 0 for event in told)
        return str(response["status"])


def test_refused_turns_are_told_by_the_protocol_and_sessions_live_on(server: Served) -> None:
    """Under three times the load every turn is answered in full or refused with the time to come back; nobody gets an
    event that he does not know. Once the load is over the next turn of each is answered."""

    async def load(clients: list[Strict]) -> None:
        async def turns(number: int, talker: Strict) -> None:
            for turn in range(TURNS):
                await talker.turn(f"c{number}t{turn}", TOKENS)

        await asyncio.gather(*(turns(number, talker) for number, talker in enumerate(clients)))
        assert any(talker.refused for talker in clients if talker.asked)
        assert any(talker.refused for talker in clients if not talker.asked)

    async def main() -> None:
        tenants = [tier for _ in range(CROWD // 3) for tier in TENANTS]
        async with asyncio.timeout(2 * LONG_S), crowd(Strict, server, *tenants) as clients:
            for number, talker in enumerate(clients):
                await talker.begin(asks=number % 2 == 0)
            await load(clients)
            at_ease = asyncio.Semaphore(AT_EASE)

            async def once_more(number: int, talker: Strict) -> str:
                async with at_ease:
                    return await talker.turn(f"after{number}", FEW)

            ends = await asyncio.gather(*(once_more(number, talker) for number, talker in enumerate(clients)))
            assert set(ends) == {"completed"}
            for talker in clients:
                talker.client.end()

    asyncio.run(main())
