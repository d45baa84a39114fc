"""How much of a client is read and how long it is waited for: requests and frames, before anybody knows who sends them.

uvicorn takes whatever one read of the socket brings (a libuv loop reads on while there is something) in one turn of the
event loop, and puts no bound on a request's head. One client that sends nothing but empty pings, or a header without
an end, would hold up every session.
"""

import asyncio
import math
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request

from orchestrator.transports.refusals import error_response

MAX_HEAD_BYTES = 64 * 1024
"""Request line and headers together, and the trailers of a chunked body. Over it the answer is 431."""

REQUEST_WITHIN_S = 20.0
"""How long a client may take over one request, head and body, over saying anything at all, and over reading on."""

MAX_FRAGMENTS = 16_384
"""Frames of one WebSocket message: empty ones would else be kept without any bound. Over it the link is closed."""

CLOSE_TIMEOUT_S = 5.0
"""How long a peer may take to answer a close frame, or to read what is sent before a connection is closed."""

MAX_PIPELINED = 16
"""Requests of one connection that wait behind one another. Browsers and libraries send none ahead."""

_SLICE_BYTES = 2_048
"""340 empty frames at most: some milliseconds of work."""


def http_error(status: int, message: str, code: str) -> bytes:
    """Returns a whole response for what never becomes a request of the application. The connection ends with it."""
    body = bytes(error_response(status, message, code).body)
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body


class BoundedRequests(HttpToolsProtocol):
    """HTTP whose heads are bounded in size and whose requests are in time; what is no HTTP is refused in the shape of
    every other error."""

    def __init__(self, *config: Any, **named: Any) -> None:
        """Takes what uvicorn gives its protocols."""
        super().__init__(*config, **named)
        self._head_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._answering: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._drop_deadline()
        if self._answering is not None:
            self._answering.disconnected = True  # uvicorn tells the newest of several requests only
            self._answering.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        for start in range(0, len(data), _SLICE_BYTES):
            if self.transport.is_closing() or self.transport.get_protocol() is not self:
                return  # refused, or a WebSocket by now, whose client has nothing to say before it is answered
            piece = data[start : start + _SLICE_BYTES]
            self._head_bytes += len(piece)
            super().data_received(piece)
            if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self.logger.warning("A request's head is longer than %d bytes.", MAX_HEAD_BYTES)
                self._refuse(
                    431, f"The request's head is larger than {MAX_HEAD_BYTES} bytes.", "head_too_large"
                )

    def on_message_begin(self) -> None:
        self._head_bytes = 0
        self._set_deadline()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head_bytes = 0
        if len(self.pipeline) >= MAX_PIPELINED:
            raise ValueError("too many requests are waiting")  # the parser makes a refusal of it
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._drop_deadline()
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        self._drop_deadline()
        super().handle_websocket_upgrade()

    def pause_writing(self) -> None:
        self._drop_deadline()
        self._watch_writing(math.inf)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._drop_deadline()
        super().resume_writing()

    def _watch_writing(self, before: float) -> None:
        """Drops a client that took nothing of its answer since the last look."""
        unsent = self.transport.get_write_buffer_size()
        if unsent >= before:
            self.transport.abort()
            return
        self._deadline = self.loop.call_later(REQUEST_WITHIN_S, self._watch_writing, unsent)

    def _set_deadline(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_WITHIN_S, self.transport.abort)

    def _drop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, msg, "invalid_request")

    def _refuse(self, status: int, message: str, code: str) -> None:
        self.transport.write(http_error(status, message, code))
        self.transport.close()


class BoundedReading(WebSocketsSansIOProtocol):
    """A WebSocket that is unpacked no further than its application takes, a slice at a time.

    Others get their turn after each slice that held a frame. What was read and is not unpacked yet is at most what came
    before reading could be paused. A peer that does not read costs its socket for `CLOSE_TIMEOUT_S` at the end, and its
    pings are not answered.
    """

    def __init__(self, *config: Any, **named: Any) -> None:
        """Takes what uvicorn gives its protocols."""
        super().__init__(*config, **named)
        self._unread = bytearray()
        self._goes_on = False

    def data_received(self, data: bytes) -> None:
        self._unread += data
        if not self._goes_on:
            self._unpack()

    async def receive(self) -> Any:
        """As uvicorn's. Cancelling loses nothing."""
        message = await super().receive()
        if self._unread and not self._goes_on:
            self._unpack()
        return message

    async def send(self, message: Any) -> None:
        """As uvicorn's, to a peer that is there. Raises `ClientDisconnected` (an `OSError`) where it is not: uvicorn
        takes a connection that it ended itself, for a broken frame or a missing pong, for a fault of the application.
        """
        await self.writable.wait()
        if self.close_sent and message["type"] in ("websocket.send", "websocket.close"):
            raise ClientDisconnected
        await super().send(message)
        if message["type"] == "websocket.close" and self._unread and not self._goes_on:
            self._unpack()  # nobody receives any more; the peer's own close may be in there

    def _unpack(self) -> None:
        """Unpacks until something came of it, and sees to it that the rest follows."""
        self._goes_on = False
        while self._unread and not self.read_paused and not self.transport.is_closing():
            piece = bytes(self._unread[:_SLICE_BYTES])
            del self._unread[:_SLICE_BYTES]
            self.conn.receive_data(piece)
            came = bool(self.conn.events)
            if self.conn.handshake_exc is not None and not self.handshake_initiated:
                self._refuse_handshake(str(self.conn.handshake_exc))
            elif self.conn.parser_exc is not None:
                self.handle_parser_exception()
            else:
                self.handle_events()
            if came:
                break
        self._go_on()

    def _go_on(self) -> None:
        if self.transport.is_closing():
            self._unread.clear()
        elif self._unread:
            self.transport.pause_reading()
            if not self.read_paused:
                self._goes_on = True
                self.loop.call_soon(self._unpack)
        elif not self.read_paused:
            self.transport.resume_reading()

    def _refuse_handshake(self, why: str) -> None:
        """Answers a request that cannot be upgraded; uvicorn would leave its client waiting for ever."""
        self.handshake_initiated = self.handshake_complete = self.close_sent = True
        message = f"This request cannot become a WebSocket: {why}."
        self.transport.write(http_error(400, message, "invalid_request"))
        self.transport.close()

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        self.close_timeout = CLOSE_TIMEOUT_S

    def handle_cont(self, event: Frame) -> None:
        if self.close_sent:
            return
        if len(self.frames) >= MAX_FRAGMENTS:
            self._fail(1009, f"more than {MAX_FRAGMENTS} fragments")
            return
        super().handle_cont(event)

    def handle_ping(self) -> None:
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()  # the pong; the peer reads nothing, and would have us keep it

    def send_receive_event_to_app(self) -> None:
        """As uvicorn's; text that is no UTF-8 ends the link without a trace in our log, being no fault of ours."""
        if self.curr_msg_data_type == "text" and not self.close_sent:
            self.frames = [b"".join(self.frames)]
            try:
                self.frames[0].decode()
            except UnicodeDecodeError:
                self._fail(1007, "text that is not UTF-8")
                return
        super().send_receive_event_to_app()

    def handle_close(self, event: Frame) -> None:
        super().handle_close(event)
        self._abort_unless_read()

    def handle_parser_exception(self) -> None:
        super().handle_parser_exception()
        self._abort_unless_read()

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self._abort_unless_read()

    def _fail(self, code: int, reason: str) -> None:
        self.frames = []
        self.conn.fail(code, reason)
        self.handle_parser_exception()

    def _abort_unless_read(self) -> None:
        """Tears a closing connection down where its peer does not read the rest in time."""
        if not self.disconnected:
            if self.close_timer is not None:
                self.close_timer.cancel()
            self.close_timer = self.loop.call_later(self.close_timeout, self.transport.abort)
