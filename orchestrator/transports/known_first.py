"""Routes that take JSON from those alone who may come in: the framework would read and unpack it first."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from orchestrator.transports.entrance import Entrance
from orchestrator.wire.limits import check_values

Handle = Callable[[Request], Coroutine[Any, Any, Response]]


def known_first(entrance: Entrance) -> APIRouter:
    """Returns a router whose routes look at the key before anything of a body is read, and count what is in it before
    it is unpacked: half a megabyte of small values takes a tenth of a second, in which everybody else would wait."""

    class KnownFirst(APIRoute):
        def get_route_handler(self) -> Handle:
            handle = super().get_route_handler()

            async def admitted(request: Request) -> Response:
                entrance.admit(request.headers)
                check_values(await request.body())
                return await handle(request)

            return admitted

    return APIRouter(route_class=KnownFirst)
