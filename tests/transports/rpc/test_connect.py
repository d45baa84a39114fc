"""gRPC-Web and Connect on the HTTP port, through their stock client and by hand."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from orchestrator.scheduling.job import Tier
from orchestrator.sessions.links import LogEntry, LoggedEvent
from orchestrator.transports import bounded_requests
from orchestrator.transports.auth import Key, KeyRing, Principal, digest_of
from orchestrator.transports.rpc import link
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from orchestrator.wire.client import CommitAudio
from tests.transports.fake_sessions import FakeSession
from tests.transports.rpc.connecting import WAYS, Caller, calling
from tests.transports.running import House, Running, against, build, until

COMMIT = '{"type":"input_audio_buffer.commit"}'
BIG = LoggedEvent(b'{"event_id":"event_1","type":"a","text":"' + b"x" * 60_000 + b'"}')
GET = "/chorale.v1.Sessions/Get"
JSON = {"content-type": "application/json"}


def keyed() -> House:
    return build(
        KeyRing(
            [
                Key(digest_of("key-a"), Principal("alpha", Tier.PLATINUM)),
                Key(digest_of("key-b"), Principal("beta", Tier.SILVER)),
            ]
        )
    )


def newest(running: Running) -> FakeSession:
    return running.house.directory.sessions[-1]


async def refused(call: Awaitable[object]) -> ConnectError:
    with pytest.raises(ConnectError) as caught:
        await call
    return caught.value


async def read(messages: AsyncIterator[pb.ServerMessage], count: int) -> list[pb.ServerMessage]:
    return [await anext(messages) for _ in range(count)]


async def leave(messages: AsyncIterator[pb.ServerMessage]) -> None:
    """Ends the call from the client's side."""
    stream: Any = messages  # the client gives a generator and does not say so
    await stream.aclose()


def each_way(test: Callable[[Running, Caller], Awaitable[None]], way: str) -> None:
    async def main(running: Running) -> None:
        async with calling(running.port, way) as caller:
            await test(running, caller)

    against(main)


@pytest.mark.parametrize("way", WAYS)
def test_browser_can_hold_a_conversation_without_streaming_up(way: str) -> None:
    """Create, Watch and Send: what is said reaches the session, what it answers comes numbered, with its sound."""

    async def test(running: Running, caller: Caller) -> None:
        opened = await caller.create(model="m", session='{"instructions":"Be brief."}')
        session = newest(running)
        assert (opened.session_id, opened.secret) == (session.id, session.secret)
        assert session.request.model == "m"
        messages = caller.watch(opened, speech=True)
        first, created = await read(messages, 2)
        assert first.opened.session_id == session.id
        assert json.loads(created.event.json)["type"] == "session.created"
        reply = await caller.send(opened, [COMMIT, '{"type":"nope"}', COMMIT], sound=b"\1\0" * 2_400)
        assert (reply.accepted, json.loads(reply.error)["error"]["code"]) == (1, "invalid_event")
        assert [type(event) for event in session.submitted] == [CommitAudio]
        assert session.intake.position == 1_600
        session.emit("größer")
        session.speak(b"\2\0" * 100)
        event, speech = await read(messages, 2)
        assert (event.number, json.loads(event.event.json)["type"]) == (1, "größer")
        assert (speech.number, speech.speech.data) == (2, b"\2\0" * 100)
        await leave(messages)
        await until(lambda: not session.links)
        assert session.ended is None

    each_way(test, way)


@pytest.mark.parametrize("way", WAYS)
def test_watch_goes_on_where_its_client_left_off(way: str) -> None:
    """`after` brings what was missed once and in order, behind a gap where some of it is gone."""

    async def test(running: Running, caller: Caller) -> None:
        opened = await caller.create()
        session = newest(running)
        for _ in range(5):
            session.emit("a")
        messages = caller.watch(opened, after=3)
        assert [one.number for one in await read(messages, 4)] == [0, 0, 4, 5]
        await leave(messages)
        session.drop_before(4)
        messages = caller.watch(opened, after=0)
        _, _, gap, fourth = await read(messages, 4)
        assert (gap.gap, fourth.number) == (pb.Gap(after=0, first=4), 4)
        await leave(messages)
        error = await refused(anext(caller.watch(opened, after=99)))
        assert error.code is Code.INVALID_ARGUMENT

    each_way(test, way)


@pytest.mark.parametrize("way", WAYS)
def test_stream_of_a_session_that_ends_is_complete(way: str) -> None:
    """The client reads to the end without an error; and finds no session after it."""

    async def test(running: Running, caller: Caller) -> None:
        opened = await caller.create()
        messages = caller.watch(opened)
        await read(messages, 2)
        await caller.end(opened)
        assert [one async for one in messages] == []
        assert (await refused(caller.get(opened.session_id, opened.secret))).code is Code.NOT_FOUND

    each_way(test, way)


@pytest.mark.parametrize("way", WAYS)
def test_converse_takes_what_is_said_at_once_and_goes_on_answering(way: str) -> None:
    """Half a duplex over HTTP/1.1: open, say, and listen in one call; a session that is left waits."""

    async def test(running: Running, caller: Caller) -> None:
        said = (
            pb.ClientMessage(open=pb.Open(model="m")),
            pb.ClientMessage(sound=pb.Sound(data=b"\1\0" * 2_400)),
            pb.ClientMessage(event=pb.Event(json=COMMIT)),
        )
        messages = caller.converse(*said)
        await read(messages, 2)
        session = newest(running)
        await session.wait_for(1)
        assert session.intake.position == 1_600
        session.emit("answer")
        (answer,) = await read(messages, 1)
        assert answer.number == 1
        await leave(messages)
        await until(lambda: not session.links)
        assert session.ended is None

    each_way(test, way)


@pytest.mark.parametrize("way", WAYS)
def test_key_is_looked_at_before_anything_is_read(way: str) -> None:
    """UNAUTHENTICATED without one; sessions are their tenant's, whatever secret is shown."""

    async def main(running: Running) -> None:
        async with (
            calling(running.port, way) as nobody,
            calling(running.port, way, "key-a") as alpha,
            calling(running.port, way, "key-b") as beta,
        ):
            assert (await refused(nobody.create())).code is Code.UNAUTHENTICATED
            opened = await alpha.create()
            assert newest(running).request.tenant == "alpha"
            assert (await refused(beta.get(opened.session_id, opened.secret))).code is Code.NOT_FOUND
            assert (await refused(anext(beta.watch(opened)))).code is Code.NOT_FOUND
            assert (await alpha.get(opened.session_id, opened.secret)).last == 0

    against(main, keyed)


@pytest.mark.parametrize("way", WAYS)
def test_full_server_says_so(way: str) -> None:
    """RESOURCE_EXHAUSTED for a session and for a link too many."""

    async def main(running: Running) -> None:
        async with calling(running.port, way) as caller:
            opened = await caller.create()
            assert (await refused(caller.create())).code is Code.RESOURCE_EXHAUSTED
            messages = caller.watch(opened)
            await read(messages, 1)
            assert (await refused(anext(caller.watch(opened)))).code is Code.RESOURCE_EXHAUSTED
            await leave(messages)
            await until(lambda: running.house.streams.links == 0)

    against(main, lambda: build(capacity=1, max_links=1))


def test_refusal_brings_its_code_and_time_as_trailers() -> None:
    """What gRPC has in its trailers a request of Connect has in headers named after them."""

    async def test(running: Running) -> None:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}", trust_env=False) as client:
            create = "/chorale.v1.Sessions/Create"
            assert (await client.post(create, json={})).status_code == 200
            full = await client.post(create, json={})
            assert (full.status_code, full.json()["code"]) == (429, "resource_exhausted")
            assert full.headers["trailer-retry-after-ms"] == "7000"
            assert full.headers["trailer-chorale-code"] == "rate_limit_exceeded"

    against(test, lambda: build(capacity=1))


def test_streams_end_with_the_server() -> None:
    """UNAVAILABLE after the last words: the client comes back with its number."""

    async def test(running: Running, caller: Caller) -> None:
        opened = await caller.create()
        messages = caller.watch(opened)
        await read(messages, 2)
        newest(running).emit("last words")
        running.house.streams.shut()
        assert (await anext(messages)).number == 1
        assert (await refused(anext(messages))).code is Code.UNAVAILABLE

    each_way(test, "gRPC-Web")


async def watching(running: Running) -> tuple[FakeSession, asyncio.StreamReader, asyncio.StreamWriter]:
    """A client by hand that watches a session and has read the head of the answer."""
    async with calling(running.port, "connect") as caller:
        opened = await caller.create()
    message = pb.WatchRequest(session_id=opened.session_id, secret=opened.secret).SerializeToString()
    body = b"\0" + len(message).to_bytes(4, "big") + message
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port, limit=2**10)
    head = (
        "POST /chorale.v1.Sessions/Watch HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/grpc-web+proto\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await reader.readuntil(b"\r\n\r\n")
    session = newest(running)
    await until(lambda: len(session.links) == 1)
    return session, reader, writer


def test_client_that_vanishes_lets_go_of_its_session() -> None:
    """Its connection breaks while nothing is sent: the link is gone, the session waits."""

    async def test(running: Running) -> None:
        session, _, writer = await watching(running)
        transport: Any = writer.transport
        transport.abort()
        await until(lambda: not session.links)
        assert session.ended is None

    against(test)


def test_client_that_reads_nothing_is_dropped_and_makes_nothing_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it does not take stays in the log, but for what sockets hold; then it is dropped."""
    monkeypatch.setattr(bounded_requests, "REQUEST_WITHIN_S", 0.2)

    async def test(running: Running) -> None:
        session, _, writer = await watching(running)
        taken = 0

        def read(cursor: int, limit: int) -> list[tuple[int, LogEntry]]:
            nonlocal taken
            taken = max(taken, cursor)
            return reading(cursor, limit)

        reading = session.read
        monkeypatch.setattr(session, "read", read)
        for _ in range(1_000):
            session.emit(BIG)
        await until(lambda: not session.links)
        assert taken < 500
        writer.close()

    against(test)


def test_stream_whose_client_does_not_take_what_was_sent_ends_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its session has ended, and it reads, but hardly: the connection is cut, and its place is free."""
    monkeypatch.setattr(link, "CLOSE_WITHIN_S", 0.2)
    monkeypatch.setattr(bounded_requests, "REQUEST_WITHIN_S", 3_600.0)

    async def test(running: Running) -> None:
        session, _, writer = await watching(running)
        for _ in range(100):
            session.emit(BIG)
        connections = running.server.server_state.connections
        await until(
            lambda: any(one.flow.write_paused for one in connections if isinstance(one, HttpToolsProtocol))
        )
        running.house.streams.shut()
        await until(lambda: not session.links)
        await until(lambda: not running.house.streams.links)
        writer.close()

    against(test)


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"content-type": "application/grpc"}, b"", 415),
        ({"content-type": "application/grpc+proto"}, b"\0\0\0\0\0", 415),
        ({"content-type": "text/plain"}, b"x", 415),
        ({}, b"x", 415),
        (JSON, b"{", 400),
        (JSON, b"[" * 100_000, 400),
        (JSON, b'{"sessionId":' * 20_000, 400),
        (JSON, b'{"sessionId":"\\ud800"}', 400),
        (JSON, b'{"sessionId":"' + b"x" * 600_000 + b'"}', 429),
        (JSON, b'{"events":[' + b'"",' * 20_000 + b'""]}', 400),
        ({**JSON, "content-encoding": "gzip"}, b"\x1f\x8b" + b"\0" * 50, 501),
        ({"content-type": "application/proto"}, b"\xff\xff\xff", 400),
        ({**JSON, "connect-timeout-ms": "-1"}, b"{}", 400),
        ({**JSON, "connect-timeout-ms": "99999999999999"}, b"{}", 400),
        ({**JSON, "x-evil": b"\xff\xfe"}, b"{}", 400),
        ({**JSON, "origin": "https://evil.example"}, b"{}", 403),
    ],
)
def test_bad_request_is_the_clients_fault(headers: dict[str, str | bytes], body: bytes, status: int) -> None:
    """A status of 4xx (501 for what is not spoken), never a fault of the server, and the next request is served."""

    async def test(running: Running) -> None:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}", trust_env=False) as client:
            answer = await client.post(GET, content=body, headers=_raw(headers))
            assert answer.status_code == status, answer.text
            good = await client.post(GET, json={"sessionId": "x", "secret": "y"})
            assert (good.status_code, good.json()["code"]) == (404, "not_found")

    against(test)


def _raw(headers: dict[str, str | bytes]) -> list[tuple[bytes, bytes]]:
    return [
        (name.encode(), value if isinstance(value, bytes) else value.encode())
        for name, value in headers.items()
    ]


def test_other_methods_and_addresses_are_refused_in_the_shape_of_all_errors() -> None:
    """A GET, a method that is not there, and a WebSocket at this address."""

    async def test(running: Running) -> None:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}", trust_env=False) as client:
            assert (await client.get(GET)).status_code == 405
            nothing = await client.post("/chorale.v1.Sessions/Nothing", json={})
            assert (nothing.status_code, nothing.json()["error"]["code"]) == (404, "not_found")
            assert "Converse, Create, End, Get, Send, Watch" in nothing.json()["error"]["message"]
            for method, kind in (("Create", "application/json"), ("Watch", "application/connect+json")):
                unknown = await client.post(f"/chorale.v1.Sessions/{method}", content=b"x")
                assert (unknown.status_code, kind in unknown.json()["error"]["message"]) == (415, True)
            assert (await client.post("/chorale.v1.Sessions", json={})).status_code == 404
            upgrade = {
                "connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13",
                "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
            }  # fmt: skip
            assert (await client.get(GET, headers=upgrade)).status_code == 404

    against(test)


def test_server_starts_without_the_libraries_of_rpc() -> None:
    """Nothing of gRPC or Connect is imported before it is spoken: starting stays cheap."""
    code = (
        "import sys, orchestrator.app\n"
        "print([name for name in ('grpc', 'connectrpc', 'google.protobuf', 'pyqwest') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
