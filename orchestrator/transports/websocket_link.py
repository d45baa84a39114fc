"""A WebSocket as its session sees it, and the writing half of it."""

import asyncio
import logging

from starlette.websockets import WebSocket

from orchestrator.ids import random_id
from orchestrator.sessions.links import LinkKind, LogEntry, LoggedAudio, LoggedEvent, Playout, SessionPort
from orchestrator.transports.outbox import FELL_BEHIND, Closing, Outbox, Told
from orchestrator.transports.outlet import Outlet
from orchestrator.wire import codec, server

log = logging.getLogger(__name__)

MAX_SENT_BYTES = 2**20 - 1
"""Clients' libraries drop a connection at a message of 1 MiB."""

CLOSE_WITHIN_S = 5.0
"""How long a link that is to end may take to send what comes before its end."""

_ENTRIES_AT_ONCE = 16
_STUCK_AFTER_S = 1.0


class WebSocketLink:
    """Sends what its session logs and tells, in order (`sessions.links.Link`)."""

    def __init__(self, websocket: WebSocket, session: SessionPort, kind: LinkKind) -> None:
        self._id = random_id("link", 12)
        self._kind = kind
        self._websocket = websocket
        self._session = session
        self._outbox = Outbox(session)
        self._outlet = Outlet()
        self._news = asyncio.Event()
        self._sent = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._sending_since_s: float | None = None
        self._closing_timer: asyncio.TimerHandle | None = None
        self.ended: asyncio.Future[Closing] = self._loop.create_future()
        """Set once there is nothing more to send: how the connection is to be closed."""

    @property
    def id(self) -> str:
        return self._id

    @property
    def kind(self) -> LinkKind:
        return self._kind

    @property
    def playout(self) -> Playout | None:
        return None

    def wake(self) -> None:
        self._news.set()
        since_s = self._sending_since_s
        if since_s is None or self._loop.time() - since_s < _STUCK_AFTER_S:
            return
        if self._outbox.is_behind():
            self._end(FELL_BEHIND)

    def tell(self, data: bytes) -> None:
        self._outbox.tell(data)
        self._news.set()
        self._hurry()

    def close(self, code: int, reason: str) -> None:
        self._outbox.close(Closing(code, reason))
        self._news.set()
        self._hurry()

    def start(self, cursor: int) -> None:
        """Lets `write` send what follows `cursor`."""
        self._outbox.start(cursor)
        self._news.set()

    async def write(self) -> None:
        """Sends what there is until the link has `ended`. Cancelling loses what was not sent."""
        while not self.ended.done():
            self._news.clear()
            try:
                batch = self._outbox.take(_ENTRIES_AT_ONCE)
            except LookupError:
                self._end(FELL_BEHIND)
                return
            for entry in batch:
                if isinstance(entry, Closing):
                    self._end(entry)
                    return
                await self._send(entry)
            self._sent.set()
            if not batch:
                await self._news.wait()
            await asyncio.sleep(0)

    async def caught_up(self) -> None:
        """Waits while the client has much to read yet. Cancelling loses nothing."""
        while self._outbox.is_far_behind() and not self.ended.done():
            self._sent.clear()
            await self._sent.wait()

    def drop(self) -> None:
        """Forgets timers; the link is gone."""
        if self._closing_timer is not None:
            self._closing_timer.cancel()

    def _hurry(self) -> None:
        """Bounds the time that a link which is to end may still take."""
        closing = self._outbox.closing
        if closing is not None and self._closing_timer is None:
            self._closing_timer = self._loop.call_later(CLOSE_WITHIN_S, self._end, closing)

    def _end(self, closing: Closing) -> None:
        if not self.ended.done():
            self.ended.set_result(closing)
        self._sent.set()

    async def _send(self, entry: LogEntry | Told) -> None:
        for data in self._encoded(entry):
            text = data.decode() if len(data) <= MAX_SENT_BYTES else self._too_big(data)
            self._sending_since_s = self._loop.time()
            await self._websocket.send({"type": "websocket.send", "text": text})
            self._sending_since_s = None

    def _encoded(self, entry: LogEntry | Told) -> list[bytes]:
        match entry:
            case LoggedAudio():
                if self._kind is LinkKind.SIDEBAND:
                    return []
                return self._outlet.encode(entry)
            case LoggedEvent():
                return [*self._outlet.before(entry), entry.data]
            case Told():
                return [entry.data]

    def _too_big(self, data: bytes) -> str:
        log.warning("an event of %d bytes is more than a client can take and was left out", len(data))
        details = server.ErrorDetails(
            "server_error", f"An event of {len(data)} bytes is too big to be sent.", "event_too_big"
        )
        return codec.encode(server.Error(details), random_id("event")).decode()
