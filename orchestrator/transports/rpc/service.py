"""What the service `chorale.v1.Sessions` does, whatever carries it: gRPC (`grpc_server`), gRPC-Web or Connect
(`connect`). What it raises is a `ChoraleError`, which they make a status of (`statuses`)."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec

from orchestrator.clock import US_PER_S
from orchestrator.errors import DeadlineExceeded, SessionClosed, Unauthorized, WireError
from orchestrator.sessions.links import LinkKind, SessionDirectory, SessionPort
from orchestrator.transports import partial
from orchestrator.transports.auth import Principal
from orchestrator.transports.entrance import KEY_WITHDRAWN, Entrance
from orchestrator.transports.fitting import view_fitting
from orchestrator.transports.outbox import Closing
from orchestrator.transports.pace import TOO_FAST, Pace
from orchestrator.transports.rpc.door import RpcDoor
from orchestrator.transports.rpc.incoming import Incoming, hand_in
from orchestrator.transports.rpc.link import RpcLink
from orchestrator.transports.rpc.statuses import LinkClosed
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from orchestrator.wire.session import as_shown

log = logging.getLogger(__name__)

SERVICE = "chorale.v1.Sessions"

FIRST_WITHIN_S = 20.0
"""How long a call may say nothing: its request, or what opens or joins a session."""

MAX_SESSION_CHARACTERS = 512 * 1024
"""Of a partial session; instructions may be long."""

MAX_VIEW_BYTES = 2**20 - 1_024
"""Of a session as it is shown; with what is around it a message stays below 1 MiB."""

MOST_EVENTS = 64
"""That one request may hand in."""

_MAX_NAME_CHARACTERS = 256
_MESSAGES_IN_A_ROW = 16

Request = TypeVar("Request")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls. `cut` ends a call whose client does not read, though a message is on its way to it. `in_json`: what
    is sent is written as JSON."""

    principal: Principal
    traceparent: str | None
    cut: Callable[[Closing], None]
    in_json: bool = False


@dataclass(frozen=True, slots=True)
class Joined:
    """The session that a stream belongs to, and from where it reads on. `opened`: it was made for this stream.
    `with_speech`: the stream brings the sound of replies."""

    session: SessionPort
    after: int | None
    opened: bool = False
    with_speech: bool = True


class Service:
    """One for each way in; `door` knows the links of all of them."""

    def __init__(self, door: RpcDoor, entrance: Entrance, directory: SessionDirectory) -> None:
        self._door = door
        self._entrance = entrance
        self._directory = directory

    def converse(
        self, requests: AsyncIterator[pb.ClientMessage], caller: Caller
    ) -> AsyncGenerator[pb.ServerMessage, None]:
        """Returns the stream that follows the message which opens or joins a session."""

        async def begin() -> Joined:
            return self._begun(await only_one(requests), caller)

        return self._linked(begin, caller, requests)

    def watch(
        self, ask: Callable[[], Awaitable[pb.WatchRequest]], caller: Caller
    ) -> AsyncGenerator[pb.ServerMessage, None]:
        """Returns the stream of what a session sends; `ask` waits for what is asked, once there is a place for it."""

        async def begin() -> Joined:
            request = await ask()
            return replace(self._joined(request, caller), with_speech=request.speech)

        return self._linked(begin, caller)

    async def create(self, request: pb.CreateRequest, caller: Caller) -> pb.SessionOpened:
        """Opens a session that waits for its links as long as one that has lost them."""
        with self._entrance.telling(caller.principal.tenant, "session", self._door.count_refused):
            session = self._open(request.model, request.session, caller)
        return _opened(session, session.last, caller)

    async def get(self, request: pb.GetRequest, caller: Caller) -> pb.GetReply:
        session = self._find(request.session_id, request.secret, caller)
        return pb.GetReply(session=_view(session, caller), last=session.last)

    async def end(self, request: pb.EndRequest, caller: Caller) -> pb.EndReply:
        session = self._find(request.session_id, request.secret, caller)
        self._directory.end(session, "ended by its client")
        return pb.EndReply()

    async def send(self, request: pb.SendRequest, caller: Caller) -> pb.SendReply:
        session = self._find(request.session_id, request.secret, caller)
        if len(request.events) > MOST_EVENTS:
            raise WireError("invalid_value", f"At most {MOST_EVENTS} events go into one request.", "events")
        size = request.ByteSize()
        self._door.paces.take(session, len(request.events) + bool(request.sound), size, _now_us())
        accepted, error = await hand_in(session, request.events, request.sound)
        return pb.SendReply(accepted=accepted, last=session.last, error=error.decode())

    # -- inside -----------------------------------------------------------------------------------------------------

    def _begun(self, first: pb.ClientMessage, caller: Caller) -> Joined:
        """Opens or finds the session that a stream begins with."""
        match first.WhichOneof("message"):
            case "open":
                return Joined(self._open(first.open.model, first.open.session, caller), None, opened=True)
            case "join":
                return self._joined(first.join, caller)
            case _:
                raise _not_begun()

    def _joined(self, request: pb.Join | pb.WatchRequest, caller: Caller) -> Joined:
        session = self._find(request.session_id, request.secret, caller)
        return Joined(session, request.after if request.HasField("after") else None)

    def _open(self, model: str, session: str, caller: Caller) -> SessionPort:
        if len(session) > MAX_SESSION_CHARACTERS:
            raise WireError(
                "invalid_value", f"The session is longer than {MAX_SESSION_CHARACTERS} characters.", "session"
            )
        principal = caller.principal
        initial = partial.overlay(principal.initial, session.encode() if session else None)
        request = principal.request(partial.model(model), initial, caller.traceparent)
        with self._entrance.beginning(principal):
            return self._directory.open(request, LinkKind.RPC)

    def _find(self, session_id: str, secret: str, caller: Caller) -> SessionPort:
        """Raises `SessionClosed`, whatever is wrong with what is named, and `Unauthorized` where the key has been
        withdrawn since: a request may come slowly."""
        self._entrance.check_again(caller.principal)
        if max(len(session_id), len(secret)) > _MAX_NAME_CHARACTERS:
            session_id = secret = ""
        return self._directory.by_id(session_id, secret, caller.principal.tenant)

    async def _linked(
        self,
        begin: Callable[[], Awaitable[Joined]],
        caller: Caller,
        requests: AsyncIterator[pb.ClientMessage] | None = None,
    ) -> AsyncGenerator[pb.ServerMessage, None]:
        """A link, from its beginning to its end. It has a place among its tenant's before it has said anything."""
        tenant = caller.principal.tenant
        with ExitStack() as place:
            with self._entrance.telling(tenant, "link", self._door.count_refused):
                with self._door.coming():
                    inside = place.enter_context(self._entrance.link(caller.principal))
                    joined = await begin()
                if inside.is_withdrawn:
                    raise Unauthorized(KEY_WITHDRAWN)
                session = joined.session
                link = RpcLink(session, joined.with_speech, caller.cut, caller.in_json)
                inside.close = link.close
                place.enter_context(self._door.holding(link))
            reading: asyncio.Task[None] | None = None
            attached = False
            about = {"session": session.id, "tenant": tenant, "link": link.id}
            try:
                cursor = session.attach(link, joined.after)
                attached = True
                log.info("link open", extra={"kind": link.kind.value, **about})
                link.start(cursor)
                if requests is not None:
                    pace = Pace(self._door.rate)
                    reading = asyncio.create_task(
                        _read(requests, session, link, pace), name=f"{link.id} reads"
                    )
                    reading.add_done_callback(lambda task: _tell_of(task, link))
                async with aclosing(link.messages(_opened(session, cursor, caller))) as messages:
                    async for message in messages:
                        yield message
            finally:
                link.drop()
                if attached:
                    session.detach(link.id)
                    log.info("link closed", extra=about)
                elif joined.opened:
                    self._directory.end(session, "its client never joined")
                    self._entrance.gate.give_back(caller.principal)
                if reading is not None:
                    reading.cancel()
                    await asyncio.wait({reading})


async def _read(
    requests: AsyncIterator[pb.ClientMessage], session: SessionPort, link: RpcLink, pace: Pace
) -> None:
    """Reads until the client says no more, no faster than the session takes it and than one link may speak."""
    incoming = Incoming(session, link)
    count = 0
    async for request in requests:
        try:
            await _take(request, incoming)
        except SessionClosed:
            return  # its links are told by itself
        count += 1
        now_us = _now_us()
        wait_s = pace.take(request.ByteSize(), now_us)
        if pace.is_over(now_us):
            raise LinkClosed(TOO_FAST)
        if wait_s or count % _MESSAGES_IN_A_ROW == 0:
            await asyncio.sleep(wait_s)


def _now_us() -> int:
    return int(asyncio.get_running_loop().time() * US_PER_S)


async def _take(request: pb.ClientMessage, incoming: Incoming) -> None:
    match request.WhichOneof("message"):
        case "event":
            await incoming.take_event(request.event.json)
        case "sound":
            await incoming.take_sound(request.sound.data)
        case "open" | "join":
            incoming.refuse(WireError("invalid_event", "This stream has its session already.", "message"))
        case _:
            incoming.refuse(WireError("invalid_event", "A message holds an event or sound.", "message"))


def _tell_of(task: "asyncio.Task[None]", link: RpcLink) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        link.fail(error)


async def only_one(requests: AsyncIterator[Request]) -> Request:
    """Returns the first message of a stream. Raises `WireError` where there is none, `DeadlineExceeded` where it does
    not come."""
    try:
        async with asyncio.timeout(FIRST_WITHIN_S):
            return await anext(requests)
    except StopAsyncIteration:
        raise _not_begun() from None
    except TimeoutError:
        raise DeadlineExceeded(f"Nothing was said for {FIRST_WITHIN_S:.0f} s.") from None


def _not_begun() -> WireError:
    return WireError(
        "missing_required_parameter", "The first message of a stream opens a session or joins one.", "message"
    )


def _opened(session: SessionPort, cursor: int, caller: Caller) -> pb.SessionOpened:
    view = session.view
    return pb.SessionOpened(
        session_id=session.id,
        secret=session.secret,
        expires_at=view.expires_at,
        last=cursor,
        session=_view(session, caller),
    )


def _view(session: SessionPort, caller: Caller) -> str:
    shown = msgspec.json.encode(as_shown(session.view))
    return view_fitting(shown, MAX_VIEW_BYTES, caller.in_json).decode()
