"""Sessions over plain HTTP: opened, looked at, spoken to in events, read as server-sent events, ended."""

import asyncio
import contextlib
import functools
import logging
from collections.abc import Iterator

import msgspec
from fastapi import FastAPI, Request
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from orchestrator.clock import US_PER_S
from orchestrator.errors import Overloaded, SessionClosed, WireError
from orchestrator.observability import logs
from orchestrator.sessions.links import LinkKind, SessionDirectory, SessionPort
from orchestrator.transports import partial, rejoining
from orchestrator.transports.auth import Principal, credential
from orchestrator.transports.border import BODY_LIMIT
from orchestrator.transports.description import (
    ADMITTED,
    ANY_OBJECT,
    OF_A_BODY,
    SECRET_SUFFICES,
    SENT_EVENT,
    an_object,
    errors,
    gives,
    reads,
    takes,
)
from orchestrator.transports.entrance import Entrance
from orchestrator.transports.fitting import view_fitting
from orchestrator.transports.known_first import known_first
from orchestrator.transports.open_links import OpenLinks
from orchestrator.transports.pace import Paces, Rate
from orchestrator.transports.refusals import NO_CACHE
from orchestrator.transports.sse_link import MAX_SENT_BYTES, EventStream, SseLink, StreamSettings
from orchestrator.wire import codec, limits, server
from orchestrator.wire.client import AppendAudio
from orchestrator.wire.session import Session, as_shown

log = logging.getLogger(__name__)

SESSIONS = "/v1/sessions"
MAX_EVENTS = 64
"""In one request."""

MAX_EVENTS_BYTES = 8 * 2**20
"""Of one request's body."""

MOST_OF_A_SESSION = 8
"""Streams that one session may have at one time: who has only its secret is bounded by it."""

_RETRY_AFTER_S = 5.0
_TRUE = frozenset({"1", "true"})


class NewSession(BaseModel):
    """The body of ``POST /v1/sessions``."""

    session: dict[str, object] | None = None
    model: str | None = None


class _Answer(msgspec.Struct):
    """A private answer of a session, as far as it matters here."""

    error: server.ErrorDetails | None = None


_errors = msgspec.json.Decoder(_Answer)
_STATUS = {"invalid_request_error": 400, "rate_limit_error": 429}


class EventsDoor(OpenLinks[SseLink]):
    """Lets readers of server-sent events into sessions: at most `max_links` at one time. Requests may speak to one
    session at this `rate`; None is no bound."""

    def __init__(
        self,
        directory: SessionDirectory,
        entrance: Entrance,
        max_links: int,
        settings: StreamSettings | None = None,
        rate: Rate | None = None,
    ) -> None:
        super().__init__()
        self.directory = directory
        self.entrance = entrance
        self.paces = Paces(rate)
        self._max_links = max_links
        self._settings = settings or StreamSettings()

    def stream(
        self, session: SessionPort, after: int | None, with_sound: bool, principal: Principal | None
    ) -> EventStream:
        """Returns the answer that streams a session's events. `principal` None: only the session's secret was shown."""
        link = SseLink(session, with_sound, self._settings)
        return EventStream(link, session, after, self._hold(link, session, principal))

    @contextlib.contextmanager
    def _hold(self, link: SseLink, session: SessionPort, principal: Principal | None) -> Iterator[None]:
        """Raises `Overloaded`."""
        with contextlib.ExitStack() as place:
            tenant = "" if principal is None else principal.tenant
            with self.entrance.telling(tenant, "link", self.count_refused):
                self._check_room(session)
                if principal is not None:
                    place.enter_context(self.entrance.link(principal)).close = link.close
            place.enter_context(logs.bind(session=session.id, link=link.id))
            place.enter_context(self.holding(link))
            log.info("link open", extra={"kind": link.kind.value})
            try:
                yield
            finally:
                log.info("link closed")

    def _check_room(self, session: SessionPort) -> None:
        """Raises `Overloaded`."""
        if self.links >= self._max_links:
            raise Overloaded("too many connections are open", _RETRY_AFTER_S)
        if sum(one.session_id == session.id for one in self._links.values()) >= MOST_OF_A_SESSION:
            raise Overloaded("too many streams of this session are open", _RETRY_AFTER_S, is_tenant=True)


class SessionRoutes:
    """Handlers, one per route. What they raise is answered in `http`."""

    def __init__(self, door: EventsDoor) -> None:
        self._door = door
        self._directory = door.directory
        self._entrance = door.entrance

    async def open(self, request: Request, body: NewSession | None = None) -> Response:
        """Opens a session. It lives for its grace time before somebody reads its events."""
        asked = body or NewSession()
        principal = self._entrance.admit(request.headers)
        own = None if asked.session is None else partial.encoded(asked.session)
        initial = partial.overlay(principal.initial, own)
        opening = principal.request(partial.model(asked.model), initial, request.headers.get("traceparent"))
        with (
            logs.bind(tenant=principal.tenant),
            self._entrance.telling(principal.tenant, "session", self._door.count_refused),
            self._entrance.beginning(principal),
        ):
            session = self._directory.open(opening, LinkKind.EVENTS)
        view = session.view
        answer = {
            "id": session.id,
            "secret": session.secret,
            "expires_at": view.expires_at,
            "session": _shown(view),
        }
        headers = {"Location": f"{SESSIONS}/{session.id}", **rejoining.handed_over(session), **NO_CACHE}
        return Response(msgspec.json.encode(answer), 201, headers, media_type="application/json")

    async def show(self, request: Request, session_id: str) -> Response:
        """Shows the session as it is now, and the number of its newest event."""
        session, _ = self._find(request, session_id)
        answer = {"id": session.id, "last": session.last, "session": _shown(session.view)}
        return Response(msgspec.json.encode(answer), headers=NO_CACHE, media_type="application/json")

    async def end(self, request: Request, session_id: str) -> Response:
        """Ends the session now."""
        session, _ = self._find(request, session_id)
        self._directory.end(session, "its client ended it")
        return Response(status_code=204, headers=NO_CACHE)

    async def say(self, request: Request, session_id: str) -> Response:
        """Takes one client event or a list of them. Each is handled before the next; the first that is refused is
        answered, and none after it is looked at. Raises `Overloaded` where the session was sent too much before."""
        session, principal = self._find(request, session_id)
        paces = self._door.paces
        paces.check(session, _now_us())  # before anything more is read
        request.scope[BODY_LIMIT] = MAX_EVENTS_BYTES
        body = await request.body()
        if principal is not None:
            self._entrance.check_again(principal)  # the body may have come slowly
        events = _events(body)
        paces.take(session, len(events), len(body), _now_us())
        for accepted, data in enumerate(events):
            refused = await _perform(session, data)
            if refused is not None:
                told = {"error": msgspec.to_builtins(refused), "accepted": accepted}
                return JSONResponse(told, _STATUS.get(refused.type, 500), NO_CACHE)
        return JSONResponse({"accepted": len(events), "last": session.last}, 202, NO_CACHE)

    async def listen(self, request: Request, session_id: str) -> Response:
        """Streams the session's events from the one after ``Last-Event-ID`` or ``after`` on. Who comes back to a
        session that is not there any more is told to come no more (204)."""
        came_back = request.headers.get("last-event-id") or None
        try:
            session, principal = self._find(request, session_id, secret_suffices=True)
        except SessionClosed:
            if came_back is None:
                raise
            return Response(status_code=204, headers=NO_CACHE)
        query = request.query_params
        after = rejoining.reads_on(came_back or query.get("after"), session)
        return self._door.stream(session, after, query.get("sound", "").lower() in _TRUE, principal)

    def _find(
        self, request: Request, session_id: str, secret_suffices: bool = False
    ) -> tuple[SessionPort, Principal | None]:
        """Returns the session and who asks for it. Browsers' own readers send no headers: where the secret suffices no
        key is asked for, that by which the session was opened stands in for it, and one that is shown has to be right
        all the same."""
        headers = request.headers
        secret = rejoining.shown_secret(headers, request.query_params)
        if secret_suffices and secret and credential(headers) is None and self._entrance.gate.needs_key:
            session = self._directory.by_id(session_id, secret, None)
            return session, self._entrance.admit_opener(self._directory.key_of(session), headers)
        principal = self._entrance.admit(headers)
        return self._directory.by_id(session_id, secret, principal.tenant), principal


def register(app: FastAPI, door: EventsDoor) -> None:
    """Adds the routes of this file."""
    routes = SessionRoutes(door)
    one = SESSIONS + "/{session_id}"
    add = functools.partial(app.add_api_route, response_class=Response)
    opened = an_object(id="string", secret="string", expires_at="integer", session="object")
    of_json = known_first(door.entrance)
    of_json.add_api_route(
        SESSIONS,
        routes.open,
        methods=["POST"],
        response_class=Response,
        status_code=201,
        responses=gives("The session; `Location` is where it is.", 201, {"application/json": opened})
        | errors(*OF_A_BODY, *ADMITTED, 503),
    )
    app.include_router(of_json)
    with_secret = reads(headers=(rejoining.SECRET_HEADER,))
    shown = an_object(id="string", last="integer", session="object")
    add(
        one,
        routes.show,
        methods=["GET"],
        responses=gives("The session.", {"application/json": shown}) | errors(*ADMITTED, 404),
        openapi_extra=with_secret,
    )
    ended = gives("The session has ended.", 204) | errors(*ADMITTED, 404)
    add(one, routes.end, methods=["DELETE"], status_code=204, responses=ended, openapi_extra=with_secret)
    add(
        one + "/events",
        routes.listen,
        methods=["GET"],
        responses=gives("Its events as they come.", {"text/event-stream": SENT_EVENT})
        | gives("It is there no more: come no more.", 204)
        | errors(400, *ADMITTED, 404, 503),
        openapi_extra=reads(("after", "sound"), (rejoining.SECRET_HEADER, "Last-Event-ID")) | SECRET_SUFFICES,
    )
    add(
        one + "/events",
        routes.say,
        methods=["POST"],
        status_code=202,
        responses=gives(
            "All were taken.", 202, {"application/json": an_object(accepted="integer", last="integer")}
        )
        | errors(*OF_A_BODY, *ADMITTED, 404, 503),
        openapi_extra=takes(
            {
                "application/json": {
                    "anyOf": [ANY_OBJECT, {"type": "array", "items": ANY_OBJECT, "maxItems": MAX_EVENTS}]
                }
            }
        )
        | with_secret,
    )


def _shown(view: Session) -> msgspec.Raw:
    return msgspec.Raw(view_fitting(msgspec.json.encode(as_shown(view)), MAX_SENT_BYTES))


def _now_us() -> int:
    return int(asyncio.get_running_loop().time() * US_PER_S)


def _events(body: bytes) -> list[bytes]:
    """Returns the events of a request's body, not looked into yet. Raises `WireError`."""
    if not body.lstrip(b" \t\r\n").startswith(b"["):
        return [body]
    limits.check_values(body)
    try:
        found = msgspec.json.decode(body, type=list[msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise WireError("invalid_json", f"The body is not valid JSON: {error}.") from None
    if not 1 <= len(found) <= MAX_EVENTS:
        raise WireError("invalid_value", f"Expected from 1 to {MAX_EVENTS} events, got {len(found)}.")
    return [bytes(one) for one in found]


async def _perform(session: SessionPort, data: bytes) -> server.ErrorDetails | None:
    """Returns why an event was refused; None where it was not. Raises `SessionClosed`."""
    event_id = None
    try:
        event_id = codec.client_event_id(data)
        event = codec.decode_client(data)
        if isinstance(event, AppendAudio):
            raise WireError("invalid_event", "Sound comes by WebSocket, gRPC or a call.", "type")
        answers = await session.perform(event)
    except (WireError, Overloaded) as error:
        return codec.error_event(error, event_id).error
    refusals = (_errors.decode(answer).error for answer in answers)
    return next((one for one in refusals if one is not None), None)
