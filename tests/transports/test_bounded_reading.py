"""What a client may make the server read: heads, frames and fragments, on a real socket and on a transport of wood."""

import asyncio
import contextlib
import json
import logging
import socket
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from uvicorn.server import ServerState

from orchestrator.transports import bounded_reading
from orchestrator.transports.bounded_reading import BoundedReading
from tests.transports.running import Running, against, build, heard, until

UPGRADE = (
    b"GET /v1/realtime HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)
CLOSE, PING, CONTINUATION, TEXT = 0x8, 0x9, 0x0, 0x1


def frame(opcode: int, payload: bytes = b"", final: bool = True) -> bytes:
    """A client's frame, masked with zeros."""
    size = len(payload)
    assert size < 65_536
    length = bytes([0x80 | size]) if size < 126 else bytes([0x80 | 126]) + struct.pack("!H", size)
    return bytes([(0x80 if final else 0) | opcode]) + length + bytes(4) + payload


class WoodenTransport(asyncio.Transport):
    """Takes everything down and sends nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.is_reading_now = True
        self.closed = self.aborted = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def write(self, data: Any) -> None:
        self.written += data

    def pause_reading(self) -> None:
        self.is_reading_now = False

    def resume_reading(self) -> None:
        self.is_reading_now = True

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True


class Listener:
    """An application that accepts and takes messages when it is told to."""

    def __init__(self) -> None:
        self.may_read = asyncio.Event()
        self.messages: list[Any] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        while True:
            await self.may_read.wait()
            message = await receive()
            if message["type"] == "websocket.disconnect":
                return
            self.messages.append(message["text"])


async def opened(listener: Listener) -> tuple[BoundedReading, WoodenTransport]:
    """A WebSocket that has just been upgraded."""
    config = uvicorn.Config(listener, log_config=None, ws_ping_interval=None, lifespan="off")
    protocol = BoundedReading(config, ServerState(), {})
    transport = WoodenTransport()
    protocol.connection_made(transport)
    protocol.data_received(UPGRADE + b"\r\n")
    await until(lambda: b"101" in transport.written)
    transport.written.clear()
    return protocol, transport


def with_socket(
    test: Callable[[BoundedReading, WoodenTransport, Listener], Awaitable[None]],
) -> None:
    async def main() -> None:
        async with asyncio.timeout(30):
            listener = Listener()
            protocol, transport = await opened(listener)
            await test(protocol, transport, listener)
            listener.may_read.set()
            transport.closed = True
            protocol.connection_lost(ConnectionResetError())
            await until(lambda: not protocol.tasks)

    asyncio.run(main())


def test_flood_of_pings_is_unpacked_in_turns_with_everybody_else() -> None:
    """However many frames one read of the socket brings, a turn of the loop unpacks some hundred of them; the peer is
    read no further meanwhile, and every ping is answered in the end."""

    async def test(protocol: BoundedReading, transport: WoodenTransport, _: Listener) -> None:
        protocol.data_received(frame(PING) * 40_000)
        assert len(transport.written) <= 2 * 400
        assert not transport.is_reading_now
        turns, answered = 0, 0
        while len(transport.written) < 2 * 40_000:
            assert len(transport.written) - answered <= 2 * 400
            answered = len(transport.written)
            turns += 1
            await asyncio.sleep(0)
        assert turns > 100
        assert transport.is_reading_now

    with_socket(test)


def test_message_in_many_reads_is_unpacked_without_waiting() -> None:
    """What holds no whole frame yet is taken in at once: a big append is not slowed down by the slices."""

    async def test(protocol: BoundedReading, transport: WoodenTransport, listener: Listener) -> None:
        whole = frame(TEXT, b"a" * 60_000)
        protocol.data_received(whole[:50_000])
        assert transport.is_reading_now
        protocol.data_received(whole[50_000:])
        listener.may_read.set()
        await until(lambda: len(listener.messages) == 1)
        assert len(listener.messages[0]) == 60_000

    with_socket(test)


def test_messages_are_unpacked_as_they_are_taken() -> None:
    """While the application takes nothing, no more than a slice of what came is unpacked; then everything comes, in
    order, and reading goes on."""

    async def test(protocol: BoundedReading, transport: WoodenTransport, listener: Listener) -> None:
        protocol.data_received(b"".join(frame(TEXT, b"%05d" % number) for number in range(5_000)))
        for _ in range(20):
            await asyncio.sleep(0)
        assert protocol.queue.qsize() < 400
        assert not transport.is_reading_now
        listener.may_read.set()
        await until(lambda: len(listener.messages) == 5_000)
        assert listener.messages == [f"{number:05d}" for number in range(5_000)]
        assert transport.is_reading_now

    with_socket(test)


def test_peer_that_reads_nothing_is_sent_no_pongs() -> None:
    """Answers to pings are not collected for a peer whose socket is full."""

    async def test(protocol: BoundedReading, transport: WoodenTransport, _: Listener) -> None:
        protocol.pause_writing()
        protocol.data_received(frame(PING, b"x" * 100) * 10)
        assert not transport.written
        protocol.resume_writing()
        protocol.data_received(frame(PING, b"y"))
        assert transport.written == b"\x8a\x01y"

    with_socket(test)


def test_fragments_of_a_message_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty fragments count no bytes, so they are counted themselves: 1009, and whatever follows is not looked at."""
    monkeypatch.setattr(bounded_reading, "MAX_FRAGMENTS", 50)

    async def test(protocol: BoundedReading, transport: WoodenTransport, _: Listener) -> None:
        protocol.data_received(frame(TEXT, b"{", final=False) + frame(CONTINUATION, final=False) * 49)
        assert not transport.written
        protocol.data_received(frame(CONTINUATION, final=False) * 50)
        assert transport.written[:4] == bytes([0x88, len(transport.written) - 2]) + struct.pack("!H", 1009)
        assert transport.closed
        assert not protocol.frames

    with_socket(test)


def test_closed_connection_whose_peer_does_not_read_is_torn_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that breaks the protocol, or closes, and leaves the answer unread costs its socket for a while only."""
    monkeypatch.setattr(bounded_reading, "CLOSE_TIMEOUT_S", 0.01)

    for said in (frame(0x3), frame(CLOSE, struct.pack("!H", 1000)), frame(TEXT, b"\xff")):

        async def test(
            protocol: BoundedReading, transport: WoodenTransport, _: Listener, said: bytes = said
        ) -> None:
            protocol.data_received(said)
            assert transport.closed
            await until(lambda: transport.aborted)

        with_socket(test)


@pytest.mark.parametrize(
    ("said", "code"),
    [(frame(0x3), 1002), (frame(TEXT, b"\xff{}"), 1007), (frame(PING, b"x" * 126), 1002)],
)
def test_client_that_breaks_the_protocol_leaves_no_trace_in_the_log(
    said: bytes, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The link is closed with the code of the fault, while the server is sending too; nothing of it is an error of
    ours."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            await heard(link)
            (session,) = running.house.directory.sessions
            link.transport.write(said)
            for _ in range(50):
                session.emit("response.done")
                await asyncio.sleep(0)
            await link.wait_closed()
            assert link.close_code == code
        await until(lambda: not session.links)

    with caplog.at_level(logging.WARNING):
        against(test)
    assert not caplog.records


async def answer(running: Running, request: bytes) -> tuple[int, dict[str, Any]]:
    """Sends a request as it is; returns status and error of the answer, after which the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    writer.write(request)
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    assert b"application/json" in head
    error: dict[str, Any] = json.loads(body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return int(head.split()[1]), error


@pytest.mark.parametrize(
    "more",
    [
        b"".join(b"X-%d: a\r\n" % number for number in range(200)) + b"\r\n",
        b"X: " + b"a" * 9_000 + b"\r\n\r\n",
        b"Content-Length: 3\r\n\r\nabc",
    ],
)
def test_upgrade_that_cannot_be_read_is_answered(more: bytes) -> None:
    """A WebSocket's request with too many or too long headers, or with a body, gets 400 and not an endless silence."""

    async def test(running: Running) -> None:
        status, error = await answer(running, UPGRADE + more)
        assert (status, error["code"]) == (400, "invalid_request")
        await until(lambda: not running.server.server_state.connections)

    against(test)


@pytest.mark.parametrize(
    "request_bytes", [b"\x16\x03\x01\x02\x00", b"FOO / HTTP/1.1\r\n\r\n", b"no http\r\n\r\n"]
)
def test_what_is_no_http_is_refused_like_everything_else(request_bytes: bytes) -> None:
    """Garbage on the port gets the one shape of an error."""

    async def test(running: Running) -> None:
        status, error = await answer(running, request_bytes)
        assert (status, error["code"]) == (400, "invalid_request")

    against(test)


async def taken(port: int, beginning: bytes, more: bytes) -> int:
    """Sends `more` again and again until the server has had enough; returns how much it let come (with what the kernel
    holds), 16 MiB where it never had."""
    loop = asyncio.get_running_loop()
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.setblocking(False)
        await loop.sock_sendall(client, beginning)
        sent = 0
        while sent < 16 * 2**20:
            try:
                await loop.sock_sendall(client, more)
            except ConnectionError:
                break
            sent += len(more)
    return sent


@pytest.mark.parametrize(
    ("beginning", "more"),
    [
        (b"GET /", b"a"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", b"a"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"A: b\r\n"),
        (b"POST /nothing HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", b"A: b\r\n"),
    ],
)
def test_endless_head_is_refused(beginning: bytes, more: bytes) -> None:
    """A request line, a header, headers or trailers without an end are given up at 64 KiB, not collected."""

    async def test(running: Running) -> None:
        assert await taken(running.port, beginning, more * 1_000) < 4 * 2**20
        await until(lambda: not running.server.server_state.connections)

    against(test)


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        UPGRADE,
        b"POST /v1/realtime/client_secrets HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 20\r\n\r\n{",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\n",
    ],
)
def test_request_that_does_not_come_to_an_end_is_given_up(
    beginning: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that says nothing, or half of something, costs its socket for a while only."""
    monkeypatch.setattr(bounded_reading, "REQUEST_WITHIN_S", 0.05)

    async def test(running: Running) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(beginning)
        with contextlib.suppress(ConnectionResetError):
            await reader.read()
        writer.close()
        await until(lambda: not running.server.server_state.connections)

    against(test)


def test_client_that_does_not_read_its_answer_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A big file that nobody takes off the socket is not kept for ever; one that is read slowly arrives."""
    monkeypatch.setattr(bounded_reading, "REQUEST_WITHIN_S", 0.2)
    (tmp_path / "index.html").write_bytes(b"<p>hello")
    (tmp_path / "big.bin").write_bytes(bytes(16 * 2**20))
    get = b"GET /web/big.bin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

    async def test(running: Running) -> None:
        with socket.create_connection(("127.0.0.1", running.port)) as client:
            client.sendall(get)
            await until(lambda: len(running.server.server_state.connections) == 1)
            await until(lambda: not running.server.server_state.connections)
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port, limit=2**16)
        writer.write(get)
        size = 0
        while piece := await reader.read(2**16):
            size += len(piece)
            await asyncio.sleep(0.002)
        assert size > 16 * 2**20
        writer.close()

    against(test, lambda: build(page=tmp_path))


def test_requests_ahead_are_few(caplog: pytest.LogCaptureFixture) -> None:
    """A connection that sends request upon request without waiting is refused, not collected; a few are answered in
    their order."""

    async def test(running: Running) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        get = b"GET /%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
        writer.write(get % (b"healthz", b"") * 5 + get % (b"nowhere", b"Connection: close\r\n"))
        answers = await reader.read()
        assert answers.count(b"HTTP/1.1 200 OK") == 5
        assert answers.rindex(b"HTTP/1.1 404") > answers.rindex(b"HTTP/1.1 200 OK")
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(get % (b"healthz", b"") * 1_000)
        with contextlib.suppress(ConnectionResetError):
            assert (await reader.read()).count(b"HTTP/1.1 200 OK") < 50
        writer.close()

    with caplog.at_level(logging.ERROR):
        against(test)
    assert not caplog.records


def test_open_links_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time for a request ends with the upgrade."""
    monkeypatch.setattr(bounded_reading, "REQUEST_WITHIN_S", 0.05)

    async def test(running: Running) -> None:
        async with running.connect() as link:
            await heard(link)
            await asyncio.sleep(0.1)
            running.house.directory.sessions[-1].emit("response.done")
            assert (await heard(link))["type"] == "response.done"

    against(test)


def test_long_head_within_the_bound_is_read() -> None:
    """Forty kilobytes of headers are much, but no attack."""

    async def test(running: Running) -> None:
        async with httpx.AsyncClient(trust_env=False) as client:
            headers = {f"X-{number}": "a" * 4_000 for number in range(10)}
            found = await client.get(f"http://127.0.0.1:{running.port}/healthz", headers=headers)
            assert found.status_code == 200

    against(test)


def test_body_is_not_taken_for_a_head() -> None:
    """A body larger than a head may be is refused as a body: 413."""

    async def test(running: Running) -> None:
        async with httpx.AsyncClient(trust_env=False) as client:
            url = f"http://127.0.0.1:{running.port}/v1/realtime/client_secrets"
            small = await client.post(url, json={"session": {"instructions": "a" * 60_000}})
            assert small.status_code == 200
            huge = await client.post(
                url, content=b"{" + b" " * 600_000, headers={"Content-Type": "application/json"}
            )
            assert huge.status_code == 413

    against(test)
