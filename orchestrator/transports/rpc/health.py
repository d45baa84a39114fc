"""``grpc.health.v1.Health``: says what ``/readyz`` says, and tells who watches when that changes."""

import asyncio
from collections.abc import AsyncIterator, Iterable

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2

from orchestrator.errors import ChoraleError, Overloaded, WireError
from orchestrator.transports.entrance import Entrance
from orchestrator.transports.routes import Readiness
from orchestrator.transports.rpc.interceptors import Handler
from orchestrator.transports.rpc.service import only_one
from orchestrator.transports.rpc.statuses import status_of

MOST_WATCHERS = 32
"""At one time: they need no key, and are not to take the places of those who have one."""

MOST_ASKING = 24
"""Calls whose question has not come yet, for the same reason: together with the watchers less than the calls that may
run beside the links (`grpc_server`)."""

_LOOK_EVERY_S = 1.0
_RETRY_AFTER_S = 1.0

Context = grpc.aio.ServicerContext[object, health_pb2.HealthCheckResponse]

_SERVING = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)
_NOT_SERVING = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.NOT_SERVING)
_UNKNOWN = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVICE_UNKNOWN)


class Health:
    """Every service of this server is as ready as the server itself (""). Questions are read from a stream, which is
    the same on the wire: to gRPC itself a call may run for ever before its question has come."""

    def __init__(self, readiness: Readiness, entrance: Entrance, services: Iterable[str]) -> None:
        self._readiness = readiness
        self._entrance = entrance
        self._services = frozenset(("", *services))
        self._watchers = 0
        self._asking = 0

    def handlers(self) -> grpc.GenericRpcHandler:
        """Returns the methods of the service, as a server takes them."""
        written = health_pb2.HealthCheckResponse.SerializeToString
        name = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
        methods: dict[str, Handler] = {
            "Check": grpc.stream_unary_rpc_method_handler(self._check, None, written),
            "Watch": grpc.stream_stream_rpc_method_handler(self._watch, None, written),
        }
        return grpc.method_handlers_generic_handler(name, methods)

    async def _check(
        self, requests: AsyncIterator[bytes], context: Context
    ) -> health_pb2.HealthCheckResponse:
        """Returns how a service is now; NOT_FOUND where there is none of that name."""
        request = await self._question(requests, context)
        if request.service not in self._services:
            await context.abort(grpc.StatusCode.NOT_FOUND, "There is no such service.")
        return self._now(request.service)

    async def _watch(self, requests: AsyncIterator[bytes], context: Context) -> None:
        """Sends how a service is, and again whenever that has changed, until its client leaves."""
        request = await self._question(requests, context)
        if self._watchers >= MOST_WATCHERS:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "Too many watch already.")
        self._watchers += 1
        try:
            told = None
            while True:
                now = self._now(request.service)
                if now is not told:
                    await context.write(now)
                    told = now
                await asyncio.sleep(_LOOK_EVERY_S)
        finally:
            self._watchers -= 1

    async def _question(
        self, requests: AsyncIterator[bytes], context: Context
    ) -> health_pb2.HealthCheckRequest:
        """Returns what is asked. Ends the call where that is nothing, does not come, or too many are still to ask."""
        try:
            return await self._asked(requests)
        except ChoraleError as error:
            status = status_of(error)
        return await context.abort(grpc.StatusCode[status.name], status.message, status.metadata)

    async def _asked(self, requests: AsyncIterator[bytes]) -> health_pb2.HealthCheckRequest:
        """Raises `Overloaded`, `WireError`, `DeadlineExceeded`."""
        if self._asking >= MOST_ASKING:
            raise Overloaded("too many ask how healthy the server is", _RETRY_AFTER_S)
        self._asking += 1
        try:
            return health_pb2.HealthCheckRequest.FromString(await only_one(aiter(requests)))
        except DecodeError:
            raise WireError(
                "invalid_message", "The message is no grpc.health.v1.HealthCheckRequest."
            ) from None
        finally:
            self._asking -= 1

    def _now(self, service: str) -> health_pb2.HealthCheckResponse:
        if service not in self._services:
            return _UNKNOWN
        if self._entrance.is_closed:
            return _NOT_SERVING
        return _SERVING if all(one.is_ready for one in self._readiness.conditions()) else _NOT_SERVING
