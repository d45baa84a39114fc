"""A stream as its session sees it."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.sessions.links import LinkKind, LoggedEvent, SessionRequest
from orchestrator.transports.outbox import FELL_BEHIND, Closing
from orchestrator.transports.rpc import link as links
from orchestrator.transports.rpc.link import RpcLink
from orchestrator.transports.rpc.statuses import LinkClosed
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from tests.transports.fake_sessions import FakeSession
from tests.transports.running import until

Messages = AsyncGenerator[pb.ServerMessage, None]


class Stage:
    """A link on a session, and what it was cut with."""

    def __init__(self, with_speech: bool = True) -> None:
        self.session = FakeSession(SessionRequest("t", 1), LinkKind.RPC)
        self.cuts: list[Closing] = []
        self.link = RpcLink(self.session, with_speech, self.cuts.append)

    def begin(self, after: int | None = None) -> Messages:
        self.link.start(self.session.attach(self.link, after))
        return self.link.messages(pb.SessionOpened(session_id=self.session.id))


async def read(messages: Messages, count: int) -> list[pb.ServerMessage]:
    return [await anext(messages) for _ in range(count)]


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(120):
            await test()

    asyncio.run(main())


@given(
    st.lists(st.sampled_from(["event", "sound", "told"]), max_size=200), st.integers(0, 200), st.booleans()
)
def test_link_sends_everything_once_in_order(what: list[str], after: int, with_speech: bool) -> None:
    """Whatever is logged and told, from wherever it reads on: each entry once, in order, the private ones between."""

    async def test() -> None:
        stage = Stage(with_speech)
        session = stage.session
        half = len(what) // 2
        logged = [kind for kind in what[:half] if kind != "told"]
        for kind in logged:
            put(session, kind)
        start = min(after, len(logged))
        messages = stage.begin(start)
        expected = [(number, kind) for number, kind in enumerate(logged, start=1) if number > start]
        for kind in what[half:]:
            if kind == "told":
                stage.link.tell(b'{"type":"error"}')
                expected.append((0, kind))
            else:
                put(session, kind)
                expected.append((session.last, kind))
        if not with_speech:
            expected = [(number, kind) for number, kind in expected if kind != "sound"]
        stage.link.close(1000, "over")
        sent = [one async for one in messages]
        assert [one.WhichOneof("message") for one in sent[:2]] == ["opened", "event"]
        assert [one.number for one in sent[2:]] == [number for number, _ in expected]
        kinds = {"event": "event", "told": "event", "sound": "speech"}
        assert [one.WhichOneof("message") for one in sent[2:]] == [kinds[kind] for _, kind in expected]

    run(test)


def test_others_get_their_turn_between_a_few_messages() -> None:
    """A reader that is never waited for, as an HTTP connection with room: no more than eight messages of a long log
    between two turns of the loop."""

    async def test() -> None:
        stage = Stage()
        for _ in range(100):
            put(stage.session, "event")
        messages, turns = stage.begin(0), 0

        async def turn() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        turning = asyncio.create_task(turn())
        await read(messages, 2)  # that it was opened, and created
        seen = [(await anext(messages), turns)[1] for _ in range(100)]
        turning.cancel()
        assert max(map(seen.count, seen)) <= 8
        stage.link.drop()
        await messages.aclose()

    run(test)


def put(session: FakeSession, kind: str) -> None:
    if kind == "sound":
        session.speak(b"\1\0" * 10)
    else:
        session.emit("a")


def test_link_that_is_to_end_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last message is not taken: after some seconds the call is cut, with the reason that it was to end with."""
    monkeypatch.setattr(links, "CLOSE_WITHIN_S", 0.02)

    async def test() -> None:
        stage = Stage()
        messages = stage.begin()
        await read(messages, 1)
        stage.link.close(1012, "going")
        await until(lambda: bool(stage.cuts))
        assert stage.cuts == [Closing(1012, "going")]
        stage.link.drop()
        await messages.aclose()

    run(test)


def test_link_that_is_to_end_does_not_go_on_for_a_slow_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where its call cannot be cut (over HTTP, in the middle of a message): what is left is not sent any more."""
    monkeypatch.setattr(links, "CLOSE_WITHIN_S", 0.02)

    async def test() -> None:
        stage = Stage()
        for _ in range(50):
            stage.session.emit("a")
        messages = stage.begin(0)
        await read(messages, 5)
        stage.link.close(1008, "gone")
        await until(lambda: bool(stage.cuts))
        with pytest.raises(LinkClosed, match="gone"):
            await read(messages, 1)
        stage.link.drop()

    run(test)


def test_link_is_cut_only_once_the_log_has_dropped_what_a_stuck_client_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A slow client is waited for as long as nothing is lost to it; one that reads is never cut."""
    monkeypatch.setattr(links, "_STUCK_AFTER_S", 0.0)

    async def test() -> None:
        stage = Stage()
        messages = stage.begin()
        await read(messages, 2)
        for _ in range(3):
            stage.session.emit("a")
        assert not stage.cuts
        stage.session.drop_before(3)
        stage.link.wake()
        assert stage.cuts == [FELL_BEHIND]
        with pytest.raises(LinkClosed):
            await read(messages, 1)

    run(test)


def test_link_ends_with_what_its_other_half_has_met() -> None:
    """What breaks the reading ends the writing too."""

    async def test() -> None:
        stage = Stage()
        messages = stage.begin()
        await read(messages, 2)
        stage.link.fail(ConnectionError("gone"))
        with pytest.raises(ConnectionError, match="gone"):
            await read(messages, 1)

    run(test)


def test_client_that_asks_for_much_is_read_again_once_it_has_read() -> None:
    """`caught_up` waits while a lot is unsent, and no longer than the link lives."""

    async def test() -> None:
        stage = Stage()
        messages = stage.begin()
        await read(messages, 2)
        for _ in range(200):
            stage.session.emit("a")
        waiting = asyncio.ensure_future(stage.link.caught_up())
        await asyncio.sleep(0)
        assert not waiting.done()
        await read(messages, 199)
        await waiting
        for _ in range(200):
            stage.session.emit("a")
        waiting = asyncio.ensure_future(stage.link.caught_up())
        await asyncio.sleep(0)
        assert not waiting.done()
        stage.link.drop()
        await waiting
        await messages.aclose()

    run(test)


@pytest.mark.parametrize("with_speech", [True, False])
def test_link_shows_the_secret_where_its_event_has_one(with_speech: bool) -> None:
    """Its client has opened the session or shown the secret: events are word for word those of a WebSocket."""

    async def test() -> None:
        stage = Stage(with_speech)
        messages = stage.begin()
        await read(messages, 2)
        stage.session.emit(LoggedEvent(b'{"secret":""}', b'{"secret":"rs_x"}'))
        (message,) = await read(messages, 1)
        assert message.event.json == '{"secret":"rs_x"}'
        await messages.aclose()

    run(test)


def test_event_that_is_too_big_is_cut_to_what_clients_take() -> None:
    """Below 1 MiB with all around it, under its own number."""

    async def test() -> None:
        stage = Stage()
        messages = stage.begin()
        await read(messages, 2)
        text = "x" * 3_000_000
        stage.session.emit(
            LoggedEvent(json.dumps({"event_id": "event_1", "type": "a", "text": text}).encode())
        )
        (message,) = await read(messages, 1)
        assert message.ByteSize() < 2**20
        shown: dict[str, Any] = json.loads(message.event.json)
        assert (message.number, shown["event_id"]) == (1, "event_1")
        await messages.aclose()

    run(test)
