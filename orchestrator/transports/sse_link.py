"""A stream of server-sent events as its session sees it, and the response that it is."""

import asyncio
import math
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from orchestrator.ids import event_tag, random_id
from orchestrator.sessions.links import LinkKind, LogEntry, LoggedAudio, LoggedEvent, Playout, SessionPort
from orchestrator.transports.bounded_requests import CUT
from orchestrator.transports.fitting import fitting
from orchestrator.transports.outbox import FELL_BEHIND, TOO_MANY_TOLD, Closing, Outbox, Told
from orchestrator.transports.outlet import Outlet
from orchestrator.transports.sse import HEARTBEAT, beginning, frame

MAX_SENT_BYTES = 2**20 - 1_024
"""Of one event; with its type and number around it a frame stays below 1 MiB."""

CLOSE_WITHIN_S = 5.0
"""How long a stream that is to end may take to send what comes before its end."""

_ENTRIES_AT_ONCE = 64
_BYTES_AT_ONCE = 65_536

HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store, no-transform",
    "X-Accel-Buffering": "no",
}


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """`heartbeat_s`: how long a stream may say nothing. `retry_ms`: when its reader comes back, up to half as much
    again by chance: many that were cut at one time come back at many."""

    heartbeat_s: float = 15.0
    retry_ms: int = 1_000


class SseLink:
    """Sends what its session logs and tells, in order (`sessions.links.Link`). `chunks` waits while its reader does:
    the log holds what is not sent yet, and nothing else grows."""

    def __init__(self, session: SessionPort, with_sound: bool, settings: StreamSettings) -> None:
        self._id = random_id("link", 12)
        self._session = session
        self._tag = event_tag(session.id)
        self._with_sound = with_sound
        self._settings = settings
        self.session_id = session.id
        self._outbox = Outbox(session)
        self._outlet = Outlet(session.read)
        self._more = asyncio.Event()
        self._cursor = 0
        self._ends_by_s = math.inf
        self._closing_timer: asyncio.TimerHandle | None = None
        self.cut: Callable[[], None] = _nothing
        """Cuts off a reader who does not take what was sent before the end, nor leaves."""
        self.was_told_too_much = False
        """Whether it is ended for more private messages than may wait."""

    @property
    def id(self) -> str:
        return self._id

    @property
    def kind(self) -> LinkKind:
        return LinkKind.EVENTS

    @property
    def told(self) -> tuple[int, int]:
        """Private messages that wait: how many, and their bytes."""
        return self._outbox.told

    @property
    def playout(self) -> Playout | None:
        return None

    def wake(self) -> None:
        self._more.set()

    def tell(self, data: bytes) -> None:
        self._outbox.tell(data)
        self._hurry()
        self.was_told_too_much |= self._outbox.closing is TOO_MANY_TOLD
        self._more.set()

    def close(self, code: int, reason: str) -> None:
        self._outbox.close(Closing(code, reason))
        self._hurry()
        self._more.set()

    def start(self, cursor: int) -> None:
        """Sends what follows `cursor`, from now on."""
        self._cursor = cursor
        self._outbox.start(cursor)
        self._more.set()

    def drop(self) -> None:
        """Forgets timers; the link is gone."""
        if self._closing_timer is not None:
            self._closing_timer.cancel()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yields what is to be sent next, many frames at once, and ends with the link; a comment where there is nothing
        for so long."""
        retry_ms = self._settings.retry_ms
        yield beginning(retry_ms + random.randrange(retry_ms // 2 + 1), self._tag, self._cursor)
        loop = asyncio.get_running_loop()
        said_s = loop.time()
        while True:
            try:
                # By when something was said last: what is not sent here (sound) wakes the stream as well.
                async with asyncio.timeout_at(said_s + self._settings.heartbeat_s):
                    await self._more.wait()  # wait_for can swallow a cancellation
            except TimeoutError:
                yield HEARTBEAT
                said_s = loop.time()
                continue
            if loop.time() > self._ends_by_s:
                return  # a reader who takes so long comes back for the rest, if he may
            self._more.clear()
            batch = self._batch()
            frames = [
                piece for entry in batch if not isinstance(entry, Closing) for piece in self._frames(entry)
            ]
            if frames:
                yield b"".join(frames)
                said_s = loop.time()
            if batch and isinstance(batch[-1], Closing):
                return
            await asyncio.sleep(0)

    def _hurry(self) -> None:
        """Bounds the time that a stream which is to end may still take."""
        if self._outbox.closing is not None and self._closing_timer is None:
            loop = asyncio.get_running_loop()
            self._ends_by_s = loop.time() + CLOSE_WITHIN_S
            self._closing_timer = loop.call_at(self._ends_by_s, lambda: self.cut())

    def _batch(self) -> list[LogEntry | Told | Closing]:
        try:
            batch = self._outbox.take(_ENTRIES_AT_ONCE, _BYTES_AT_ONCE)
        except LookupError:
            return [FELL_BEHIND]
        if self._outbox.has_more:
            self._more.set()
        return batch

    def _frames(self, entry: LogEntry | Told) -> list[bytes]:
        if isinstance(entry, LoggedAudio):
            encoded = self._outlet.encode(entry) if self._with_sound else []
        else:
            data = entry.shown(self.kind) if isinstance(entry, LoggedEvent) else entry.data
            encoded = [fitting(data, MAX_SENT_BYTES)]
        return [frame(data, self._tag) for data in encoded]


class EventStream(Response):
    """Answers with the events of a session until one side ends. `after`: as in `SessionPort.attach`. `place` is held
    meanwhile; what it raises, and `attach`, is answered before the stream begins."""

    def __init__(
        self, link: SseLink, session: SessionPort, after: int | None, place: AbstractContextManager[None]
    ) -> None:
        super().__init__()
        self._link = link
        self._session = session
        self._after = after
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._place:
            self._link.start(self._session.attach(self._link, self._after))
            try:
                self._link.cut = scope.get("extensions", {}).get(CUT, {}).get("cut", _nothing)
                await self._serve(receive, send)
            finally:
                self._link.drop()
                self._session.detach(self._link.id)

    async def _serve(self, receive: Receive, send: Send) -> None:
        tasks = (
            asyncio.create_task(self._write(send), name=f"{self._link.id} writes"),
            asyncio.create_task(_gone(receive), name=f"{self._link.id} listens"),
        )
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if not tasks[0].cancelled():
            tasks[0].result()

    async def _write(self, send: Send) -> None:
        headers = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async for chunk in self._link.chunks():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _nothing() -> None:
    """Where there is no connection to cut."""


async def _gone(receive: Receive) -> None:
    """Returns once the reader has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
