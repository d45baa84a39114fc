"""Connections through nginx that are cut at random points: put together, what was received is what was said."""

import json
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from tests.nginx.opening import opened_over_http, stub_of
from tests.nginx.proxying import Stand, against
from tests.transports.fake_sessions import FakeSession
from tests.transports.running import heard, until

pytestmark = pytest.mark.needs("nginx")

CUTS = 20

Read = Callable[[], Awaitable[bytes]]


@asynccontextmanager
async def by_websocket(stand: Stand, session: FakeSession, after: int) -> AsyncIterator[Read]:
    """Reads on over a WebSocket, whose connection is then dropped without a word."""
    shown = [f"chorale-session-secret.{session.secret}", "realtime"]
    async with stand.front.connect(f"?session_id={session.id}&after={after}", shown) as link:
        assert (await heard(link))["type"] == "session.created"

        async def read() -> bytes:
            return await link.recv(decode=False)

        try:
            yield read
        finally:
            link.transport.abort()


@asynccontextmanager
async def by_event_stream(stand: Stand, session: FakeSession, after: int) -> AsyncIterator[Read]:
    """Reads on as server-sent events, after the last id; the response is then left."""
    headers = {"chorale-session-secret": session.secret, "last-event-id": session.event_id(after)}
    async with (
        stand.front.client(**headers) as client,
        client.stream("GET", f"/v1/sessions/{session.id}/events") as stream,
    ):
        lines = stream.aiter_lines()

        async def read() -> bytes:
            is_logged = False
            while True:
                name, _, value = (await anext(lines)).partition(": ")
                if name == "id" and value != session.event_id(after):
                    is_logged = True
                elif name == "data" and is_logged:
                    return value.encode()

        yield read


@asynccontextmanager
async def by_grpc(stand: Stand, session: FakeSession, after: int) -> AsyncIterator[Read]:
    """Reads on over gRPC; the call is then cancelled."""
    call = stub_of(stand).Watch(
        pb.WatchRequest(session_id=session.id, secret=session.secret, after=after),
        metadata=(("chorale-session-id", session.id),),
    )

    async def read() -> bytes:
        while not (message := await call.read()).number:
            pass
        return str(message.event.json).encode()

    try:
        yield read
    finally:
        call.cancel()


@asynccontextmanager
async def by_grpc_web(stand: Stand, session: FakeSession, after: int) -> AsyncIterator[Read]:
    """Reads on over gRPC-Web; the connection is then closed."""
    async with stand.front.calling("gRPC-Web", **{"chorale-session-id": session.id}) as caller:
        opened = pb.SessionOpened(session_id=session.id, secret=session.secret)
        messages = caller.watch(opened, after)
        assert isinstance(messages, AsyncGenerator)

        async def read() -> bytes:
            while not (message := await anext(messages)).number:
                pass
            return str(message.event.json).encode()

        async with aclosing(messages):
            yield read


DOORS = {"WebSocket": by_websocket, "SSE": by_event_stream, "gRPC": by_grpc, "gRPC-Web": by_grpc_web}


@pytest.mark.parametrize("door", DOORS)
def test_what_was_received_over_cut_connections_is_what_was_said(tmp_path: Path, door: str) -> None:
    """Twenty times, each at a random event, with others on their way: every byte once, and in order."""
    chance = random.Random(20)

    async def test(stand: Stand) -> None:
        async with stand.front.client() as client:
            session, _ = await opened_over_http(stand, client)
        received: list[bytes] = []
        for _ in range(CUTS):
            async with DOORS[door](stand, session, len(received)) as read:
                for _ in range(chance.randint(0, 9)):
                    for _ in range(chance.randint(1, 3)):
                        session.emit(f"response.output_text.delta.{chance.random()}")
                    received.append(await read())
                for _ in range(chance.randint(0, 40)):
                    session.emit("what is on its way when it is cut")
            await until(lambda: not session.links)  # nobody keeps a place that has gone
        async with DOORS[door](stand, session, len(received)) as read:
            while len(received) < session.last:
                received.append(await read())
        said = [entry.data for _, entry in sorted(session.log.items())]  # type: ignore[union-attr]
        assert session.last > CUTS
        assert b"".join(received) == b"".join(said)
        assert [json.loads(one)["event_id"] for one in received] == [
            session.event_id(number) for number in range(1, session.last + 1)
        ]

    against(tmp_path, test)
