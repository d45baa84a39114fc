"""``grpc.health.v1.Health``: says what ``/readyz`` says, and tells who watches when that changes.

It needs no key, so nothing of it may cost others their place: a request is read from a stream as every other one
(`grpc_server`), few may be on their way at a time, and few may watch.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from typing import Any, NoReturn

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2

from orchestrator.transports.entrance import Entrance
from orchestrator.transports.routes import Readiness
from orchestrator.transports.rpc.interceptors import Context, Handler

SERVICE = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name

MOST_WATCHERS = 32
"""At one time: they need no key, and are not to take the places of those who have one."""

MOST_ASKING = 8
"""Calls at one time whose request is on its way. Who asks in good faith sends it with his call."""

ASKED_WITHIN_S = 5.0
MAX_REQUEST_BYTES = 1_024

_LOOK_EVERY_S = 1.0

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
_UNKNOWN = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN


class Health:
    """Every service of this server is as ready as the server itself ("")."""

    def __init__(self, readiness: Readiness, entrance: Entrance, services: Iterable[str]) -> None:
        self._readiness = readiness
        self._entrance = entrance
        self._services = frozenset(("", *services))
        self._asking: OrderedDict[object, asyncio.Timeout] = OrderedDict()
        self._watchers = 0
        self._closed = asyncio.Event()

    def close(self) -> None:
        """Tells who watches that nothing is served any more, and ends their calls."""
        self._closed.set()

    def handlers(self) -> grpc.GenericRpcHandler:
        """Returns the methods of the service."""
        methods: dict[str, Handler] = {
            "Check": grpc.stream_unary_rpc_method_handler(self._check, None, _written),
            "List": grpc.stream_unary_rpc_method_handler(self._list, None, _written),
            "Watch": grpc.stream_stream_rpc_method_handler(self._watch, None, _written),
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    async def _check(self, requests: AsyncIterator[bytes], context: Context) -> Any:
        """Returns how a service is now; NOT_FOUND where there is none of that name."""
        service = await self._asked(requests, context)
        if service not in self._services:
            await _refuse(context, grpc.StatusCode.NOT_FOUND, "There is no such service.")
        return health_pb2.HealthCheckResponse(status=self._now(service))

    async def _list(self, requests: AsyncIterator[bytes], context: Context) -> Any:
        """Returns how every service is now."""
        await self._asked(requests, context)
        messages: Any = health_pb2  # its types do not know lists yet
        listed = messages.HealthListResponse()
        for service in self._services:
            listed.statuses[service].status = self._now(service)
        return listed

    async def _watch(self, requests: AsyncIterator[bytes], context: Context) -> None:
        """Sends how a service is, and again whenever that has changed, until its client leaves or the server ends."""
        service = await self._asked(requests, context)
        if self._watchers >= MOST_WATCHERS:
            await _refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, "Too many watch already.")
        self._watchers += 1
        try:
            told = None
            while True:
                is_last, now = self._closed.is_set(), self._now(service)
                if now != told:
                    await context.write(health_pb2.HealthCheckResponse(status=now))
                    told = now
                if is_last:
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_EVERY_S):
                        await self._closed.wait()
        finally:
            self._watchers -= 1

    async def _asked(self, requests: AsyncIterator[bytes], context: Context) -> str:
        """Returns the service that a call asks about. One too many takes the place of who has had his longest: those
        who say nothing, or say it slowly, keep out nobody."""
        while len(self._asking) >= MOST_ASKING:
            _, oldest = self._asking.popitem(last=False)
            if not oldest.expired():
                oldest.reschedule(asyncio.get_running_loop().time())
        key = object()
        try:
            async with asyncio.timeout(ASKED_WITHIN_S) as within:
                self._asking[key] = within
                data = await anext(aiter(requests))
        except TimeoutError:
            if key not in self._asking:
                await _refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, "Too many ask.")
            await _refuse(context, grpc.StatusCode.DEADLINE_EXCEEDED, "Nothing was asked.")
        except StopAsyncIteration:
            await _refuse(context, grpc.StatusCode.INVALID_ARGUMENT, "Nothing was asked.")
        finally:
            self._asking.pop(key, None)
        if len(data) > MAX_REQUEST_BYTES:
            await _refuse(context, grpc.StatusCode.INVALID_ARGUMENT, "The request is too long.")
        try:
            return health_pb2.HealthCheckRequest.FromString(data).service
        except DecodeError:
            await _refuse(context, grpc.StatusCode.INVALID_ARGUMENT, "The message is no request.")

    def _now(self, service: str) -> int:
        if service not in self._services:
            return _UNKNOWN
        if self._entrance.is_closed or self._closed.is_set():
            return _NOT_SERVING
        return _SERVING if all(one.is_ready for one in self._readiness.conditions()) else _NOT_SERVING


def _written(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data


async def _refuse(context: Context, code: grpc.StatusCode, text: str) -> NoReturn:
    await context.abort(code, text)
    raise asyncio.CancelledError
