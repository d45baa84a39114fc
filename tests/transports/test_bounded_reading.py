"""What a client of a WebSocket may make the server read, on a real socket and on a transport of wood."""

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from orchestrator.transports import bounded_reading
from orchestrator.transports.bounded_reading import BoundedReading
from tests.transports.running import Running, against, heard, until

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
        async with asyncio.timeout(120):
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
