"""The service as Connect's library serves it. Importing this imports that library: done with the first request."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, TypeVar

from connectrpc.code import Code
from connectrpc.codec import Codec
from connectrpc.compat import google_protobuf_binary_codec, google_protobuf_json_codec
from connectrpc.errors import ConnectError
from connectrpc.method import IdempotencyLevel, MethodInfo, StreamType
from connectrpc.request import RequestContext
from connectrpc.server import ConnectASGIApplication, Endpoint
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from starlette.types import ASGIApp

from orchestrator.errors import ChoraleError
from orchestrator.sessions.links import SessionDirectory
from orchestrator.transports.entrance import Entrance
from orchestrator.transports.rpc.connect import cutting
from orchestrator.transports.rpc.door import RpcDoor, calls, principal
from orchestrator.transports.rpc.service import SERVICE, Caller, Service
from orchestrator.transports.rpc.statuses import INTERNAL, OK, Status, status_of
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from orchestrator.wire import limits

log = logging.getLogger(__name__)

MAX_REQUEST_BYTES = 2**20
"""Of one message; many small events in one would take many times their bytes. The border bounds the whole body."""

Request = TypeVar("Request", bound=Message)
Reply = TypeVar("Reply", bound=Message)
Context = RequestContext[Any, Any]


def application(door: RpcDoor, entrance: Entrance, directory: SessionDirectory) -> ASGIApp:
    """Returns the service as an ASGI application."""
    app: Any = _Application(
        service=Service(door, entrance, directory),
        endpoints=_endpoints,
        interceptors=(_Admitting(entrance),),
        read_max_bytes=MAX_REQUEST_BYTES,
        compressions=(),  # what is compressed would be unpacked first and measured then
        codecs=(google_protobuf_binary_codec(), _BoundedJson()),
    )
    served: ASGIApp = app  # typed with another library's ASGI
    return served


def too_large(message: str) -> ConnectError:
    """Returns the error for a body that is larger than the border lets pass."""
    return ConnectError(Code.RESOURCE_EXHAUSTED, message)


def unreadable(message: str) -> ConnectError:
    """Returns the error for a body that is not what its type says."""
    return ConnectError(Code.INVALID_ARGUMENT, message)


class _Application(ConnectASGIApplication[Service]):
    @property
    def path(self) -> str:
        return f"/{SERVICE}"


class _BoundedJson(Codec[Any, Any]):
    """JSON of so many values at most as events have: it is read by Python, a quarter of a second for half a megabyte of
    small ones, and nobody else would get his turn meanwhile."""

    def __init__(self) -> None:
        self._codec: Codec[Any, Any] = google_protobuf_json_codec()

    def name(self) -> str:
        return self._codec.name()

    def encode(self, message: Any) -> bytes:
        """As the library's, but for what is no ASCII: written as escapes that would take twice the room."""
        written: str = MessageToJson(message, indent=None, ensure_ascii=False)
        return written.encode()

    def decode(self, data: bytes | bytearray, message_class: type[Any]) -> Any:
        """Raises `WireError`, which the library tells as a bad message."""
        limits.check_values(bytes(data))
        return self._codec.decode(data, message_class)


class _Admitting:
    """Looks at the key before a body is read."""

    def __init__(self, entrance: Entrance) -> None:
        self._entrance = entrance

    async def on_start(self, ctx: Context) -> None:
        try:
            principal.set(self._entrance.admit(ctx.request_headers))
        except ChoraleError as error:
            raise _refused(status_of(error), ctx) from None

    async def on_end(self, token: None, ctx: Context, error: Exception | None) -> None:
        """Leaves the answer as it is; says how the call ended."""
        calls.get().status = _ended(error)


def _ended(error: Exception | None) -> str:
    if error is None:
        return OK
    name = error.code.name if isinstance(error, ConnectError) else INTERNAL.name
    return "CANCELLED" if name == "CANCELED" else name


def _endpoints(service: Service) -> Mapping[str, Any]:
    """Returns the methods by path."""
    methods = (
        _unary("Create", service.create, pb.CreateRequest, pb.SessionOpened),
        _unary("Get", service.get, pb.GetRequest, pb.GetReply),
        _unary("End", service.end, pb.EndRequest, pb.EndReply),
        _unary("Send", service.send, pb.SendRequest, pb.SendReply),
        Endpoint.server_stream(
            _method("Watch", pb.WatchRequest, pb.ServerMessage, StreamType.SERVER_STREAM), _watching(service)
        ),
        Endpoint.bidi_stream(
            _method("Converse", pb.ClientMessage, pb.ServerMessage, StreamType.BIDI_STREAM),
            _conversing(service),
        ),
    )
    return {f"/{SERVICE}/{one.method.name}": one for one in methods}


def _method(
    name: str, asked: type[Request], answered: type[Reply], stream: StreamType
) -> MethodInfo[Request, Reply]:
    return MethodInfo(
        name=name,
        service_name=SERVICE,
        input=asked,
        output=answered,
        idempotency_level=IdempotencyLevel.UNKNOWN,
        stream_type=stream,
    )


def _unary(
    name: str,
    call: Callable[[Request, Caller], Awaitable[Reply]],
    asked: type[Request],
    answered: type[Reply],
) -> Any:
    """A method of one request and one reply. A task border, as `_streamed`: a fault of ours ends that call, without its
    text."""

    async def answer(request: Request, ctx: RequestContext[Request, Reply]) -> Reply:
        try:
            return await call(request, _caller(ctx))
        except ChoraleError as error:
            raise _refused(status_of(error), ctx) from None
        except ConnectError:
            raise  # of the protocol, and in its words
        except Exception:
            log.exception("call failed")
            raise _refused(INTERNAL, ctx) from None

    return Endpoint.unary(_method(name, asked, answered, StreamType.UNARY), answer)


def _watching(service: Service) -> Callable[[pb.WatchRequest, Context], AsyncIterator[pb.ServerMessage]]:
    def watch(request: pb.WatchRequest, ctx: Context) -> AsyncIterator[pb.ServerMessage]:
        async def asked() -> pb.WatchRequest:
            return request

        return _streamed(service.watch(asked, _caller(ctx)), ctx)

    return watch


def _conversing(
    service: Service,
) -> Callable[[AsyncIterator[pb.ClientMessage], Context], AsyncIterator[pb.ServerMessage]]:
    def converse(requests: AsyncIterator[pb.ClientMessage], ctx: Context) -> AsyncIterator[pb.ServerMessage]:
        return _streamed(service.converse(requests, _caller(ctx)), ctx)

    return converse


async def _streamed(
    messages: AsyncGenerator[pb.ServerMessage, None], ctx: Context
) -> AsyncGenerator[pb.ServerMessage, None]:
    try:
        async with aclosing(messages):
            async for message in messages:
                yield message
    except ChoraleError as error:
        raise _refused(status_of(error), ctx) from None
    except ConnectError:
        raise
    except Exception:
        log.exception("call failed")
        raise _refused(INTERNAL, ctx) from None


def _caller(ctx: Context) -> Caller:
    headers, cut = ctx.request_headers, cutting.get()
    in_json = "json" in headers.get("content-type", "")
    return Caller(principal.get(), headers.get("traceparent"), lambda _: cut(), in_json)


def _refused(status: Status, ctx: Context) -> ConnectError:
    for name, value in status.metadata:
        ctx.response_trailers[name] = value
    return ConnectError(Code["CANCELED" if status.name == "CANCELLED" else status.name], status.message)
