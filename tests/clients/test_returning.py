"""How clients come back: when they try, where they read on, and what they say again."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.clients.address import CallFailed
from orchestrator.clients.returning import MOST_UNCONFIRMED, Backoff, Cursor, Rules, Unconfirmed
from orchestrator.clients.returning_call import ReturningCall
from orchestrator.clients.text_socket import ReturningSocket
from orchestrator.wire.client import CreateItem
from tests.clients.answering import Answering, answering

HERE = {"Chorale-Session-Id": "sess_0123456789abcdefghij", "Chorale-Session-Secret": "rs_x"}


def at(number: object) -> dict[str, Any]:
    return {"type": "t", "event_id": f"event_89abcdefghij_{number}"}


@given(st.lists(st.floats(0, 0.999), min_size=12, max_size=12))
def test_backoff_grows_to_a_bound_and_leaves_half_to_chance(chances: list[float]) -> None:
    """Half a second, doubled each time, 20 s at most; never less than half of that; from the start once it has held."""
    left = iter([*chances, 0.0])
    backoff = Backoff(lambda: next(left))
    for attempt, chance in enumerate(chances):
        ceiling = min(20.0, 0.5 * 2**attempt)
        assert backoff.next_s() == pytest.approx(ceiling * (0.5 + chance / 2))
    backoff.steady()
    assert backoff.next_s() == 0.25


def test_backoff_asks_no_sooner_than_the_server_said() -> None:
    """With some chance added, so that not all who were told the same come at once."""
    assert Backoff(lambda: 0.5).next_s(7.0) == 7.25
    assert Backoff(lambda: 0.0).next_s(0.0) == 0.25


def test_cursor_follows_the_numbers_of_its_session() -> None:
    """Each numbered event once; private messages, and ids that are none of this session's, are let through and move
    nothing."""
    cursor = Cursor()
    assert cursor.receive(at(5))
    told = []
    for headers in ({}, {"Chorale-Session-Id": "sess_x"}, HERE):
        cursor.given(headers)
        told.append(cursor.may_return)
    assert told == [False, False, True]
    assert [cursor.receive(at(number)) for number in (1, 2, 2, 1, 5)] == [True, True, False, False, True]
    for other in ("p9", "٣", "", "9" * 16, "9x"):
        assert cursor.receive(at(other))
    assert cursor.receive({"type": "t", "event_id": "event_other_9"})
    assert cursor.receive({"type": "t"})
    assert cursor.place == {"session_id": "sess_0123456789abcdefghij", "after": "5"}
    cursor.given({})
    assert cursor.last == 5


def item(id: str) -> dict[str, Any]:
    return {"type": "conversation.item.create", "event_id": f"e_{id}", "item": {"id": id}}


def error(about: str, code: str = "item_create_duplicate_item_id") -> dict[str, Any]:
    return {"type": "error", "error": {"event_id": about, "code": code, "message": ""}}


def test_what_is_not_known_to_have_arrived_is_said_again() -> None:
    """Items until they were added or refused, the last update until it is in force; nothing else."""
    said = Unconfirmed()
    first, second = ({"type": "session.update", "session": {"n": n}} for n in (1, 2))
    for event in (first, item("a"), second, item("b"), item("c"), {"type": "response.create"}):
        said.said(event)
    assert said.again() == [second, item("a"), item("b"), item("c")]
    assert said.heard({"type": "conversation.item.added", "item": {"id": "a"}})
    assert said.heard(error("e_b", "invalid_value")), "a refusal is news"
    assert said.again() == [second, item("c")]
    assert said.heard({"type": "session.updated"})
    assert said.again() == [item("c")]
    assert not said.heard(error("e_c")), "the server had it already"
    assert len(said) == 0


def test_no_more_is_kept_than_a_client_may_have_under_way() -> None:
    """Of many items that a server does not confirm, the oldest are let go."""
    said = Unconfirmed()
    for number in range(MOST_UNCONFIRMED + 3):
        said.said(item(str(number)))
    assert said.again()[0] == item("3")
    assert len(said) == MOST_UNCONFIRMED


def test_a_duplicate_that_nobody_repeated_is_news() -> None:
    """The client itself has used an id twice: it is told. One whose item came in the replay is not."""
    said = Unconfirmed()
    said.said(item("a"))
    assert said.heard(error("e_a"))
    said.said(item("b"))
    said.again()
    assert said.heard({"type": "conversation.item.added", "item": {"id": "b"}})
    assert not said.heard(error("e_b"))


async def within(story: Coroutine[Any, Any, None]) -> None:
    """A story that does not end is a failure too."""
    async with asyncio.timeout(60):
        await story


def patient(**rules: Any) -> Rules:
    """Comes back as soon as the law lets it."""
    return Rules(random=lambda: 0.0, **rules)


def emit(server: Answering, *kinds: str) -> None:
    for kind in kinds:
        server.loop.call_soon_threadsafe(server.session.emit, kind)


def cut(server: Answering) -> None:
    """Ends every link as a fault would; the session lives on."""

    def close() -> None:
        for link in list(server.session.links.values()):
            link.close(1011, "something broke")

    server.loop.call_soon_threadsafe(close)


def test_a_session_outlives_its_connections() -> None:
    """F-C1: whatever breaks, each event comes once and in order, and somebody is told."""

    async def story(server: Answering) -> None:
        notices: list[str] = []
        async with ReturningSocket.connect(server.url, rules=patient(notice=notices.append)) as session:
            assert (await session.receive())["type"] == "session.created"
            for round in range(3):
                emit(server, f"before.{round}")
                cut(server)
                emit(server, f"behind.{round}")
            got: list[str] = []
            while len(got) < 6:
                kind = (await session.receive())["type"]
                got += [kind] if kind != "session.created" else []
            assert got == [f"{when}.{n}" for n in range(3) for when in ("before", "behind")]
            assert session.returns == len(notices) >= 1
            assert "1011 something broke" in notices[0]

    with answering() as server:
        asyncio.run(within(story(server)))


def test_a_session_says_again_what_its_server_never_got() -> None:
    """What was sent into a connection that was gone: it arrives once, over the next one."""

    async def story(server: Answering) -> None:
        async with ReturningSocket.connect(server.url, rules=patient()) as session:
            await session.receive()
            cut(server)
            while server.session.links:  # noqa: ASYNC110 - what is waited for is in another thread
                await asyncio.sleep(0.005)
            item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello?"}]}
            await session.send({"type": "conversation.item.create", "item": item})
            reader = asyncio.create_task(session.receive())
            while not server.session.submitted:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            reader.cancel()
            await asyncio.wait([reader])
            (said,) = server.session.submitted
            assert isinstance(said, CreateItem)
            assert said.item.id == said.event_id
            assert session.returns == 1

    with answering() as server:
        asyncio.run(within(story(server)))


def test_a_session_that_has_ended_ends_with_the_servers_words() -> None:
    """There is nothing to come back to: why the connection ended is what is told, once and for all."""

    async def story(server: Answering) -> None:
        async with ReturningSocket.connect(server.url, rules=patient()) as session:
            await session.receive()
            server.loop.call_soon_threadsafe(server.directory.end, server.session, "enough")
            for _ in range(2):
                with pytest.raises(CallFailed, match="1000 enough"):
                    await session.receive()
            assert [event async for event in session.events()] == []
            with pytest.raises(CallFailed):
                await session.send({"type": "response.create"})

    with answering() as server:
        asyncio.run(within(story(server)))


def test_a_server_that_stays_away_is_given_up() -> None:
    """After the time that the rules give, with the reason of the break."""

    async def story(server: Answering) -> None:
        async with ReturningSocket.connect(server.url, rules=patient(give_up_s=1.0)) as session:
            await session.receive()
            stop()
            with pytest.raises(CallFailed):
                await session.receive()
            assert session.returns == 0

    context = answering()
    server = context.__enter__()

    def stop() -> None:
        context.__exit__(None, None, None)

    asyncio.run(within(story(server)))


def test_a_call_that_breaks_is_made_again_to_its_session() -> None:
    """Events once and in order over both calls; the session is one and the same."""

    async def story(server: Answering) -> None:
        notices: list[str] = []
        async with ReturningCall.connect(server.url, rules=patient(notice=notices.append)) as call:
            events = call.events()
            assert (await anext(events))["type"] == "session.created"
            first = call.now.call_id
            emit(server, "one", "two")
            assert [(await anext(events))["type"] for _ in range(2)] == ["one", "two"]
            cut(server)
            emit(server, "three")
            assert [(await anext(events))["type"] for _ in range(2)] == ["session.created", "three"]
            assert call.now.call_id != first
            assert len(notices) == 1
            server.loop.call_soon_threadsafe(server.directory.end, server.session, "enough")
            assert [event async for event in events] == []
            assert call.failure is not None

    with answering() as server:
        asyncio.run(within(story(server)))
