"""The WebSocket door: ``GET /v1/realtime``. Two tasks per link, one that reads and one that writes; none per message.

The reader decodes, writes sound into the session's ring and hands everything else to its inbox, whose fullness holds
the client back. The writer follows the session's log with a cursor of its own: a slow client blocks only itself. Who
restores a long conversation is read no faster than it takes the echo; sound and interruptions never wait for that.
"""

import asyncio
import contextlib
import logging
from contextlib import suppress
from dataclasses import dataclass

from starlette.websockets import WebSocket, WebSocketDisconnect

from orchestrator.clock import US_PER_S, seconds
from orchestrator.errors import ChoraleError, Overloaded, SessionClosed, WireError
from orchestrator.observability import logs
from orchestrator.sessions.links import LinkKind, SessionDirectory, SessionPort
from orchestrator.transports import partial, rejoining
from orchestrator.transports.auth import SELECTED_SUBPROTOCOL, Principal, offered_subprotocols
from orchestrator.transports.entrance import Entrance, Inside
from orchestrator.transports.inlet import SLICE_BYTES, Inlet
from orchestrator.transports.open_links import OpenLinks
from orchestrator.transports.outbox import Closing
from orchestrator.transports.pace import TOO_FAST, Pace, Rate
from orchestrator.transports.refusals import refuse
from orchestrator.transports.server import connection_of
from orchestrator.transports.websocket_link import WebSocketLink
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

log = logging.getLogger(__name__)

SESSION_ENDED = "The session has ended."

_MESSAGES_IN_A_ROW = 16
"""After so many messages other tasks get their turn, even if more are waiting."""

_BIG_CHARACTERS = 16_384
"""What answers such an event is looked at before the next one is read."""

_LISTEN_S = 0.02
"""How long a reader whose sound has run ahead of the detector waits before it looks again."""

_MAX_REASON_BYTES = 120
_RETRY_AFTER_S = 5.0


@dataclass(frozen=True, slots=True)
class Joined:
    """The session that a link joins. `opened`: it was made for this link and ends if the link never comes about.
    `after`: the number of the last event that its client has. `principal`: who opened it, for the use that comes back
    where the link never comes about."""

    session: SessionPort
    kind: LinkKind
    opened: bool
    after: int | None = None
    principal: Principal | None = None


class WebSocketDoor(OpenLinks[WebSocketLink]):
    """Lets WebSocket clients into sessions: at most `max_links` at one time, each of which may send at this `rate`;
    None is no bound."""

    def __init__(
        self, directory: SessionDirectory, entrance: Entrance, max_links: int, rate: Rate | None = None
    ) -> None:
        super().__init__()
        self._directory = directory
        self._entrance = entrance
        self._max_links = max_links
        self._rate = rate

    async def serve(self, websocket: WebSocket) -> None:
        """Handles one connection from upgrade to end. Whatever is refused is refused before the upgrade, as HTTP."""
        with contextlib.ExitStack() as place:
            try:
                principal = self._admit(websocket)
                with self._entrance.telling(principal.tenant, "link", self.count_refused):
                    self._check_room()
                    inside = place.enter_context(self._entrance.link(principal))
                    joined = self._enter(websocket, principal)
            except ChoraleError as error:
                await websocket.send_denial_response(refuse(error))
                return
            await self._hold(websocket, principal, inside, joined)

    async def _hold(self, websocket: WebSocket, principal: Principal, inside: Inside, joined: Joined) -> None:
        link = WebSocketLink(connection_of(websocket.scope), joined.session, joined.kind)
        inside.close = link.close
        with (
            self.holding(link),
            logs.bind(session=joined.session.id, tenant=principal.tenant, link=link.id),
        ):
            try:
                await self._join(websocket, link, joined)
            finally:
                link.drop()

    def _admit(self, websocket: WebSocket) -> Principal:
        """Checks who asks. Raises `ChoraleError`."""
        headers = websocket.headers
        self._entrance.check_host(headers)
        self._entrance.check_page(headers)
        return self._entrance.admit(headers)

    def _check_room(self) -> None:
        """Raises `Overloaded`."""
        if self.links >= self._max_links:
            raise Overloaded("too many connections are open", _RETRY_AFTER_S)

    def _enter(self, websocket: WebSocket, principal: Principal) -> Joined:
        """Finds or opens the session. Raises `ChoraleError`."""
        headers, query = websocket.headers, websocket.query_params
        if call_id := query.get("call_id"):
            session = self._directory.by_call(call_id, principal.tenant)
            after = rejoining.reads_on(query.get("after"), session)
            return Joined(session, LinkKind.SIDEBAND, opened=False, after=after)
        if back := rejoining.comes_back(self._directory, headers, query, principal.tenant):
            return Joined(back.session, LinkKind.WEBSOCKET, opened=False, after=back.after)
        initial = principal.initial
        if query.get("intent") == "transcription":
            initial = partial.transcription(initial)
        model, traceparent = partial.model(query.get("model")), headers.get("traceparent")
        with self._entrance.beginning(principal):
            session = self._directory.open(principal.request(model, initial, traceparent), LinkKind.WEBSOCKET)
        return Joined(session, LinkKind.WEBSOCKET, opened=True, principal=principal)

    async def _join(self, websocket: WebSocket, link: WebSocketLink, joined: Joined) -> None:
        """Upgrades, attaches, serves, detaches. On every path the session is let go."""
        session, attached = joined.session, False
        chosen = (
            SELECTED_SUBPROTOCOL if SELECTED_SUBPROTOCOL in offered_subprotocols(websocket.headers) else None
        )
        try:
            await websocket.accept(chosen, _given(session) if joined.opened else None)
            link.start(session.attach(link, joined.after))
            attached = True
            log.info("link open", extra={"kind": joined.kind.value})
            closing = await self._serve(websocket, link, joined)
            log.info("link closed", extra={"code": closing.code if closing else None})
        except SessionClosed:
            closing = Closing(1001, SESSION_ENDED)
        except WireError as error:  # of `attach`, which looks again at what was looked at before the upgrade
            closing = Closing(1008, str(error))
        except OSError:
            closing = None  # the client was gone before its link came about
        finally:
            if attached:
                session.detach(link.id)
            elif joined.opened:
                self._directory.end(session, "its client never joined")
                if joined.principal is not None:
                    self._entrance.gate.give_back(joined.principal)
        if closing is not None:
            reason = closing.reason.encode()[:_MAX_REASON_BYTES].decode(errors="ignore")
            await _close(websocket, closing.code, reason)

    async def _serve(self, websocket: WebSocket, link: WebSocketLink, joined: Joined) -> Closing | None:
        """Reads and writes until one side ends; returns how to close, None where the client has already gone."""
        reader = Reader(websocket, link, joined, None if self._rate is None else Pace(self._rate))
        tasks = (
            asyncio.create_task(reader.run(), name=f"{link.id} reads"),
            asyncio.create_task(link.write(), name=f"{link.id} writes"),
        )
        first: set[asyncio.Future[None] | asyncio.Future[Closing]] = {*tasks, link.ended}
        try:
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if link.ended.done():
                return link.ended.result()
            for task in tasks:
                broke = task.exception() if task.done() else None
                if broke is not None and not isinstance(broke, WebSocketDisconnect | OSError):
                    await _close(websocket, 1011, "Internal error.")
                    raise broke
            return None
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


def _given(session: SessionPort) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode()) for name, value in rejoining.handed_over(session).items()]


async def _close(websocket: WebSocket, code: int, reason: str) -> None:
    """Closes a connection that its client may just have closed itself."""
    with contextlib.suppress(WebSocketDisconnect):
        await websocket.close(code, reason)


class Reader:
    """The reading half of a link. `pace` holds back who sends too much, and ends the link of who goes on."""

    def __init__(
        self, websocket: WebSocket, link: WebSocketLink, joined: Joined, pace: Pace | None = None
    ) -> None:
        self._websocket = websocket
        self._link = link
        self._session = joined.session
        self._takes_sound = joined.kind is not LinkKind.SIDEBAND
        self._connection = connection_of(websocket.scope)
        self._inlet = Inlet()
        self._pace = pace

    async def run(self) -> None:
        """Reads until the client has gone. Cancelling loses at most the message in hand."""
        count = 0
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            await self._take(text)
            count += 1
            if self._pace is not None:
                await self._hold_back(self._pace, len(text or ""))
            if count % _MESSAGES_IN_A_ROW == 0:
                await asyncio.sleep(0)

    async def _hold_back(self, pace: Pace, characters: int) -> None:
        """Reads no further for as long as this client has sent too much. One that does not let up is sent away."""
        now_us = int(asyncio.get_running_loop().time() * US_PER_S)
        wait_s = pace.take(characters, now_us)
        if pace.is_over(now_us):
            self._link.close(TOO_FAST.code, TOO_FAST.reason)
            await asyncio.wait({self._link.ended})
        elif wait_s:
            await asyncio.sleep(wait_s)

    async def _take(self, text: str | None) -> None:
        """Takes one message. What is wrong with it is answered, in order, and the link goes on."""
        event_id = None
        try:
            if text is None:
                raise WireError("invalid_event", "Events are sent as text messages, not as binary ones.")
            try:
                event = codec.decode_client(text)
            except WireError:
                event_id = codec.client_event_id(text)
                raise
            event_id = event.event_id
            if isinstance(event, CreateItem | RetrieveItem | DeleteItem | UpdateSession | CreateResponse):
                await self._link.caught_up()
            await self._perform(event)
            if len(text) > _BIG_CHARACTERS:
                await asyncio.sleep(0)
        except (WireError, Overloaded) as error:
            self._session.refuse(self._link.id, error, event_id)
        except SessionClosed:
            self._link.close(1001, SESSION_ENDED)

    async def _perform(self, event: AnyClientEvent) -> None:
        if isinstance(event, AppendAudio):
            await self._append(event)
            return
        if isinstance(event, CommitAudio | ClearAudio):
            # The last few milliseconds may find a full buffer: that must not cost the commit which empties it.
            with suppress(Overloaded):
                self._session.intake.append(self._inlet.flush())
        age_us = seconds(self._connection.round_trip_s / 2)
        await self._session.submit(self._link.id, event, age_us)

    async def _append(self, event: AppendAudio) -> None:
        if not self._takes_sound:
            raise WireError("invalid_event", "The sound of this session comes with its call.", "type")
        is_big = len(event.audio) > SLICE_BYTES
        if is_big:
            await asyncio.sleep(0)
        sound = codec.decode_audio(event.audio)
        for pcm in self._inlet.feed(sound, self._session.view.audio.input.format):
            while self._session.intake.is_behind:  # noqa: ASYNC110 - the detector tells sessions, not doors
                await asyncio.sleep(_LISTEN_S)
            self._session.intake.append(pcm)
            if is_big:
                await asyncio.sleep(0)
