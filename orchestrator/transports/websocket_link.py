"""A WebSocket as its session sees it, and the writing half of it."""

import asyncio

from orchestrator.ids import random_id
from orchestrator.sessions.links import LinkKind, LoggedAudio, LoggedEvent, Playout, SessionPort
from orchestrator.transports.fitting import fitting
from orchestrator.transports.outbox import FELL_BEHIND, TOO_MANY_TOLD, Closing, Outbox, Told
from orchestrator.transports.outlet import Outlet
from orchestrator.transports.server import MeasuredProtocol

MAX_SENT_BYTES = 2**20 - 1
"""Clients' libraries drop a connection at a message of 1 MiB."""

CLOSE_WITHIN_S = 5.0
"""How long a link that is to end may take to send what comes before its end."""

_ENTRIES_AT_ONCE = 64
_BYTES_AT_ONCE = 65_536
"""What is sent in one go before others get their turn: a batch of tokens, or one big event."""

_STUCK_AFTER_S = 1.0


class WebSocketLink:
    """Sends what its session logs and tells, in order (`sessions.links.Link`).

    While the client reads, whoever has news sends them at once: no task is woken for an event. Else they stay in the
    log, and `write` goes on once the client has read.
    """

    def __init__(self, connection: MeasuredProtocol, session: SessionPort, kind: LinkKind) -> None:
        self._id = random_id("link", 12)
        self._kind = kind
        self._connection = connection
        self._session = session
        self._outbox = Outbox(session)
        self._outlet = Outlet(session.read)
        self._more = asyncio.Event()
        self._sent = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._waiting_since_s: float | None = None
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
    def told(self) -> tuple[int, int]:
        """Private messages that wait: how many, and their bytes."""
        return self._outbox.told

    @property
    def was_told_too_much(self) -> bool:
        """Whether it is ended for more of them than may wait."""
        return self._outbox.closing is TOO_MANY_TOLD

    @property
    def playout(self) -> Playout | None:
        return None

    def wake(self) -> None:
        if self._more.is_set():
            self._look_whether_stuck()
        else:
            self._send_some()

    def tell(self, data: bytes) -> None:
        self._outbox.tell(data)
        self.wake()
        self._hurry()

    def close(self, code: int, reason: str) -> None:
        self._outbox.close(Closing(code, reason))
        self.wake()
        self._hurry()

    def start(self, cursor: int) -> None:
        """Sends what follows `cursor`, from now on."""
        self._outbox.start(cursor)
        self.wake()

    async def write(self) -> None:
        """Sends what the client could not take at once, until the link has `ended`. Cancelling loses what was not
        sent. Raises `OSError` where the client is gone."""
        while not self.ended.done():
            await self._more.wait()
            if not self._connection.takes_more:
                self._waiting_since_s = self._loop.time()
            await self._connection.wait_writable()
            self._waiting_since_s = None
            self._more.clear()
            self._send_some()
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

    def _send_some(self) -> None:
        """Sends what there is, as long as the client takes it, up to one batch; `write` sees to the rest."""
        if self.ended.done():
            return
        if not self._connection.takes_more:
            self._more.set()
            return
        try:
            batch = self._outbox.take_numbered(_ENTRIES_AT_ONCE, _BYTES_AT_ONCE)
        except LookupError:
            self._end(FELL_BEHIND)
            return
        if self._outbox.has_more:
            self._more.set()
        texts: list[bytes] = []
        for _, entry in batch:
            if isinstance(entry, LoggedEvent):
                data = entry.data if entry.to_holders is None else entry.shown(self._kind)
                texts.append(data if len(data) <= MAX_SENT_BYTES else fitting(data, MAX_SENT_BYTES))
            elif isinstance(entry, Told):
                texts.append(fitting(entry.data, MAX_SENT_BYTES))
            elif isinstance(entry, LoggedAudio):
                if self._kind is not LinkKind.SIDEBAND:
                    texts += self._outlet.encode(entry)
            else:
                self._end(entry)
                break
        if texts:
            self._connection.send_texts(texts)
        self._sent.set()

    def _look_whether_stuck(self) -> None:
        """Ends a link whose client has read nothing for a while, once the log has dropped what it would read next."""
        since_s = self._waiting_since_s
        if since_s is None or self._loop.time() - since_s < _STUCK_AFTER_S:
            return
        if self._outbox.is_behind():
            self._end(FELL_BEHIND)

    def _hurry(self) -> None:
        """Bounds the time that a link which is to end may still take."""
        closing = self._outbox.closing
        if closing is not None and self._closing_timer is None:
            self._closing_timer = self._loop.call_later(CLOSE_WITHIN_S, self._end, closing)

    def _end(self, closing: Closing) -> None:
        if not self.ended.done():
            self.ended.set_result(closing)
        self._sent.set()
