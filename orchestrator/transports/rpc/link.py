"""An RPC's stream as its session sees it, and the messages that go out on it."""

import asyncio
from collections.abc import AsyncGenerator, Callable

import msgspec

from orchestrator.ids import random_id
from orchestrator.sessions.links import LinkKind, LogEntry, LoggedAudio, LoggedEvent, Playout, SessionPort
from orchestrator.transports.fitting import fitting
from orchestrator.transports.outbox import FELL_BEHIND, TOO_MANY_TOLD, Closing, Outbox, Told
from orchestrator.transports.outlet import Outlet
from orchestrator.transports.rpc.statuses import OK, LinkClosed, status_of
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb

MAX_SENT_BYTES = 2**20 - 64
"""Of one event; with what is around it a message stays below 1 MiB, far below the 4 MiB that gRPC clients take."""

CLOSE_WITHIN_S = 5.0
"""How long a link that is to end may take to send what comes before its end."""

_ENTRIES_AT_ONCE = 8
_BYTES_AT_ONCE = 65_536
"""What is sent before others get their turn. Each message goes through a library and a system call by itself, 80 µs
where HTTP carries it: as many as a WebSocket sends in one write would hold everybody up for 5 ms."""

_STUCK_AFTER_S = 1.0


class _Private(msgspec.Struct):
    """The fields of a private message by which a gap is told."""

    type: str
    after: int = 0
    first: int = 0


_private_decoder = msgspec.json.Decoder(_Private)


class RpcLink:
    """Sends what its session logs and tells, in order (`sessions.links.Link`). `messages` waits while its reader does:
    the log holds what is not sent yet, and nothing else grows.

    `cut` ends a call whose client does not take the message in hand; `messages` is closed then, at once.
    """

    def __init__(
        self,
        session: SessionPort,
        with_speech: bool,
        cut: Callable[[Closing], None],
        in_json: bool = False,
    ) -> None:
        """`in_json`: messages are written as JSON, where events take more room."""
        self._id = random_id("link", 12)
        self._session = session
        self._with_speech = with_speech
        self._cut = cut
        self._in_json = in_json
        self._outbox = Outbox(session)
        self._outlet = Outlet(session.read)
        self._more = asyncio.Event()
        self._sent = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._waiting_since_s: float | None = None
        self._closing_timer: asyncio.TimerHandle | None = None
        self._broke: BaseException | None = None
        self._ended = False
        self._overdue: Closing | None = None
        self.was_told_too_much = False

    @property
    def id(self) -> str:
        return self._id

    @property
    def kind(self) -> LinkKind:
        """Who takes no speech neither hears nor speaks: a call that its client may come back to is not over for it."""
        return LinkKind.RPC if self._with_speech else LinkKind.EVENTS

    @property
    def told(self) -> tuple[int, int]:
        """Private messages that wait: how many, and their bytes."""
        return self._outbox.told

    @property
    def playout(self) -> Playout | None:
        return None

    def wake(self) -> None:
        self._more.set()
        self._look_whether_stuck()

    def tell(self, data: bytes) -> None:
        self._outbox.tell(data)
        self.was_told_too_much |= self._outbox.closing is TOO_MANY_TOLD
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

    def fail(self, error: BaseException) -> None:
        """Ends `messages` with an error that its other half has met."""
        self._broke = error
        self._more.set()

    def drop(self) -> None:
        """Forgets timers, and lets go who waits for the link to catch up: it is gone."""
        self._ended = True
        self._sent.set()
        if self._closing_timer is not None:
            self._closing_timer.cancel()

    async def caught_up(self) -> None:
        """Waits while the client has much to read yet. Cancelling loses nothing."""
        while self._outbox.is_far_behind() and not self._ended:
            self._sent.clear()
            await self._sent.wait()

    async def messages(self, opened: pb.SessionOpened) -> AsyncGenerator[pb.ServerMessage, None]:
        """Yields what is to be sent, `opened` first, and ends with the link. Raises `LinkClosed` where the session may
        go on, and what `fail` was given."""
        self._waiting_since_s = self._loop.time()
        yield pb.ServerMessage(opened=opened)
        while True:
            self._waiting_since_s = None
            await self._more.wait()
            self._more.clear()
            if self._broke is not None:
                raise self._broke
            for number, entry in self._batch():
                if self._overdue is not None:
                    entry = self._overdue  # whoever takes so long comes back for the rest, if he may
                if isinstance(entry, Closing):
                    if status_of(closed := LinkClosed(entry)).name != OK:
                        raise closed
                    return
                message = self._message(number, entry)
                if message is None:
                    continue
                self._waiting_since_s = self._loop.time()
                yield message
            self._waiting_since_s = None
            self._sent.set()
            await asyncio.sleep(0)

    def _batch(self) -> list[tuple[int, LogEntry | Told | Closing]]:
        try:
            batch = self._outbox.take_numbered(_ENTRIES_AT_ONCE, _BYTES_AT_ONCE)
        except LookupError:
            raise LinkClosed(FELL_BEHIND) from None
        if self._outbox.has_more:
            self._more.set()
        return batch

    def _message(self, number: int, entry: LogEntry | Told) -> pb.ServerMessage | None:
        """Returns the message for an entry; None where the link does not take it."""
        match entry:
            case LoggedEvent():
                return pb.ServerMessage(number=number, event=self._event(entry.shown(self.kind)))
            case LoggedAudio():
                return self._speech(number, entry) if self._with_speech else None
            case Told():
                private = _private_decoder.decode(entry.data)
                if private.type == "chorale.gap":
                    return pb.ServerMessage(gap=pb.Gap(after=private.after, first=private.first))
                return pb.ServerMessage(event=self._event(entry.data))

    def _event(self, data: bytes) -> pb.Event:
        return pb.Event(json=fitting(data, MAX_SENT_BYTES, self._in_json).decode())

    def _speech(self, number: int, audio: LoggedAudio) -> pb.ServerMessage | None:
        sound = self._outlet.sound(audio)
        if not sound:
            return None
        speech = pb.Speech(
            data=sound,
            response_id=audio.response_id,
            item_id=audio.item_id,
            output_index=audio.output_index,
            content_index=audio.content_index,
        )
        return pb.ServerMessage(number=number, speech=speech)

    def _look_whether_stuck(self) -> None:
        """Ends a link whose client has read nothing for a while, once the log has dropped what it would read next."""
        since_s = self._waiting_since_s
        if since_s is None or self._loop.time() - since_s < _STUCK_AFTER_S:
            return
        if self._outbox.is_behind():
            self._cut(FELL_BEHIND)

    def _hurry(self) -> None:
        """Bounds the time that a link which is to end may still take."""
        closing = self._outbox.closing
        if closing is not None and self._closing_timer is None:
            self._closing_timer = self._loop.call_later(CLOSE_WITHIN_S, self._end, closing)

    def _end(self, closing: Closing) -> None:
        self._overdue = closing
        self._cut(closing)
