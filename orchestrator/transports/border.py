"""What every HTTP request passes: host, page and size on its way in, CORS headers and a line of log on its way out.

WebSockets pass untouched but for who sends them (`proxies.caller`); their door checks the same things before the
upgrade.
"""

import logging
import time

from fastapi import HTTPException
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.errors import ChoraleError
from orchestrator.observability.instrument import RequestRecord, Requests, Silent
from orchestrator.transports.entrance import Entrance
from orchestrator.transports.proxies import Proxies, calling
from orchestrator.transports.refusals import refuse

log = logging.getLogger(__name__)

MAX_BODY_BYTES = 512 * 1024
"""An offer or a session part is a few kilobytes; instructions may be longer."""

BODY_LIMIT = "chorale.body_limit"
"""Where in the scope a route says how large a body it takes, once it knows who sends it."""

CALL = "chorale.call"
"""Where in the scope a route says which call of a service its request is (`observability.instrument.Call`)."""

MARKS = "chorale.marks"
"""Where in the scope a route says what returns the headers that its answer is to carry, whatever that will be."""

_SHOWN_BYTES = 256
_API = ("/v1/", "/chorale.", "/openapi.json")
_QUIET = ("/healthz", "/readyz", "/metrics")
_ANY_PATH = ("/{path:path}",)
_PREFLIGHT = {
    "Access-Control-Allow-Methods": "POST, GET, DELETE",
    "Access-Control-Allow-Headers": "authorization, content-type, chorale-session-id, chorale-session-secret, "
    "last-event-id, traceparent, tracestate, "
    "openai-beta, openai-organization, openai-project, openai-safety-identifier, x-openai-agents-sdk, "
    "x-stainless-arch, x-stainless-async, x-stainless-helper-method, x-stainless-lang, x-stainless-os, "
    "x-stainless-package-version, x-stainless-read-timeout, x-stainless-retry-count, x-stainless-runtime, "
    "x-stainless-runtime-version, x-stainless-timeout, "
    "connect-protocol-version, connect-timeout-ms, grpc-timeout, x-grpc-web, x-user-agent",
    "Access-Control-Max-Age": "600",
}
_EXPOSED = (
    "Location, Retry-After, Chorale-Session-Id, Chorale-Session-Secret, grpc-status, grpc-message, "
    "openai-processing-ms, x-request-id, x-ratelimit-limit-requests, x-ratelimit-limit-tokens, "
    "x-ratelimit-remaining-requests, x-ratelimit-remaining-tokens, x-ratelimit-reset-requests, "
    "x-ratelimit-reset-tokens, Trailer-Chorale-Code, Trailer-Chorale-Param, Trailer-Retry-After-Ms"
)


class Border:
    """ASGI around the application. `requests` is told of every request when it comes and when it has been answered."""

    def __init__(
        self,
        app: ASGIApp,
        entrance: Entrance,
        requests: Requests | None = None,
        proxies: Proxies | None = None,
    ) -> None:
        self._app = app
        self._entrance = entrance
        self._requests = requests or Silent()
        self._proxies = proxies or Proxies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        client, headers = scope.get("client"), Headers(scope=scope)
        peer = client[0] if client else None
        who = self._proxies.caller_of(peer, headers)
        if who.by_proxy:
            scheme = self._proxies.scheme_of(peer, headers, scope["scheme"])
            scope = {**scope, "client": (who.address, 0), "scheme": scheme}
        with calling(who):
            await self._cross(scope, receive, send)

    async def _cross(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._app(scope, receive, send)
            return
        crossing = _Crossing(scope, receive, send)
        self._requests.began(scope["method"], scope["scheme"])
        try:
            await self._pass(scope, crossing)
        finally:
            crossing.write_log()
            self._requests.request(crossing.record())

    async def _pass(self, scope: Scope, crossing: "_Crossing") -> None:
        headers = Headers(scope=scope)
        is_api = scope["path"].startswith(_API)
        try:
            self._entrance.check_host(headers)
            if is_api:
                crossing.origin = self._entrance.check_page(headers)
        except ChoraleError as error:
            await refuse(error)(scope, crossing.receive, crossing.send)
            return
        if is_api and scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await Response(status_code=204, headers=_PREFLIGHT)(scope, crossing.receive, crossing.send)
            return
        await self._app(scope, crossing.receive, crossing.send)


class _Crossing:
    """One request: its channels, what is counted on them, and its line in the log."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._began_s = time.monotonic()
        self._received = 0
        self._status = 0
        self._name: str | None = None
        self.origin: str | None = None
        """The page that asks, once it is known to be allowed."""

    async def receive(self) -> Message:
        message = await self._receive()
        self._received += len(message.get("body", b""))
        most = self._scope.get(BODY_LIMIT, MAX_BODY_BYTES)
        if self._received > most:
            raise HTTPException(413, f"The body is larger than {most} bytes.")
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Content-Type-Options"] = "nosniff"
            if (marks := self._scope.get(MARKS)) is not None:
                headers.update(marks())
                self._name = headers.get("x-request-id")
            if self._scope["path"].startswith(_API):
                headers.add_vary_header("Origin")
            if self.origin is not None:
                headers["Access-Control-Allow-Origin"] = self.origin
                headers["Access-Control-Expose-Headers"] = _EXPOSED
        await self._send(message)

    def record(self) -> RequestRecord:
        """Returns what telemetry is told: the pattern of the route, never the path. An answer of 5xx is an error by its
        status, as is a request that was never answered."""
        route = getattr(self._scope.get("route"), "path", "")
        status = self._status
        return RequestRecord(
            method=self._scope["method"],
            route="" if route in _ANY_PATH else route,
            status=status,
            duration_s=time.monotonic() - self._began_s,
            scheme=self._scope["scheme"],
            version=self._scope["http_version"],
            error=str(status) if status >= 500 else "" if status else "unanswered",
            call=self._scope.get(CALL),
        )

    def write_log(self) -> None:
        """Writes method, path and status: never the query, which may hold a secret. The path is written as it came: its
        line breaks are still encoded."""
        path = self._scope["path"]
        came = self._scope.get("raw_path") or path.encode("ascii", "backslashreplace")
        client = self._scope.get("client")
        log.log(
            logging.DEBUG if path in _QUIET else logging.INFO,
            "%s %s",
            self._scope["method"],
            came[:_SHOWN_BYTES].decode("ascii", "backslashreplace"),
            extra={
                "status": self._status,
                "ms": round((time.monotonic() - self._began_s) * 1_000, 1),
                "client": client[0] if client else None,
                **({"request": self._name} if self._name else {}),
            },
        )
