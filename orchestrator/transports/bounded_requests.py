"""How much of a request is read, and how long it is waited for, before anybody knows who sends it.

uvicorn puts no bound on a request's head, and waits for ever for the rest of one, and for whoever reads its answer.
"""

import asyncio
import math
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from orchestrator.transports.refusals import ShuttingDown, error_response

MAX_HEAD_BYTES = 64 * 1024
"""Request line and headers together, and the trailers of a chunked body. Over it the answer is 431."""

MAX_PIPELINED = 16
"""Requests of one connection that wait behind one another. Browsers and libraries send none ahead."""

REQUEST_WITHIN_S = 20.0
"""How long a client may take over one request, head and body, over saying anything at all, and over reading on."""

LEAST_BYTES_PER_S = 16 * 1024
"""A body that comes so fast may take longer, for as long as it does and has not been answered: a large file over a slow
line."""

CUT = "chorale.cut"
"""The extension of a request's scope by which its connection is cut off, with what its client has not read."""

_SLICE_BYTES = 2_048


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
        self._body_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._reading_on: asyncio.TimerHandle | None = None
        self._answering: RequestResponseCycle | None = None
        self._answered = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._drop_deadline()
        self._stop_watching()
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
        self.scope["extensions"] = {CUT: {"cut": self.transport.abort}}

    def on_headers_complete(self) -> None:
        self._head_bytes = 0
        if len(self.pipeline) >= MAX_PIPELINED:
            raise ValueError("too many requests are waiting")  # the parser makes a refusal of it
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        self._answered = False

        async def answered(scope: Any, receive: Any, send: Any) -> None:  # uvicorn has its own types for them
            try:
                await app(scope, receive, send)
            finally:
                self._answered = True
                self._watch_rest()

        super()._start_asgi_task(cycle, answered)

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._drop_deadline()
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        self._drop_deadline()
        super().handle_websocket_upgrade()

    def shutdown(self) -> None:
        """As uvicorn's; a request that is still being sent is refused, since it would be waited for in vain."""
        super().shutdown()
        is_coming = self._deadline is not None and self.cycle is not None
        if is_coming and not (self.cycle.response_started or self.transport.is_closing()):
            closing = ShuttingDown()
            self._refuse(closing.status, str(closing), str(closing.wire_code))

    def pause_writing(self) -> None:
        if self._reading_on is None:
            self._watch_writing(math.inf)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stop_watching()
        if self._answered:
            self._watch_rest()
        super().resume_writing()

    def _watch_rest(self) -> None:
        """Watches for what is left of an answer that has ended: it may be too little for writing to pause."""
        if self._reading_on is None and self.transport.get_write_buffer_size():
            self._watch_writing(math.inf)

    def _watch_writing(self, before: float, of: RequestResponseCycle | None = None) -> None:
        """Drops a client that took nothing of the same answer since the last look."""
        self._reading_on = None
        unsent = self.transport.get_write_buffer_size()
        if not unsent:
            return
        if of is self._answering and unsent >= before:
            self.transport.abort()
            return
        self._reading_on = self.loop.call_later(
            REQUEST_WITHIN_S, self._watch_writing, unsent, self._answering
        )

    def _stop_watching(self) -> None:
        if self._reading_on is not None:
            self._reading_on.cancel()
            self._reading_on = None

    def _set_deadline(self) -> None:
        if self._deadline is None:
            self._body_bytes = 0
            self._deadline = self.loop.call_later(REQUEST_WITHIN_S, self._look_at_body)

    def _look_at_body(self) -> None:
        """Drops a client that is late with its request, unless a body that is still wanted comes fast enough."""
        self._deadline = None
        is_wanted = self._answering is not None and not self._answering.response_complete
        if is_wanted and self._body_bytes >= LEAST_BYTES_PER_S * REQUEST_WITHIN_S:
            self._set_deadline()
        else:
            self.transport.abort()

    def _drop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, msg, "invalid_request")

    def _refuse(self, status: int, message: str, code: str) -> None:
        self.transport.write(http_error(status, message, code))
        self.transport.close()
