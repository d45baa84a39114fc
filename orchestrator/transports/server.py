"""uvicorn, as this server needs it: signals left to us, links that can always be closed, round trips measured."""

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.utils import ClientDisconnected
from websockets.frames import Frame
from websockets.http11 import Request

from orchestrator.transports.bounded_reading import BoundedReading
from orchestrator.transports.bounded_requests import BoundedRequests
from orchestrator.transports.compression import LongTextFactory, gains

MAX_MESSAGE_BYTES = 21 * 2**20
"""One append of 15 MiB is 20 MiB of base64, with its envelope around it. Over it the link is closed with 1009."""

_EXTENSION = "chorale.connection"
_FIRST_PING_S = 0.05
_MAX_ROUND_TRIP_S = 2.0


class MeasuredProtocol(BoundedReading):
    """A WebSocket whose round trip is known soon after it opened, and whose end does not wait for a peer that has
    stopped reading (uvicorn would keep such a socket, and its buffer, for ever)."""

    def __init__(self, config: uvicorn.Config, *rest: Any, **named: Any) -> None:
        """Takes what uvicorn gives its protocols."""
        super().__init__(config, *rest, **named)
        if config.ws_per_message_deflate:
            self.conn.available_extensions = [LongTextFactory()]

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        self._round_trips_s: deque[float] = deque(maxlen=4)
        if self.response.status_code == 101:
            extensions: Any = self.scope["extensions"]  # uvicorn types it as plain data
            extensions[_EXTENSION] = {"protocol": self}

    @property
    def takes_more(self) -> bool:
        """Whether the peer is there and has read so much that more may be sent now."""
        return self.writable.is_set() and not (
            self.close_sent or self.disconnected or self.transport.is_closing()
        )

    async def wait_writable(self) -> None:
        """Waits until `takes_more`. Cancelling loses nothing. Raises `ClientDisconnected` where the peer is gone."""
        while not self.takes_more:
            if self.close_sent or self.disconnected or self.transport.is_closing():
                raise ClientDisconnected
            await self.writable.wait()

    def send_texts(self, texts: Sequence[bytes]) -> None:
        """Sends each text (UTF-8) as a message of its own, all of them in one write. Only while it `takes_more`.

        The way of `send` for one of them, through three libraries and a system call, takes twice the time of a token's
        whole way up to here.
        """
        frame = self._fitting_frame if self.conn.extensions else _framed
        self.transport.write(b"".join(map(frame, texts)))

    def _fitting_frame(self, text: bytes) -> bytes:
        return self._compressed(text) if gains(text) else _framed(text)

    def _compressed(self, text: bytes) -> bytes:
        self.conn.send_text(text)
        return b"".join(self.conn.data_to_send())

    @property
    def round_trip_s(self) -> float:
        """The shortest of the last four round trips, 0 before the first. A busy client answers late, never early."""
        return min(min(self._round_trips_s, default=0.0), _MAX_ROUND_TRIP_S)

    def start_keepalive(self) -> None:
        super().start_keepalive()
        if self.ping_timer is not None:
            self.ping_timer.cancel()
            self.ping_timer = self.loop.call_later(_FIRST_PING_S, self.send_keepalive_ping)

    def handle_pong(self, event: Frame) -> None:
        awaited = self.pending_ping_payload is not None
        super().handle_pong(event)
        if awaited and self.pending_ping_payload is None:
            self._round_trips_s.append(self.last_ping_rtt)

    async def send(self, message: Any) -> None:
        """As uvicorn's; but a close frame is the last thing sent and small, so it does not wait for a slow peer, and
        the peer has `close_timeout` seconds to answer it."""
        if message["type"] == "websocket.close" and self.handshake_complete:
            self.writable.set()
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and self.close_sent:
            self.handshake_complete = True  # refused as told; uvicorn would log it as a forgotten answer
        if self.close_timer is not None:
            self._abort_unless_read()


def connection_of(scope: Mapping[str, Any]) -> MeasuredProtocol:
    """Returns the connection below a WebSocket that `make_server` serves."""
    protocol = scope["extensions"][_EXTENSION]["protocol"]
    assert isinstance(protocol, MeasuredProtocol)
    return protocol


def _framed(text: bytes) -> bytes:
    """Returns the one frame of an uncompressed message from a server (RFC 6455 §5.2)."""
    size = len(text)
    if size < 126:
        return b"\x81%c%b" % (size, text)
    if size < 65_536:
        return b"\x81\x7e%b%b" % (size.to_bytes(2, "big"), text)
    return b"\x81\x7f%b%b" % (size.to_bytes(8, "big"), text)


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How connections are kept. `ping_s`: how often a WebSocket is pinged, and how long it may take to answer."""

    ping_s: float = 20.0
    compression: bool = True
    certificate: Path | None = None
    certificate_key: Path | None = None


class Server(uvicorn.Server):
    """Serves until `should_exit` is set; what signals mean is decided by the composition root."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def make_server(app: ASGIApp, options: ServerOptions) -> Server:
    """Returns a server for `serve(sockets=…)`: one process; the access log is ours (`access_log`), without secrets."""
    return Server(
        uvicorn.Config(
            app,
            http=BoundedRequests,
            ws=MeasuredProtocol,
            ws_max_size=MAX_MESSAGE_BYTES,
            ws_ping_interval=options.ping_s,
            ws_ping_timeout=options.ping_s,
            ws_per_message_deflate=options.compression,
            lifespan="off",
            log_config=None,
            access_log=False,
            workers=1,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=1,
            ssl_certfile=options.certificate,
            ssl_keyfile=options.certificate_key,
        )
    )


def listen(host: str, port: int) -> list[socket.socket]:
    """Returns bound sockets for every address of `host`; with port 0 all get the same free one. Raises `OSError`."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            one = socket.socket(family, kind, protocol)
            sockets.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6 and len(found) > 1:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind((address[0], port or _port_of(sockets[0]), *address[2:]))
    except OSError:
        for one in sockets:
            one.close()
        raise
    return sockets


def _port_of(bound: socket.socket) -> int:
    return int(bound.getsockname()[1])
