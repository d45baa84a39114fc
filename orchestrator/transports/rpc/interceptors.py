"""What every call of the gRPC server passes: it is counted and logged, and its key is looked at."""

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, aclosing, contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import unquote

import grpc
from starlette.datastructures import Headers

from orchestrator.errors import ChoraleError, Overloaded
from orchestrator.flow.tenants import Places
from orchestrator.observability import traceparent
from orchestrator.observability.instrument import Call, RequestRecord, Requests
from orchestrator.transports.auth import Principal
from orchestrator.transports.entrance import Entrance
from orchestrator.transports.proxies import Caller, Proxies, calling
from orchestrator.transports.rpc.door import RpcDoor, principal
from orchestrator.transports.rpc.statuses import OK, http_status, status_of

log = logging.getLogger(__name__)

HEALTH = "/grpc.health.v1.Health/"
LINKS = frozenset({"/chorale.v1.Sessions/Converse", "/chorale.v1.Sessions/Watch"})

MOST_CALLS = 64
"""That a tenant may have at one time beside its links."""

MOST_PAIRS = 128
"""Of metadata. A client that does not take up the settings of the connection may send half a million in one request,
each of a byte, and without a key: they are counted once, and read no more."""

_RETRY_AFTER_S = 1.0
_ROUNDED_UP_S = 0.05
"""A client tells its deadline rounded up, and cancels at the true one: what comes so close to the end is the end."""

# gRPC's own types leave open what a behaviour takes and gives: it depends on the method.
Context = grpc.aio.ServicerContext[Any, Any]
Behaviour = Callable[[Any, Context], Any]
if TYPE_CHECKING:
    Handler: TypeAlias = grpc.RpcMethodHandler[Any, Any]
else:
    Handler = grpc.RpcMethodHandler  # generic to type checkers only
Continuation = Callable[[grpc.HandlerCallDetails], Awaitable[Handler]]


def headers_of(metadata: Iterable[tuple[str, str | bytes]] | None) -> Mapping[str, str]:
    """Returns metadata as headers: lower-case names to texts. Of several of a name the last one counts."""
    return {name.lower(): value for name, value in metadata or () if isinstance(value, str)}


def replaced(handler: Handler, behaviour: Behaviour) -> Handler:
    """Returns a handler of the same kind that does something else. A behaviour of streams writes to its context."""
    if handler.request_streaming:
        make = (
            grpc.stream_stream_rpc_method_handler
            if handler.response_streaming
            else grpc.stream_unary_rpc_method_handler
        )
    else:
        make = (
            grpc.unary_stream_rpc_method_handler
            if handler.response_streaming
            else grpc.unary_unary_rpc_method_handler
        )
    return make(behaviour, handler.request_deserializer, handler.response_serializer)


def behaviour_of(handler: Handler) -> Behaviour:
    """Returns what a handler does."""
    found: Any = handler.stream_stream or handler.stream_unary or handler.unary_stream or handler.unary_unary
    assert found is not None
    return cast(Behaviour, found)  # the stubs know threaded servers' behaviours only


async def carried_out(behaviour: Behaviour, request: object, context: Context) -> Any:
    """Does what a handler does; messages that it gives one by one are sent as they come."""
    produced = behaviour(request, context)
    if not inspect.isasyncgen(produced):
        return await produced
    async with aclosing(produced) as messages:
        async for message in messages:
            await context.write(message)
    return None


def address_of(peer: str) -> str:
    """Returns the address of gRPC's name for a peer (``ipv4:127.0.0.1:5000``, ``ipv6:%5B::1%5D:5000``); "" where it has
    none."""
    kind, _, rest = unquote(peer).partition(":")
    if kind not in ("ipv4", "ipv6"):
        return ""
    return rest.rpartition(":")[0].strip("[]")


def caller_of(context: Context, headers: Mapping[str, str], proxies: Proxies) -> Caller:
    """Returns who calls: the peer, or whom a known proxy names."""
    raw = [(name.encode(), value.encode("ascii", "replace")) for name, value in headers.items()]
    return proxies.caller_of(address_of(context.peer()), Headers(raw=raw))


class Authenticating(grpc.aio.ServerInterceptor):
    """Lets calls pass that bring a valid key, and says inside who calls (`proxies.caller`). How healthy the server is
    may be asked without a key."""

    def __init__(self, entrance: Entrance, proxies: Proxies) -> None:
        self._entrance = entrance
        self._proxies = proxies

    async def intercept_service(  # type: ignore[override]  # the stubs forget that there may be no handler
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> Handler | None:
        handler: Handler | None = await continuation(handler_call_details)
        if handler is None or handler_call_details.method.startswith(HEALTH):
            return handler
        behaviour = behaviour_of(handler)

        async def admitted(request: object, context: Context) -> Any:
            headers = headers_of(handler_call_details.invocation_metadata)
            with calling(caller_of(context, headers, self._proxies)):
                try:
                    principal.set(self._admit(headers))
                except ChoraleError as error:
                    status = status_of(error)
                else:
                    return await carried_out(behaviour, request, context)
            return await context.abort(grpc.StatusCode[status.name], status.message, status.metadata)

        return replaced(handler, admitted)

    def _admit(self, headers: Mapping[str, str]) -> Principal:
        """Returns who calls. Raises `ChoraleError`. The name that the server is called by does not matter: no page can
        speak gRPC, whatever name it was given."""
        self._entrance.check_host({"host": "localhost"})
        return self._entrance.admit(headers)


class Limiting(grpc.aio.ServerInterceptor):
    """Holds back who asks for more than there is room for, before anything of a request is read: of one tenant more
    than `MOST_CALLS` calls at one time beside its links. Those have bounds of their own, and so has what flows inside
    of them (`service`)."""

    def __init__(self, door: RpcDoor, entrance: Entrance) -> None:
        self._door = door
        self._entrance = entrance
        self._running = Places()

    async def intercept_service(  # type: ignore[override]
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> Handler | None:
        handler: Handler | None = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or method in LINKS or method.startswith(HEALTH):
            return handler
        behaviour = behaviour_of(handler)

        async def limited(request: object, context: Context) -> Any:
            tenant = principal.get().tenant
            try:
                with ExitStack() as place:
                    with self._entrance.telling(tenant, "request", self._door.count_refused):
                        place.enter_context(self._place(tenant))
                    return await carried_out(behaviour, request, context)
            except Overloaded as error:
                status = status_of(error)
            return await context.abort(grpc.StatusCode[status.name], status.message, status.metadata)

        return replaced(handler, limited)

    @contextmanager
    def _place(self, tenant: str) -> Iterator[None]:
        if not self._running.take(tenant, MOST_CALLS):
            raise Overloaded(f"{MOST_CALLS} calls of this tenant run already", _RETRY_AFTER_S, is_tenant=True)
        try:
            yield
        finally:
            self._running.give_back(tenant)


class Telling(grpc.aio.ServerInterceptor):
    """Tells telemetry of every call, as the HTTP border does of its requests, and writes a line of log: never of the
    metadata, which holds keys, nor of what was said."""

    def __init__(self, requests: Requests, scheme: str, proxies: Proxies) -> None:
        self._requests = requests
        self._scheme = scheme
        self._proxies = proxies

    async def intercept_service(  # type: ignore[override]
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> Handler | None:
        metadata, method = handler_call_details.invocation_metadata, handler_call_details.method
        too_much = metadata is not None and len(metadata) > MOST_PAIRS
        headers = {} if too_much else headers_of(metadata)
        handler: Handler | None = await continuation(handler_call_details)
        if handler is None:
            return None
        behaviour = _refuse_metadata if too_much else behaviour_of(handler)

        async def told(request: object, context: Context) -> Any:
            with self._told(method, context, headers):
                return await carried_out(behaviour, request, context)

        return replaced(handler, told)

    @contextmanager
    def _told(self, method: str, context: Context, headers: Mapping[str, str]) -> Iterator[None]:
        began_s, status = time.monotonic(), OK
        self._requests.began("POST", self._scheme)
        try:
            yield
        except asyncio.CancelledError:
            left_s = context.time_remaining()
            status = "CANCELLED" if left_s is None or left_s > _ROUNDED_UP_S else "DEADLINE_EXCEEDED"
            raise
        except BaseException:
            code = context.code()
            status = code.name if isinstance(code, grpc.StatusCode) and code.name != OK else "INTERNAL"
            raise
        finally:
            duration_s = time.monotonic() - began_s
            http, is_quiet = http_status(status), method.startswith(HEALTH)
            self._requests.request(
                RequestRecord(
                    method="POST",
                    route=method,
                    status=http,
                    duration_s=duration_s,
                    scheme=self._scheme,
                    version="2",
                    error=status if http >= 500 else "",
                    call=None if is_quiet or status == "UNAUTHENTICATED" else _call(method, status, headers),
                )
            )
            log.log(
                logging.DEBUG if is_quiet else logging.INFO,
                "%s",
                method,
                extra={
                    "status": status,
                    "ms": round(duration_s * 1_000, 1),
                    "client": caller_of(context, headers, self._proxies).address or context.peer(),
                },
            )


async def _refuse_metadata(request: object, context: Context) -> None:
    await context.abort(
        grpc.StatusCode.RESOURCE_EXHAUSTED, f"At most {MOST_PAIRS} pairs of metadata are taken."
    )


def _call(method: str, status: str, headers: Mapping[str, str]) -> Call:
    """Returns what is told as a span, of those who have a key: of the metadata nothing but whose child it is."""
    remote = traceparent.parse(headers.get("traceparent"))
    return Call(system="grpc", method=method.removeprefix("/"), remote=remote, status=status)
