"""The inbox as a door and a runner use it together."""

import asyncio
import json

import pytest

from orchestrator.errors import Overloaded
from orchestrator.sessions import events as on
from orchestrator.sessions.inbox import Inbox
from orchestrator.wire import codec
from tests.sessions.running import House, in_house
from tests.virtual_time import run


def test_inbox_says_when_an_event_has_been_handled_and_not_only_taken() -> None:
    """Whoever waits goes on once the taker comes back for more: then what was taken is done."""

    async def main() -> list[str]:
        inbox, told = Inbox(), list[str]()

        async def taker() -> None:
            while True:
                await inbox.take()
                await asyncio.sleep(1)
                told.append("handled")

        async def waiter() -> None:
            inbox.put_nowait(on.TimePassed())
            await inbox.handled()
            told.append("went on")

        task = asyncio.create_task(taker())
        await asyncio.gather(waiter(), waiter())
        task.cancel()
        return told

    assert run(main()) == ["handled", "went on", "went on"]


def test_inbox_refuses_at_its_backstop_and_counts() -> None:
    """What only a fault of ours can reach is seen: in the sums over sessions too, also once the session has ended."""

    async def test(house: House) -> None:
        session, _ = house.open()
        session._inbox._limit = 0
        session._clips.refused = 3
        with pytest.raises(Overloaded):
            session._inbox.put_nowait(on.TimePassed())
        held = house.registry.holdings()
        assert (held.events_refused, held.clips_refused) == (1, 3)
        session._inbox._limit = 64
        house.registry.end(session, "bye")
        await asyncio.sleep(1)
        assert len(house.registry) == 0
        held = house.registry.holdings()
        assert (held.events_refused, held.clips_refused) == (1, 3)

    in_house(test)


def test_inbox_lets_go_of_who_waits_when_it_closes() -> None:
    """An event that is never handled, since its session ended, holds nobody."""

    async def main() -> None:
        inbox = Inbox()
        inbox.put_nowait(on.TimePassed())
        waiting = asyncio.create_task(inbox.handled())
        await asyncio.sleep(1)
        assert not waiting.done()
        inbox.close()
        await waiting

    run(main())


def test_inbox_whose_taker_is_to_fail_tells_it_why_whatever_else_has_come() -> None:
    """An event that fails half-way may have brought another in before."""

    async def main() -> None:
        inbox = Inbox()
        taking = asyncio.create_task(inbox.take())
        await asyncio.sleep(1)
        with inbox.instead():
            inbox.put_nowait(on.TimePassed())
            raise ZeroDivisionError
        with pytest.raises(ZeroDivisionError):
            await taking

    run(main())


def test_an_updated_session_is_in_force_when_its_door_goes_on() -> None:
    """Sound that a client sends right behind `session.update` is read in the format that the update names."""

    async def talk(house: House) -> None:
        session, link = house.open()
        update = {
            "type": "session.update",
            "session": {"type": "realtime", "audio": {"input": {"format": {"type": "audio/pcmu"}}}},
        }
        await session.submit(link.id, codec.decode_client(json.dumps(update)))
        assert session.view.audio.input.format.type == "audio/pcmu"

    in_house(talk)
