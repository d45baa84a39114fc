"""How much of a WebSocket is read at one time.

uvicorn takes whatever one read of the socket brings (a libuv loop reads on while there is something) in one turn of the
event loop: one client that sends nothing but empty pings would hold up every session.
"""

from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request

from orchestrator.transports.bounded_requests import http_error

MAX_FRAGMENTS = 16_384
"""Frames of one WebSocket message: empty ones would else be kept without any bound. Over it the link is closed."""

CLOSE_TIMEOUT_S = 5.0
"""How long a peer may take to answer a close frame, or to read what is sent before a connection is closed."""

_SLICE_BYTES = 2_048
"""340 empty frames at most: some milliseconds of work."""


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
