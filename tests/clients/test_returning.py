"""How clients come back: when they try, where they read on, and what they say again."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.clients.address import CallFailed, ServerRefused, retry_after_s
from orchestrator.clients.earpiece import ReceivedSound
from orchestrator.clients.returning import MOST_UNCONFIRMED, Backoff, Cursor, Rules, Unconfirmed
from orchestrator.clients.returning_call import ReturningCall
from orchestrator.clients.text_socket import ReturningSocket
from orchestrator.wire.client import CreateItem
from tests.clients.answering import Answering, answering
from tests.virtual_time import run

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
    async with asyncio.timeout(120):
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


class Scripted:
    """Connections that a test decides about: refused, or there until `lose`. Remembers when each was tried."""

    given = HERE

    def __init__(self, *answers: Exception | None) -> None:
        self._answers = iter(answers)
        self._lost = asyncio.Event()
        self.tried: list[float] = []
        self.sent: list[dict[str, Any]] = []
        self.holds_back = asyncio.Event()
        self.holds_back.set()
        self.failure = "cut"
        self.cursor = Cursor("sess_0123456789abcdefghij", "rs_x")

    @asynccontextmanager
    async def connect(self, cursor: Cursor) -> AsyncIterator[Any]:
        self.tried.append(asyncio.get_running_loop().time())
        if (refusal := next(self._answers, None)) is not None:
            raise refusal
        self._lost.clear()
        yield self

    def lose(self) -> None:
        self._lost.set()

    async def send(self, event: dict[str, Any]) -> None:
        await self.holds_back.wait()
        self.sent.append(event)

    async def receive(self) -> dict[str, Any]:
        await self._lost.wait()
        raise CallFailed("cut")

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        await self._lost.wait()
        events: list[dict[str, Any]] = []
        for event in events:
            yield event

    def received_pcm(self) -> Any:
        return ReceivedSound(np.zeros(0, np.int16), np.zeros(0, np.int64), np.zeros(0))


def returns(make: Callable[[Scripted], Any], *answers: Exception | None, breaks: int = 1) -> list[float]:
    """Returns how long a client waits before each attempt to come back; each connection holds for 10 s."""
    waited: list[float] = []

    async def story() -> None:
        server = Scripted(None, *answers)
        session = make(server)
        await session._open(*([Cursor()] if isinstance(session, ReturningCall) else []))
        reading = asyncio.create_task(anext(session.events(), None))
        for _ in range(breaks):
            await asyncio.sleep(10)
            before, broke = len(server.tried), asyncio.get_running_loop().time()
            server.lose()
            await asyncio.sleep(100)
            times = [broke, *server.tried[before:]]
            waited.extend(round(b - a, 2) for a, b in pairwise(times))
        reading.cancel()
        await asyncio.wait([reading])

    run(story())
    return waited


MAKES = [
    pytest.param(lambda server: ReturningSocket(server.connect, patient(give_up_s=90)), id="socket"),
    pytest.param(lambda server: ReturningCall(server.connect, patient(give_up_s=90)), id="call"),
]


@pytest.mark.parametrize("make", MAKES)
def test_a_server_that_names_a_time_is_left_alone_for_so_long(make: Callable[[Scripted], Any]) -> None:
    """503 with Retry-After: no attempt comes sooner; what comes after that goes by the law again."""
    full = ServerRefused(503, "full", 7.0)
    assert returns(make, full, ServerRefused(502, "away"), None) == [0.25, 7.0, 1.0]


@pytest.mark.parametrize("make", MAKES)
def test_a_connection_that_held_makes_the_next_break_the_first_again(make: Callable[[Scripted], Any]) -> None:
    """Somebody who loses the connection once an hour waits no longer each time."""
    assert returns(make, breaks=5) == [0.25] * 5


def test_who_is_cancelled_while_saying_again_what_was_lost_loses_nothing() -> None:
    """The next one who asks for an event says it."""

    async def story() -> None:
        server = Scripted(None)
        session = ReturningSocket(server.connect, patient())
        await session._open()
        await session.send(item("a"))
        server.lose()
        server.holds_back.clear()
        reading = asyncio.create_task(session.receive())
        await asyncio.sleep(5)
        assert len(server.tried) == 2
        reading.cancel()
        await asyncio.wait([reading])
        server.holds_back.set()
        reading = asyncio.create_task(session.receive())
        await asyncio.sleep(5)
        reading.cancel()
        await asyncio.wait([reading])
        assert server.sent == [item("a"), item("a")]

    run(story())


@pytest.mark.parametrize(
    ("text", "expected"), [("7", 7.0), ("", 0.0), ("90000", 60.0), ("-1", 0.0), ("soon", 0.0), ("٣", 0.0)]
)
def test_time_that_a_server_names_is_taken_for_what_it_is(text: str, expected: float) -> None:
    """Whole seconds, and no more than a minute."""
    assert retry_after_s({"Retry-After": text} if text else {}) == expected


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
