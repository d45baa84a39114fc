"""The seam between doors and sessions: what a link shows to its session and what it may ask of it.

A door (`transports/`) makes a `Link`, attaches it to a `SessionPort` and from then on only *reads*: the session writes
numbered entries into its output log and wakes the link, which keeps a cursor of its own. Private messages (errors,
``session.created``) go through `Link.tell`. Nothing here waits.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from msgspec import Struct

from modalities.ports import Pcm
from orchestrator.flow.tenants import BOUNDLESS, Allowance
from orchestrator.wire.client import AnyClientEvent
from orchestrator.wire.session import PCM, AudioFormat, Session


class LinkKind(Enum):
    """What a connection is. Only a CALL carries sound on a track. Through a SIDEBAND (of a call's session) and EVENTS
    (server-sent ones) no sound comes in. RPC: gRPC, gRPC-Web or Connect."""

    WEBSOCKET = "websocket"
    CALL = "call"
    SIDEBAND = "sideband"
    EVENTS = "events"
    RPC = "rpc"


SHUTTING_DOWN = "The server is shutting down."
"""Why links are closed (1001) whose session has ended with its server."""

WITHOUT_SOUND = frozenset({LinkKind.SIDEBAND, LinkKind.EVENTS})
"""Kinds of links through which nobody speaks."""


class LoggedEvent(Struct, frozen=True, gc=False):
    """A numbered event, encoded once: a JSON object with its ``event_id``. A `Struct`, as `effects.Emit`.

    `to_holders`: the same with the session's secret, for links whose client has it or is to have it (all but
    SIDEBAND); None where the event shows none.
    """

    data: bytes
    to_holders: bytes | None = None

    @property
    def size(self) -> int:
        """In bytes."""
        return len(self.data) if self.to_holders is None else len(self.data) + len(self.to_holders)

    def shown(self, kind: LinkKind) -> bytes:
        """Returns what a link of this kind sends."""
        return self.data if self.to_holders is None or kind is LinkKind.SIDEBAND else self.to_holders


@dataclass(frozen=True, slots=True)
class LoggedAudio:
    """Numbered sound of a response, 24 kHz int16 little-endian mono, at most 200 ms. WebSocket links turn it into
    ``response.output_audio.delta`` in the response's `format`; calls play it from their track, sidebands skip it.

    `start`: how many samples of this item were logged before it. `last`: no sound of this item follows, and `pcm` may
    be empty; logged in front of ``response.output_audio.done`` where encoding holds something back (G.711).
    """

    event_id: str
    response_id: str
    item_id: str
    output_index: int
    content_index: int
    pcm: bytes
    format: AudioFormat = PCM
    start: int = 0
    last: bool = False


LogEntry = LoggedEvent | LoggedAudio


class Playout(Protocol):
    """The playing side of a call: a track that sends 24 kHz sound at its own pace, at most some seconds ahead."""

    def play(self, response_id: str, pcm: bytes) -> None:
        """Queues sound (24 kHz int16 mono). Over the bound the oldest *unplayed* sound stays and the new is refused:
        raises `Overloaded`."""
        ...

    def finish(self, response_id: str) -> None:
        """No more sound of this response follows; once played out, the link posts `PlayoutDrained`."""
        ...

    def flush(self) -> None:
        """Drops what is queued at once; the track goes on with silence and unbroken time stamps."""
        ...

    def played_samples(self, response_id: str) -> int:
        """How many 24 kHz samples of this response have left on the track so far."""
        ...


class Link(Protocol):
    """One connection, seen from its session."""

    @property
    def id(self) -> str: ...

    @property
    def kind(self) -> LinkKind: ...

    @property
    def playout(self) -> Playout | None:
        """The playing side, for a call; None for links that get sound as events."""
        ...

    def wake(self) -> None:
        """New log entries may be read. Cheap, may be called often."""
        ...

    def tell(self, data: bytes) -> None:
        """Sends a private, unnumbered message after everything that the log holds now."""
        ...

    def close(self, code: int, reason: str) -> None:
        """Ends the connection after what was told; `code` is a WebSocket close code."""
        ...


class AudioIntake(Protocol):
    """The listening side of a session: a 16 kHz mono int16 stream whose positions are sample indices."""

    @property
    def position(self) -> int:
        """The index of the next sample to be appended (also the total written so far)."""
        ...

    @property
    def is_behind(self) -> bool:
        """Whether so much sound waits to be listened to that more of it would overwrite what was not heard yet: a
        door with an unpaced client reads no further until it is not."""
        ...

    def append(self, pcm: Pcm) -> None:
        """Appends sound at `position`. Raises `Overloaded` where an uncommitted manual buffer would overflow."""
        ...

    def append_at(self, position: int, pcm: Pcm) -> None:
        """Appends sound that belongs at `position`: a gap before it becomes marked silence, an overlap with what was
        already written is cut off."""
        ...


class SessionPort(Protocol):
    """A session, seen from a door."""

    @property
    def id(self) -> str: ...

    @property
    def secret(self) -> str:
        """Needed to re-attach; given to the client that opened the session."""
        ...

    @property
    def view(self) -> Session:
        """The effective configuration now (formats, modalities)."""
        ...

    @property
    def intake(self) -> AudioIntake: ...

    @property
    def last(self) -> int:
        """The number of the newest log entry; 0 before the first."""
        ...

    def attach(self, link: Link, after: int | None = None) -> int:
        """Adds a link, tells it ``session.created`` and returns the cursor after which its entries follow: those that
        are to come, or, where the link has everything up to number `after`, those since then. What of them is no longer
        held is told by one ``chorale.gap`` behind ``session.created``. Raises `WireError` (`after` is beyond `last`)
        and `SessionClosed`; the link is not added then."""
        ...

    def detach(self, link_id: str) -> None:
        """Removes a link. Idempotent. The session lives on for its grace time after the last one."""
        ...

    async def submit(self, link_id: str, event: AnyClientEvent, age_us: int = 0) -> None:
        """Hands a client event to the session; waits while its inbox is full (the door's back-pressure), and behind a
        ``session.update`` until it is in force: `view` says how what follows is to be read. Cancelling loses nothing
        but the event. `age_us`: how long ago it was sent, as far as the door can tell (half the measured round trip).
        What is wrong with it is answered on that link, in order. Raises `SessionClosed`."""
        ...

    async def perform(self, event: AnyClientEvent, age_us: int = 0) -> tuple[bytes, ...]:
        """Hands in an event for a door that has no link; waits until it has been handled, and returns what is answered
        to nobody else: its ``error``, or nothing. What it causes is logged, as ever. Sound goes to `intake` instead.
        Cancelling loses the answer; the event may have been handled. Raises `SessionClosed`, and `Overloaded` where too
        many wait already."""
        ...

    def refuse(self, link_id: str, error: Exception, event_id: str | None) -> None:
        """Answers an invalid client message with an ``error`` event on that link, in order."""
        ...

    def playout_drained(self, response_id: str) -> None:
        """The call's track has sent the last sample of a finished response."""
        ...

    def read(self, cursor: int, limit: int) -> list[tuple[int, LogEntry]]:
        """Returns up to `limit` entries numbered above `cursor`. Raises `LookupError` where they were dropped."""
        ...


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """Who opens a session and with what. `initial` is a partial session object (JSON) of a client secret or call,
    `traceparent` the client's W3C trace context, to which all turns of the session belong. `key_id` names the key, safe
    to be logged, and `allowance` what its tenant may hold. `session_id`: the id that a trusted proxy has chosen."""

    tenant: str
    tier: int
    model: str | None = None
    initial: bytes | None = None
    traceparent: str | None = None
    key_id: str = ""
    allowance: Allowance = BOUNDLESS
    session_id: str | None = None


class SessionDirectory(Protocol):
    """Finds and opens sessions for doors."""

    def open(self, request: SessionRequest, kind: LinkKind) -> SessionPort:
        """Opens a session; the place is reserved at once. Raises `Overloaded`, `WireError` (bad `initial`)."""
        ...

    def open_call(
        self, request: SessionRequest, session: SessionPort | None = None
    ) -> tuple[str, SessionPort]:
        """As `open`, for a call: returns its ``rtc_…`` id too. With `session`, a call that comes back to it: it has a
        new id, and the one before is no longer known."""
        ...

    def by_call(self, call_id: str, tenant: str) -> SessionPort:
        """Returns the session of a call of that tenant. Raises `SessionClosed`."""
        ...

    def by_id(self, session_id: str, secret: str, tenant: str | None) -> SessionPort:
        """Returns a living session to one who knows its secret. `tenant` is the caller's and has to be the session's;
        None where the secret is all that is shown. Raises `SessionClosed`, in the same words and time whatever is
        wrong."""
        ...

    def key_of(self, session: SessionPort) -> str:
        """Returns the id of the key by which a session was opened, "" without one."""
        ...

    def end(self, session: SessionPort, reason: str) -> None:
        """Ends a session now (hang-up); its links close. Idempotent."""
        ...
