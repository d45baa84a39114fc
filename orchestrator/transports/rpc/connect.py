"""gRPC-Web and Connect on the HTTP port, for browsers and for programs without HTTP/2: the same service as gRPC's.

Over HTTP/1.1 a request is complete before its answer begins: Converse takes what its client has to say up to then, and
goes on answering. Browsers stream in one direction only anyway: they use Create, Watch and Send.
"""

import asyncio
from collections.abc import Callable
from contextvars import ContextVar

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.errors import ChoraleError
from orchestrator.observability import traceparent
from orchestrator.observability.instrument import Call
from orchestrator.sessions.links import SessionDirectory
from orchestrator.transports.border import CALL
from orchestrator.transports.bounded_requests import CUT
from orchestrator.transports.entrance import Entrance
from orchestrator.transports.refusals import Refusal, refuse
from orchestrator.transports.routes import Doors
from orchestrator.transports.rpc import web_text
from orchestrator.transports.rpc.door import Named, RpcDoor, calls

PATH = "/chorale.v1.Sessions/{method}"
METHODS = frozenset({"Converse", "Watch", "Create", "Get", "End", "Send"})
_STREAMING = frozenset({"Converse", "Watch"})

_ONE_ANSWER = (
    "The Content-Type of this method is application/json or application/proto (Connect), or "
    "application/grpc-web+proto."
)
_STREAMS = (
    "This method streams. Its Content-Type is application/connect+json or application/connect+proto (Connect), or "
    "application/grpc-web+proto, and each message is in an envelope: a byte 0 and its length in four, then the message."
)


def _nothing() -> None:
    """Where there is no connection to cut."""


cutting: ContextVar[Callable[[], None]] = ContextVar("cutting", default=_nothing)
"""What cuts off the connection of the request in hand."""


class ConnectDoor:
    """An ASGI application that is made with its first request: nothing of Connect is imported before, which takes a
    fifth of a second, and then in a thread."""

    def __init__(self, door: RpcDoor, entrance: Entrance, directory: SessionDirectory) -> None:
        self._door = door
        self._entrance = entrance
        self._directory = directory
        self._app: ASGIApp | None = None
        self._making = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        try:
            kind = _check(scope)
        except ChoraleError as error:
            await refuse(error)(scope, receive, send)
            return
        self._name(scope, kind)
        plain = _Answer(scope, receive, send)
        if web_text.is_text(kind):
            scope = {**scope, "headers": web_text.as_binary(scope["headers"])}
            receive, send = web_text.TextBody(receive), web_text.TextAnswer(send)
        cutting.set(scope.get("extensions", {}).get(CUT, {}).get("cut", _nothing))
        app = self._app or await self._made()
        await app(scope, _Body(receive), plain.through(send))

    def _name(self, scope: Scope, kind: bytes) -> None:
        """Says what is called, for who counts requests and who tells of calls: of methods that there are."""
        method = scope["path_params"]["method"]
        if method not in METHODS:
            return
        scope["route"] = Named(PATH.format(method=method))
        system = "grpc" if kind.startswith(b"application/grpc") else "connectrpc"
        remote = traceparent.parse(Headers(scope=scope).get("traceparent"))
        scope[CALL] = call = Call(system=system, method=scope["route"].path.removeprefix("/"), remote=remote)
        calls.set(call)

    async def _made(self) -> ASGIApp:
        async with self._making:
            if self._app is None:
                self._app = await asyncio.to_thread(self._make)
        return self._app

    def _make(self) -> ASGIApp:
        from orchestrator.transports.rpc.connect_service import application

        return application(self._door, self._entrance, self._directory)


class _Body:
    """The body of a request; one that the border finds too large, or that is no base64 where it should be, ends as an
    error of the protocol that is spoken."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive

    async def __call__(self) -> Message:
        try:
            return await self._receive()
        except HTTPException as error:
            from orchestrator.transports.rpc.connect_service import too_large

            raise too_large(error.detail) from None
        except ValueError:
            from orchestrator.transports.rpc.connect_service import unreadable

            raise unreadable("The body is no base64.") from None


class _Answer:
    """What a request is answered with. Where the library refuses it with a bare status, without a word, it is told
    what is wrong."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._is_refused = False

    def through(self, send: Send) -> Send:
        """Returns what the library answers by: `send`, but for its bare refusals."""

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start" and (told := self._bare(message)) is not None:
                self._is_refused = True
                await refuse(told)(self._scope, self._receive, self._send)
            elif not self._is_refused:
                await send(message)

        return answer

    def _bare(self, start: Message) -> Refusal | None:
        if any(name.lower() == b"content-type" for name, _ in start.get("headers", ())):
            return None
        from orchestrator.transports.rpc.v1 import chorale_pb2

        methods = chorale_pb2.DESCRIPTOR.services_by_name["Sessions"].methods_by_name
        method = methods.get(self._scope["path_params"]["method"])
        if start["status"] == 404 and method is None:
            return Refusal(
                404, "not_found", f"There is no such method; there are {', '.join(sorted(methods))}."
            )
        if start["status"] == 415 and method is not None:
            return Refusal(
                415, "unsupported_media_type", _STREAMS if method.server_streaming else _ONE_ANSWER
            )
        return None


def _check(scope: Scope) -> bytes:
    """Returns the content type. Raises `Refusal` on what Connect's library takes for a fault of the server."""
    kind = b""
    for name, value in scope["headers"]:
        if not (name.isascii() and value.isascii()):
            raise Refusal(400, "invalid_header", "Headers are ASCII.")
        if name == b"content-type":
            kind = value.lower()
    if kind.startswith(b"application/grpc") and not kind.startswith(b"application/grpc-web"):
        raise Refusal(
            415,
            "unsupported_media_type",
            "gRPC itself is spoken on a port of its own (server.grpc); here it is gRPC-Web or Connect.",
        )
    return kind


def register(app: FastAPI, doors: Doors) -> None:
    """Adds the route of this file, where there are sessions to be opened."""
    if doors.rpc is not None and doors.directory is not None:
        door = ConnectDoor(doors.rpc, doors.entrance, doors.directory)
        app.router.routes.append(Route(PATH, door, methods=["POST"]))
