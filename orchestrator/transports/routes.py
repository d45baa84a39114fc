"""The routes under ``/v1/realtime`` and those that say how the server is doing."""

import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from functools import partial as partial_
from typing import Literal, Protocol

import msgspec
from fastapi import FastAPI, Request
from pydantic import BaseModel, Field
from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, Headers, UploadFile
from starlette.formparsers import MultiPartException
from starlette.responses import JSONResponse, Response

from orchestrator import ids
from orchestrator.clock import Clock
from orchestrator.errors import WireError
from orchestrator.observability import logs
from orchestrator.observability.instrument import Requests
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.sessions.links import SessionDirectory, SessionPort, SessionRequest
from orchestrator.transports import partial, rejoining, sessions_http
from orchestrator.transports.auth import MAX_INITIAL_BYTES
from orchestrator.transports.border import MAX_BODY_BYTES
from orchestrator.transports.description import (
    ADMITTED,
    NEEDS_NO_KEY,
    OF_A_BODY,
    TEXT,
    an_object,
    errors,
    gives,
    reads,
    takes,
)
from orchestrator.transports.entrance import Entrance
from orchestrator.transports.form_parts import FormParts
from orchestrator.transports.known_first import known_first
from orchestrator.transports.openai_door import OpenAi
from orchestrator.transports.proxies import Proxies
from orchestrator.transports.refusals import NO_CACHE, Refusal, ShuttingDown
from orchestrator.transports.rejoining import Back
from orchestrator.transports.rpc.door import RpcDoor
from orchestrator.transports.sessions_http import EventsDoor
from orchestrator.transports.signed_secret import MAX_USES
from orchestrator.transports.websocket import WebSocketDoor
from orchestrator.wire import update
from orchestrator.wire.session import Session, as_shown

CALLS = "/v1/realtime/calls"

READ = ["GET", "HEAD"]
"""What answers GET answers HEAD with the same status and headers; the server leaves the body out."""


class CallDoor(Protocol):
    """The WebRTC door, as the HTTP routes see it (`transports.webrtc`)."""

    async def answer(
        self, offer_sdp: str, request: SessionRequest, back: Back | None = None
    ) -> tuple[str, str]:
        """Opens a call, or `back` to a session: returns its id and the answer. Raises `WireError` on a bad offer,
        `Overloaded`, `SessionClosed`."""
        ...

    def session_of(self, call_id: str) -> SessionPort | None:
        """Returns the session of a call that is not gone."""
        ...

    async def hang_up(self, call_id: str, tenant: str) -> None:
        """Ends a call. Raises `SessionClosed` where that tenant has no such call."""
        ...


@dataclass(frozen=True, slots=True)
class WorkerCondition:
    """How a worker is doing. `reason` says why it is not ready."""

    name: str
    state: str
    is_ready: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ServiceCondition:
    """What is left out now (0: nothing, 4: new sessions too), whether too many turns failed, and for how long."""

    level: int = 0
    degraded: bool = False
    since_s: float | None = None


class Readiness(Protocol):
    """Knows whether work would be done now."""

    def service(self) -> ServiceCondition:
        """Returns how much is left out; a server that leaves things out is ready all the same."""
        ...

    def conditions(self) -> Sequence[WorkerCondition]:
        """Returns every worker; one that has answered a probe is ready."""
        ...


class Metrics(Protocol):
    """Makes the text that Prometheus reads."""

    content_type: str

    async def text(self) -> bytes:
        """Returns every metric as it is now."""
        ...


@dataclass(frozen=True, slots=True)
class Doors:
    """What the routes stand before. `defaults` is the server's own session, `max_session_s` how long one lives.
    `metrics` is None where none are served; `requests` is told of every HTTP request. `directory` and `dispatcher` are
    for doors that open sessions, or have work done, by themselves; without them those are not there. `proxies` are
    those whose word about who asks is taken; None: nobody's. `events` lets readers of server-sent events in; `openai`
    is what the routes of that API share. `compression`: whether answers may be compressed."""

    entrance: Entrance
    websocket: WebSocketDoor
    calls: CallDoor
    readiness: Readiness
    defaults: Session
    max_session_s: float
    clock: Clock
    metrics: Metrics | None = None
    requests: Requests | None = None
    directory: SessionDirectory | None = None
    dispatcher: Dispatcher | None = None
    proxies: Proxies | None = None
    rpc: RpcDoor | None = None
    events: EventsDoor | None = None
    openai: OpenAi | None = None
    compression: bool = True


class ExpiresAfter(BaseModel):
    """How long a client secret is valid."""

    anchor: Literal["created_at"] = "created_at"
    seconds: int = Field(default=600, ge=10, le=7_200)


class SecretExtension(BaseModel):
    """What only this server knows of client secrets. `uses`: how many sessions and calls, or other work, it begins;
    null is as many as its holder likes."""

    uses: int | None = Field(default=None, ge=1, le=MAX_USES)


class SecretRequest(BaseModel):
    """The body of ``POST /v1/realtime/client_secrets``."""

    expires_after: ExpiresAfter = ExpiresAfter()
    session: dict[str, object] | None = None
    chorale: SecretExtension = SecretExtension()


class Routes:
    """Handlers, one per route. What they raise is answered in `http`."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors

    async def realtime(self) -> Response:
        """A plain GET where a WebSocket is meant."""
        raise Refusal(
            426,
            "upgrade_required",
            "This is a WebSocket endpoint: connect with ws:// or wss://.",
            headers={"Upgrade": "websocket", "Connection": "Upgrade"},
        )

    async def client_secrets(self, request: Request, body: SecretRequest | None = None) -> Response:
        """Makes an ephemeral key that carries a part of a session."""
        asked = body or SecretRequest()
        entrance = self._doors.entrance
        principal = entrance.admit(request.headers)
        if principal.temporary:
            raise Refusal(
                403, "insufficient_permissions", "A client secret cannot make client secrets; use an API key."
            )
        initial = None if asked.session is None else partial.encoded(asked.session)
        if initial is not None and len(initial) > MAX_INITIAL_BYTES:
            raise WireError(
                "invalid_value", f"The session is larger than {MAX_INITIAL_BYTES} bytes.", "session"
            )
        now_s = int(time.time())
        expires_at = now_s + int(self._doors.max_session_s)
        effective = update.initial(ids.random_id("sess"), None, expires_at, self._doors.defaults, initial)
        lifetime_s = asked.expires_after.seconds
        uses = asked.chorale.uses or 0
        with entrance.telling(principal.tenant, "secret"), entrance.beginning(principal):
            secret = entrance.make_secret(principal, initial, lifetime_s, uses)
        answer = {"value": secret.value, "expires_at": now_s + lifetime_s, "session": as_shown(effective)}
        return Response(msgspec.json.encode(answer), media_type="application/json", headers=NO_CACHE)

    async def calls(self, request: Request) -> Response:
        """Takes an SDP offer, answers with the server's own, the call's address and what is needed to come back."""
        entrance = self._doors.entrance
        principal = entrance.admit(request.headers)
        back = self._back(request, principal.tenant)
        with logs.bind(tenant=principal.tenant), entrance.telling(principal.tenant, "call"):
            if back is None and entrance.is_closed:
                raise ShuttingDown  # before anything is read
            offer, session = await _read_offer(request)
            initial = partial.overlay(principal.initial, session)
            model = partial.model(request.query_params.get("model"))
            asked = principal.request(model, initial, request.headers.get("traceparent"))
            if back is not None:
                entrance.check_again(principal)
                call_id, answer = await self._doors.calls.answer(offer, asked, back)
            else:
                with entrance.beginning(principal):
                    call_id, answer = await self._doors.calls.answer(offer, asked)
        headers = {"Location": f"{CALLS}/{call_id}", **NO_CACHE}
        if back is None and (opened := self._doors.calls.session_of(call_id)) is not None:
            headers |= rejoining.handed_over(opened)
        return Response(answer, 201, headers, media_type="application/sdp")

    def _back(self, request: Request, tenant: str) -> Back | None:
        directory = self._doors.directory
        if directory is None:
            return None
        return rejoining.comes_back(directory, request.headers, request.query_params, tenant)

    async def hang_up(self, request: Request, call_id: str) -> Response:
        """Ends a call of the same tenant."""
        principal = self._doors.entrance.admit(request.headers)
        await self._doors.calls.hang_up(call_id, principal.tenant)
        return Response(status_code=200)

    async def healthz(self) -> Response:
        """Says that the process runs and its event loop turns; nothing about workers."""
        return JSONResponse({"status": "ok"}, headers=NO_CACHE)

    async def readyz(self) -> Response:
        """Says whether a session opened now would be served, and what each worker is doing."""
        conditions = self._doors.readiness.conditions()
        draining = self._doors.entrance.is_closed
        ready = not draining and all(worker.is_ready for worker in conditions)
        workers = [
            {"name": one.name, "state": one.state, "ready": one.is_ready, "reason": one.reason}
            for one in conditions
        ]
        served = self._doors.readiness.service()
        service = {"level": served.level, "degraded": served.degraded, "since_s": served.since_s}
        body = {"ready": ready, "draining": draining, "service": service, "workers": workers}
        return JSONResponse(body, 200 if ready else 503, headers=NO_CACHE)

    async def metrics(self, request: Request) -> Response:
        """Says in Prometheus' text format how the server is doing. Where keys are needed, any API key will do."""
        principal = self._doors.entrance.admit(request.headers)
        if principal.temporary:
            raise Refusal(
                403, "insufficient_permissions", "A client secret cannot read metrics; use an API key."
            )
        served = self._doors.metrics
        assert served is not None, "without metrics there is no such route"
        return Response(await served.text(), headers={**NO_CACHE, "Content-Type": served.content_type})


def register(app: FastAPI, doors: Doors) -> None:
    """Adds the routes of this file, as each door's file does for its own."""
    routes = Routes(doors)
    add = partial_(app.add_api_route, response_class=Response)
    open_ = partial_(add, methods=READ, openapi_extra=NEEDS_NO_KEY)
    open_("/v1/realtime", routes.realtime, status_code=426, responses=errors(403, 421, 426))
    of_json = known_first(doors.entrance)
    of_json.add_api_route(
        "/v1/realtime/client_secrets",
        routes.client_secrets,
        methods=["POST"],
        response_class=Response,
        responses=gives(
            "The secret.",
            {"application/json": an_object(value="string", expires_at="integer", session="object")},
        )
        | errors(*OF_A_BODY, *ADMITTED, 503),
    )
    app.include_router(of_json)
    add(
        CALLS,
        routes.calls,
        methods=["POST"],
        status_code=201,
        responses=gives("The answer; `Location` is the call.", 201, {"application/sdp": TEXT})
        | errors(*OF_A_BODY, *ADMITTED, 404, 503),
        openapi_extra=takes(
            {
                "application/sdp": TEXT,
                "multipart/form-data": {
                    "type": "object",
                    "required": ["sdp"],
                    "properties": {"sdp": TEXT, "session": TEXT},
                },
            }
        )
        | reads(("model", "session_id", "after"), (rejoining.SECRET_HEADER,)),
    )
    add(
        CALLS + "/{call_id}/hangup",
        routes.hang_up,
        methods=["POST"],
        responses=gives("The call has ended.") | errors(*ADMITTED, 404),
    )
    health = gives("The process runs.", {"application/json": an_object(status="string")})
    open_("/healthz", routes.healthz, responses=health | errors(421))
    condition = an_object(ready="boolean", draining="boolean", service="object", workers={"type": "array"})
    ready = gives("A new session would be served.", {"application/json": condition})
    unready = gives("It would not.", 503, {"application/json": condition})
    open_("/readyz", routes.readyz, responses=ready | unready | errors(421))
    if doors.metrics is not None:
        told = gives("What Prometheus reads.", {"text/plain": TEXT}) | errors(*ADMITTED)
        add("/metrics", routes.metrics, methods=READ, responses=told)
    app.add_api_websocket_route("/v1/realtime", doors.websocket.serve)
    if doors.events is not None:
        sessions_http.register(app, doors.events)


async def _read_offer(request: Request) -> tuple[str, bytes | None]:
    """Returns the offer and the partial session of a call request. Raises `WireError`, `Refusal`."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/sdp":
        return _offer(await request.body()), None
    if kind != "multipart/form-data":
        raise Refusal(
            415, "unsupported_media_type", "Send the offer as application/sdp or multipart/form-data."
        )
    form = await _read_form(request)
    try:
        session = await _part(form, "session")
        offer = await _part(form, "sdp")
    finally:
        await form.close()
    if offer is None:
        raise WireError("missing_required_parameter", "Missing required parameter: 'sdp'.", "sdp")
    return _offer(offer), session


async def _read_form(request: Request) -> FormData:
    """Reads two parts, each with or without a file name, all in memory (the border bounds the body). They are UTF-8,
    whatever charset the form claims: some of Python's decoders fail in ways that the parser does not expect."""
    _, options = parse_options_header(request.headers["content-type"])
    boundary = options.get(b"boundary", b"").decode("latin-1")
    kind = f'multipart/form-data; boundary="{boundary}"' if boundary else "multipart/form-data"
    parser = FormParts(
        Headers({"content-type": kind}),
        _chunks(request),
        max_files=2,
        max_fields=2,
        max_part_size=MAX_BODY_BYTES,
    )
    try:
        return await parser.parse()
    except MultiPartException as error:
        raise WireError("invalid_value", f"The form cannot be read: {error.message}") from None


async def _chunks(request: Request) -> AsyncGenerator[bytes, None]:
    async for chunk in request.stream():
        yield chunk


async def _part(form: FormData, name: str) -> bytes | None:
    value = form.get(name)
    if isinstance(value, UploadFile):
        return await value.read()
    return None if value is None else value.encode()


def _offer(body: bytes) -> str:
    try:
        offer = body.decode()
    except UnicodeDecodeError:
        offer = ""
    if not offer.lstrip().startswith("v=0"):
        raise WireError(
            "invalid_value", "Invalid value for 'sdp': expected an SDP offer, beginning with v=0.", "sdp"
        )
    return offer
