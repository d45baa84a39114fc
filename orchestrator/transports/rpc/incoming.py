"""What a client says in a stream, on its way into its session."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from orchestrator.errors import Overloaded, WireError
from orchestrator.ids import random_id
from orchestrator.sessions.links import SessionPort
from orchestrator.transports.inlet import SLICE_BYTES, Inlet
from orchestrator.transports.rpc.link import RpcLink
from orchestrator.wire import codec
from orchestrator.wire.client import (
    AnyClientEvent,
    AppendAudio,
    ClearAudio,
    CommitAudio,
    CreateItem,
    CreateResponse,
    DeleteItem,
    RetrieveItem,
    UpdateSession,
)

ECHOED = (CreateItem, RetrieveItem, DeleteItem, UpdateSession, CreateResponse)
"""Events that are answered with as much as they bring, or with more."""

_BIG_CHARACTERS = 16_384

_LISTEN_S = 0.02
"""How long a reader whose sound has run ahead of the detector waits before it looks again."""


class Hearing:
    """Sound of one client, as bytes in the session's input format, into the session's own stream."""

    def __init__(self, session: SessionPort) -> None:
        self._session = session
        self._inlet = Inlet()

    async def append(self, sound: bytes) -> None:
        """Appends sound, no faster than it is listened to. Raises `Overloaded` and `WireError`."""
        if len(sound) > codec.MAX_APPEND_BYTES:
            raise WireError(
                "invalid_value",
                f"At most {codec.MAX_APPEND_BYTES} bytes of sound may be sent at once.",
                "sound",
            )
        is_big = len(sound) > SLICE_BYTES
        for pcm in self._inlet.feed(sound, self._session.view.audio.input.format):
            while self._session.intake.is_behind:  # noqa: ASYNC110 - the detector tells sessions, not doors
                await asyncio.sleep(_LISTEN_S)
            self._session.intake.append(pcm)
            if is_big:
                await asyncio.sleep(0)

    def flush(self) -> None:
        """Appends the last few milliseconds; what finds no room is dropped."""
        with suppress(Overloaded):
            self._session.intake.append(self._inlet.flush())

    async def takes(self, event: AnyClientEvent) -> bool:
        """Takes what of an event is sound; returns whether that was all of it. Raises as `append`."""
        if isinstance(event, AppendAudio):
            await self.append(codec.decode_audio(event.audio))
            return True
        if isinstance(event, CommitAudio | ClearAudio):
            # The last few milliseconds may find a full buffer: that must not cost the commit which empties it.
            self.flush()
        return False


def decode(text: str) -> AnyClientEvent:
    """Reads one event. Raises `Unreadable`."""
    try:
        return codec.decode_client(text)
    except WireError as error:
        raise Unreadable(error, codec.client_event_id(text)) from None


class Unreadable(Exception):
    """An event that is none: what is wrong, and the id that its answer names."""

    def __init__(self, error: WireError, event_id: str | None) -> None:
        super().__init__(str(error))
        self.error = error
        self.event_id = event_id


class Incoming:
    """The reading half of a stream. What is wrong with an event is answered on its link, in order; the link goes on."""

    def __init__(self, session: SessionPort, link: RpcLink) -> None:
        self._session = session
        self._link = link
        self._hearing = Hearing(session)

    async def take_event(self, text: str) -> None:
        """Takes one event. Who restores a long conversation is read no faster than it takes the echo; sound and
        interruptions never wait for that. Raises `SessionClosed`."""
        event_id = None
        try:
            event = decode(text)
            event_id = event.event_id
            if isinstance(event, ECHOED):
                await self._link.caught_up()
            if not await self._hearing.takes(event):
                await self._session.submit(self._link.id, event)
        except Unreadable as unreadable:
            self._session.refuse(self._link.id, unreadable.error, unreadable.event_id)
        except (WireError, Overloaded) as error:
            self._session.refuse(self._link.id, error, event_id)
        if len(text) > _BIG_CHARACTERS:
            await asyncio.sleep(0)

    async def take_sound(self, sound: bytes) -> None:
        """Takes sound. Raises `SessionClosed`."""
        try:
            await self._hearing.append(sound)
        except (WireError, Overloaded) as error:
            self._session.refuse(self._link.id, error, None)

    def refuse(self, error: WireError) -> None:
        """Answers a message that is no event."""
        self._session.refuse(self._link.id, error, None)


async def hand_in(session: SessionPort, texts: Sequence[str], sound: bytes) -> tuple[int, bytes]:
    """Hands in what one request brings, in order; returns how many events were taken, and the ``error`` event for the
    next one, b"" where there is none. Raises `SessionClosed`; where nothing was taken `Overloaded` and `WireError` (on
    ``sound``)."""
    hearing = Hearing(session)
    if sound:
        await hearing.append(sound)
        hearing.flush()
    for taken, text in enumerate(texts):
        event_id = None
        try:
            event = decode(text)
            event_id = event.event_id
            if await hearing.takes(event):
                hearing.flush()
            elif answers := await session.perform(event):
                return taken, answers[0]
        except Unreadable as unreadable:
            return taken, _answer(unreadable.error, unreadable.event_id)
        except (WireError, Overloaded) as error:
            if isinstance(error, Overloaded) and not taken and not sound:
                raise
            return taken, _answer(error, event_id)
    return len(texts), b""


def _answer(error: Exception, event_id: str | None) -> bytes:
    return codec.encode(codec.error_event(error, event_id), random_id("event"))
