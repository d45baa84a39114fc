"""The gRPC door: `chorale.v1.Sessions` with health and reflection over HTTP/2, on a port of its own.

Importing this imports gRPC, which takes a tenth of a second: done only where `server.grpc` is set.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import NoReturn, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message
from grpc_reflection.v1alpha import reflection

from orchestrator.errors import ChoraleError, WireError
from orchestrator.observability.instrument import Requests, Silent
from orchestrator.sessions.links import SessionDirectory
from orchestrator.transports.entrance import Entrance
from orchestrator.transports.outbox import Closing
from orchestrator.transports.proxies import Proxies
from orchestrator.transports.routes import Readiness
from orchestrator.transports.rpc import health
from orchestrator.transports.rpc.door import GrpcOptions, RpcDoor, principal
from orchestrator.transports.rpc.interceptors import (
    Authenticating,
    Context,
    Handler,
    Limiting,
    Telling,
    headers_of,
)
from orchestrator.transports.rpc.link import CLOSE_WITHIN_S
from orchestrator.transports.rpc.service import SERVICE, Caller, Service, only_one
from orchestrator.transports.rpc.statuses import INTERNAL, LinkClosed, Status, status_of
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from orchestrator.transports.server import MAX_MESSAGE_BYTES

log = logging.getLogger(__name__)

MAX_REQUEST_BYTES = 2**20
"""Of a request that is no stream: many small events in one would take many times their bytes."""

STREAMS_OF_A_CONNECTION = 128
CONNECTIONS_OF_A_LINK = 2
"""So many connections there may be for each link, and one for each call beside them; more are closed as they come."""

_SPARE_CALLS = 168
"""Calls that may run beside the links: those about health that need no key (`health`), and 128."""

_CALLS_END_WITHIN_S = 0.5
"""Calls that are no links: short ones, and those that watch how healthy the server is."""

_PING_NO_FASTER_MS = 10_000
_HANDSHAKE_WITHIN_MS = 10_000
_IDLE_MS = 120_000
"""Longer than proxies keep connections that they do not use (configs/nginx.conf: 1 min)."""
_MAX_SENT_BYTES = 4 * 2**20
_GRPC_LOGGER = "grpc._cython.cygrpc"
_IDENTITY_ONLY = 1

Request = TypeVar("Request", bound=Message)
Reply = TypeVar("Reply", bound=Message)
Result = TypeVar("Result")


class GrpcServer:
    """Serves from `start` to `stop`."""

    def __init__(
        self,
        options: GrpcOptions,
        door: RpcDoor,
        entrance: Entrance,
        directory: SessionDirectory,
        readiness: Readiness,
        requests: Requests | None = None,
        proxies: Proxies | None = None,
    ) -> None:
        self._options = options
        self._door = door
        self._entrance = entrance
        self._service = Service(door, entrance, directory)
        self._readiness = readiness
        self._requests = requests or Silent()
        self._proxies = proxies or Proxies()
        self._server: grpc.aio.Server | None = None
        self._health: health.Health | None = None

    async def start(self) -> int:
        """Listens; returns the port. Raises `OSError` where the address is taken or the certificate unreadable."""
        options = self._options
        secure = options.certificate is not None and options.certificate_key is not None
        server = grpc.aio.server(
            interceptors=(
                Telling(self._requests, "https" if secure else "http", self._proxies),
                Authenticating(self._entrance, self._proxies),
                Limiting(self._door, self._entrance),
            ),
            options=_channel_options(
                options.ping_s, CONNECTIONS_OF_A_LINK * self._door.max_links + _SPARE_CALLS
            ),
            maximum_concurrent_rpcs=self._door.max_links + _SPARE_CALLS,
        )
        server.add_generic_rpc_handlers((_handlers(self._service),))
        services = (SERVICE, health.SERVICE, reflection.SERVICE_NAME)
        self._health = health.Health(self._readiness, self._entrance, services)
        server.add_generic_rpc_handlers((self._health.handlers(),))
        reflection.enable_server_reflection(services, server)
        host = f"[{options.host}]" if ":" in options.host else options.host
        address = f"{host}:{options.port}"
        try:
            if options.certificate is not None and options.certificate_key is not None:
                key, certificate = await asyncio.to_thread(
                    _read, options.certificate_key, options.certificate
                )
                credentials = grpc.ssl_server_credentials([(key, certificate)])
                port = server.add_secure_port(address, credentials)
            else:
                port = server.add_insecure_port(address)
        except RuntimeError as error:  # what gRPC makes of every failure to bind
            raise OSError(str(error).partition("; set GRPC_VERBOSITY")[0]) from None
        logging.getLogger(_GRPC_LOGGER).addFilter(_discreet)
        await server.start()
        self._server = server
        log.info("listening for gRPC", extra={"address": f"{host}:{port}"})
        return port

    async def stop(self, grace_s: float) -> None:
        """Ends every link after what it has yet to send, in `grace_s`; then every other call. Idempotent. Cancelling it
        ends all of them now."""
        server, self._server = self._server, None
        if server is None:
            return
        if self._health is not None:
            self._health.close()
        self._door.shut()
        try:
            async with asyncio.timeout(grace_s):
                await self._door.wait_empty()
        except TimeoutError:
            log.warning("clients did not take the end of their streams", extra={"links": self._door.links})
        finally:
            await server.stop(_CALLS_END_WITHIN_S)


def _discreet(record: logging.LogRecord) -> bool:
    """Of each value of metadata that is no UTF-8 gRPC's logger is told, with a traceback, each time that it is read: it
    may be a key; and thousands of lines, asked for by anybody, take seconds."""
    return not str(record.msg).startswith("Invalid encoding")


def _read(*paths: Path) -> list[bytes]:
    return [path.read_bytes() for path in paths]


def _channel_options(ping_s: float, most_connections: int) -> list[tuple[str, int]]:
    ping_ms = int(ping_s * 1_000)
    return [
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", _MAX_SENT_BYTES),
        # They need no key: without a bound they take the file handles of the whole server.
        ("grpc.max_allowed_incoming_connections", most_connections),
        ("grpc.max_concurrent_streams", STREAMS_OF_A_CONNECTION),
        ("grpc.keepalive_time_ms", ping_ms),
        ("grpc.keepalive_timeout_ms", ping_ms),
        ("grpc.keepalive_permit_without_calls", 1),
        # Clients that ping are let be: without this they are sent away after the second ping.
        ("grpc.http2.min_ping_interval_without_data_ms", _PING_NO_FASTER_MS),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", _PING_NO_FASTER_MS),
        ("grpc.server_handshake_timeout_ms", _HANDSHAKE_WITHIN_MS),
        ("grpc.max_connection_idle_ms", _IDLE_MS),
        # What a stream may send ahead stays 64 KiB; measuring the line would let it grow to megabytes for each.
        ("grpc.http2.bdp_probe", 0),
        ("grpc.so_reuseport", 0),
        # A message of a kilobyte may be a megabyte unpacked: what is compressed is refused.
        ("grpc.compression_enabled_algorithms_bitset", _IDENTITY_ONLY),
    ]


def _handlers(service: Service) -> grpc.GenericRpcHandler:
    """Returns the methods of the service. All of them read their requests from a stream, which on the wire is the same:
    nothing but the 64 KiB that come ahead is taken from who has no key. And they read the bytes themselves: to gRPC a
    message that is none is an accident of the server."""
    handlers: dict[str, Handler] = {
        "Converse": grpc.stream_stream_rpc_method_handler(_conversing(service), None, _written),
        "Watch": grpc.stream_stream_rpc_method_handler(_watching(service), None, _written),
        "Create": _unary(service.create, pb.CreateRequest),
        "Get": _unary(service.get, pb.GetRequest),
        "End": _unary(service.end, pb.EndRequest),
        "Send": _unary(service.send, pb.SendRequest),
    }
    return grpc.method_handlers_generic_handler(SERVICE, handlers)


def _unary(call: Callable[[Request, Caller], Awaitable[Reply]], kind: type[Request]) -> Handler:
    async def answer(requests: AsyncIterator[bytes], context: Context) -> Reply:
        async def work(caller: Caller) -> Reply:
            return await call(await _request(requests, kind), caller)

        return await _answered(context, work)

    return grpc.stream_unary_rpc_method_handler(answer, None, _written)


def _watching(service: Service) -> Callable[[AsyncIterator[bytes], Context], Awaitable[None]]:
    async def watch(requests: AsyncIterator[bytes], context: Context) -> None:
        async def work(caller: Caller) -> None:
            await _write(service.watch(partial(_request, requests, pb.WatchRequest), caller), context)

        await _answered(context, work)

    return watch


def _conversing(service: Service) -> Callable[[AsyncIterator[bytes], Context], Awaitable[None]]:
    async def converse(requests: AsyncIterator[bytes], context: Context) -> None:
        async def work(caller: Caller) -> None:
            async with aclosing(_all_parsed(requests)) as spoken:
                await _write(service.converse(spoken, caller), context)

        await _answered(context, work)

    return converse


async def _request(requests: AsyncIterator[bytes], kind: type[Request]) -> Request:
    """Reads the one request of a call. Raises `WireError`, `DeadlineExceeded`."""
    data = await only_one(aiter(requests))
    if len(data) > MAX_REQUEST_BYTES:
        raise WireError("invalid_value", f"A request has at most {MAX_REQUEST_BYTES} bytes.")
    return _parsed(kind, data)


async def _write(messages: AsyncGenerator[pb.ServerMessage, None], context: Context) -> None:
    """Sends messages one by one, each once the one before is on its way: a client that does not read makes nothing
    grow."""
    async with aclosing(messages):
        async for message in messages:
            await context.write(message)


async def _all_parsed(requests: AsyncIterator[bytes]) -> AsyncGenerator[pb.ClientMessage, None]:
    async for data in requests:
        yield _parsed(pb.ClientMessage, data)


def _parsed(kind: type[Request], data: bytes) -> Request:
    """Returns a message. Raises `WireError`."""
    try:
        return kind.FromString(data)
    except DecodeError:
        raise WireError("invalid_message", f"The message is no {kind.DESCRIPTOR.full_name}.") from None


def _written(message: Message) -> bytes:
    return message.SerializeToString()


class _Cut:
    """Ends a call from outside, while it waits for its client."""

    def __init__(self) -> None:
        self.bound = asyncio.timeout(None)
        self.closing: Closing | None = None

    def __call__(self, closing: Closing) -> None:
        if self.closing is None:
            self.closing = closing
            self.bound.reschedule(asyncio.get_running_loop().time())


async def _answered(context: Context, work: Callable[[Caller], Awaitable[Result]]) -> Result:
    """Returns what `work` does for its caller; what it raises becomes the status of the call. A task border: a fault of
    ours in one call ends that call, without its text, and no other."""
    cut = _Cut()
    headers = headers_of(context.invocation_metadata())
    caller = Caller(principal.get(), headers.get("traceparent"), cut)
    try:
        async with cut.bound:
            return await work(caller)
    except ChoraleError as error:
        status = status_of(error)
    except grpc.aio.BaseError:
        raise  # its client has gone
    except Exception as error:
        if isinstance(error, TimeoutError) and cut.closing is not None:
            status = status_of(LinkClosed(cut.closing))
        else:
            log.exception("call failed")
            status = INTERNAL
    return await _abort(context, status)


async def _abort(context: Context, status: Status) -> NoReturn:
    """Sends the status. Behind messages that its client does not take it does not wait for ever: the call is reset
    then."""
    try:
        async with asyncio.timeout(CLOSE_WITHIN_S):
            await context.abort(grpc.StatusCode[status.name], status.message, status.metadata)
    except TimeoutError:
        pass
    raise asyncio.CancelledError
