"""``grpc.health.v1.Health``: says what ``/readyz`` says, and tells who watches when that changes."""

import asyncio
from collections.abc import Iterable

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from orchestrator.transports.entrance import Entrance
from orchestrator.transports.routes import Readiness

MOST_WATCHERS = 32
"""At one time: they need no key, and are not to take the places of those who have one."""

_LOOK_EVERY_S = 1.0

Context = grpc.aio.ServicerContext[object, health_pb2.HealthCheckResponse]

_SERVING = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)
_NOT_SERVING = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.NOT_SERVING)
_UNKNOWN = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVICE_UNKNOWN)


class Health(health_pb2_grpc.HealthServicer):
    """Every service of this server is as ready as the server itself ("")."""

    def __init__(self, readiness: Readiness, entrance: Entrance, services: Iterable[str]) -> None:
        self._readiness = readiness
        self._entrance = entrance
        self._services = frozenset(("", *services))
        self._watchers = 0

    async def Check(
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> health_pb2.HealthCheckResponse:
        """Returns how a service is now; NOT_FOUND where there is none of that name."""
        if request.service not in self._services:
            await context.abort(grpc.StatusCode.NOT_FOUND, "There is no such service.")
        return self._now(request.service)

    async def Watch(self, request: health_pb2.HealthCheckRequest, context: Context) -> None:
        """Sends how a service is, and again whenever that has changed, until its client leaves."""
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

    def _now(self, service: str) -> health_pb2.HealthCheckResponse:
        if service not in self._services:
            return _UNKNOWN
        if self._entrance.is_closed:
            return _NOT_SERVING
        return _SERVING if all(one.is_ready for one in self._readiness.conditions()) else _NOT_SERVING
