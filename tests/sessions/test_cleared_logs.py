"""Output logs of sessions that nobody is connected to make room for others, and who comes back is told of the gap."""

import asyncio
from typing import Any

from orchestrator.sessions.runner import SessionRunner
from tests.fakes.links import FakeLink
from tests.sessions.running import House, client, in_house

GAPS = {"type": "realtime", "chorale": {"events": ["chorale.gap"]}}
ROOM = 1_000_000
"""Bytes that all logs may hold in these tests: some three answers."""


async def answered(session: SessionRunner, times: int = 1) -> None:
    """An answer with its sound, and the next: a third of a megabyte each."""
    for n in range(times):
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"{n} " * 60}]}
        await client(session, "conversation.item.create", item=item)
        await client(session, "response.create")
        await asyncio.sleep(2)


def held(session: SessionRunner) -> int:
    return session.statistics().log.size


def gaps(link: FakeLink) -> list[dict[str, Any]]:
    return [event for event in link.events if event["type"] == "chorale.gap"]


def test_log_of_who_was_left_is_cleared_for_others() -> None:
    """Over the bound the session that nobody reads loses its log; the one that is read keeps all of its own."""

    async def test(house: House) -> None:
        left, _ = house.open()
        await answered(left)
        left.detach("link")
        await asyncio.sleep(0.1)
        assert held(left) > 100_000
        busy, link = house.open()
        await answered(busy, times=8)
        assert held(left) == 0
        assert held(busy) > ROOM
        assert link.types().count("response.done") == 8
        logs = house.registry.statistics().logs
        assert logs.cleared == 1
        assert logs.size == held(busy)

    in_house(test, total_log_bytes=ROOM)


def test_logs_keep_their_bound_when_all_clients_leave_at_once() -> None:
    """What was read may be too much together; once nobody reads it the bound holds, though nothing is written any more.
    Who left last keeps its own."""

    async def test(house: House) -> None:
        sessions = [house.open()[0] for _ in range(4)]
        for session in sessions:
            await answered(session, times=3)
        assert house.registry.statistics().logs.size > ROOM
        for session in sessions:
            session.detach("link")
        logs = house.registry.statistics().logs
        assert logs.size <= ROOM
        assert logs.size == sum(map(held, sessions))
        assert held(sessions[0]) == 0
        assert held(sessions[-1]) > 0

    in_house(test, total_log_bytes=ROOM)


def test_log_keeps_its_count_where_sessions_end() -> None:
    """What ended sessions held is nobody's any more."""

    async def test(house: House) -> None:
        session, _ = house.open()
        await answered(session)
        assert house.registry.statistics().logs.size == held(session) > 0
        session.end("over")
        await asyncio.sleep(1)
        logs = house.registry.statistics().logs
        assert (logs.size, logs.sessions, logs.detached) == (0, 0, 0)

    in_house(test)


def test_gap_is_told_to_a_link_that_comes_back_to_a_cleared_log() -> None:
    """What came while nobody was there and was let go is told by its numbers, once, after session.created."""

    async def test(house: House) -> None:
        session, link = house.open()
        await client(session, "session.update", session=GAPS)
        await client(session, "response.create")
        await asyncio.sleep(0.01)
        seen = session.statistics().log.last
        session.detach("link")
        await asyncio.sleep(2)
        assert session.statistics().log.last > seen
        session.forget_log()
        back = FakeLink("back")
        back.attach(session)
        (gap,) = gaps(back)
        assert (gap["after"], gap["first"]) == (seen, session.statistics().log.last + 1)
        assert back.types()[0] == "session.created"
        other = FakeLink("other")
        other.attach(session)
        assert gaps(other) == []
        assert gaps(link) == []

    in_house(test)


def test_gap_is_told_to_who_asked_only() -> None:
    """A client without Chorale's own part sees nothing but session.created, as ever."""

    async def test(house: House) -> None:
        session, _ = house.open()
        await client(session, "response.create")
        await asyncio.sleep(0.01)
        session.detach("link")
        await asyncio.sleep(2)
        session.forget_log()
        back = FakeLink("back")
        back.attach(session)
        assert back.types() == ["session.created"]

    in_house(test)


def test_gap_is_none_where_nothing_was_let_go() -> None:
    """The log still holds what came meanwhile: a link may yet ask for it."""

    async def test(house: House) -> None:
        session, _ = house.open()
        await client(session, "session.update", session=GAPS)
        await client(session, "response.create")
        await asyncio.sleep(0.01)
        session.detach("link")
        await asyncio.sleep(2)
        back = FakeLink("back")
        back.attach(session)
        assert gaps(back) == []

    in_house(test)


def test_attach_after_an_entry_reads_on_behind_it() -> None:
    """A link that says what it has gets the rest; what of that is gone is told, and it reads on behind the gap."""

    async def test(house: House) -> None:
        session, _ = house.open()
        await client(session, "session.update", session=GAPS)
        await answered(session)
        last = session.statistics().log.last
        assert session.attach(FakeLink("resumed"), after=3) == 3
        session.forget_log()
        late = FakeLink("late")
        assert session.attach(late, after=3) == last
        (gap,) = gaps(late)
        assert (gap["after"], gap["first"]) == (3, last + 1)

    in_house(test)
