"""What every call of the gRPC server passes: it is counted and logged, and its key is looked at."""

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import grpc

from orchestrator.errors import ChoraleError
from orchestrator.observability.instrument import RequestRecord, Requests
from orchestrator.transports.entrance import Entrance
from orchestrator.transports.rpc.door import principal
from orchestrator.transports.rpc.statuses import OK, http_status, status_of

log = logging.getLogger(__name__)

HEALTH = "/grpc.health.v1.Health/"

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


class Authenticating(grpc.aio.ServerInterceptor):
    """Lets calls pass that bring a valid key. How healthy the server is may be asked without one."""

    def __init__(self, entrance: Entrance) -> None:
        self._entrance = entrance

    async def intercept_service(  # type: ignore[override]  # the stubs forget that there may be no handler
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> Handler | None:
        handler: Handler | None = await continuation(handler_call_details)
        if handler is None or handler_call_details.method.startswith(HEALTH):
            return handler
        try:
            principal.set(self._entrance.admit(headers_of(handler_call_details.invocation_metadata)))
        except ChoraleError as error:
            status = status_of(error)
        else:
            return handler

        async def refuse(_: object, context: Context) -> None:
            await context.abort(grpc.StatusCode[status.name], status.message, status.metadata)

        return replaced(handler, refuse)


class Telling(grpc.aio.ServerInterceptor):
    """Tells telemetry of every call, as the HTTP border does of its requests, and writes a line of log: never of the
    metadata, which holds keys, nor of what was said."""

    def __init__(self, requests: Requests, scheme: str) -> None:
        self._requests = requests
        self._scheme = scheme

    async def intercept_service(  # type: ignore[override]
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> Handler | None:
        handler: Handler | None = await continuation(handler_call_details)
        if handler is None:
            return None
        behaviour, method = behaviour_of(handler), handler_call_details.method

        async def told(request: object, context: Context) -> Any:
            with self._told(method, context):
                produced = behaviour(request, context)
                if not inspect.isasyncgen(produced):
                    return await produced
                async with aclosing(produced) as messages:
                    async for message in messages:
                        await context.write(message)
                return None

        return replaced(handler, told)

    @contextmanager
    def _told(self, method: str, context: Context) -> Iterator[None]:
        began_s, status = time.monotonic(), OK
        self._requests.began("POST", self._scheme)
        try:
            yield
        except asyncio.CancelledError:
            status = "CANCELLED"
            raise
        except BaseException:
            code = context.code()
            status = code.name if isinstance(code, grpc.StatusCode) and code.name != OK else "INTERNAL"
            raise
        finally:
            duration_s = time.monotonic() - began_s
            http = http_status(status)
            self._requests.request(
                RequestRecord(
                    method="POST",
                    route=method,
                    status=http,
                    duration_s=duration_s,
                    scheme=self._scheme,
                    version="2",
                    error=status if http >= 500 else "",
                )
            )
            log.log(
                logging.DEBUG if method.startswith(HEALTH) else logging.INFO,
                "%s",
                method,
                extra={"status": status, "ms": round(duration_s * 1_000, 1), "client": context.peer()},
            )
