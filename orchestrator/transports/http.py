"""The HTTP application: routes, the page, and every error in one JSON shape."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi import Request, WebSocket
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp

from orchestrator.errors import ChoraleError, WireError
from orchestrator.transports import openai_audio, openai_http, openai_models, openai_speech, page, routes
from orchestrator.transports.border import Border
from orchestrator.transports.description import Described
from orchestrator.transports.http_coding import Coding
from orchestrator.transports.refusals import Refusal, error_response, internal_error, refuse
from orchestrator.transports.routes import Doors
from orchestrator.transports.rpc import connect
from orchestrator.transports.streamed import ClientLeft

_JSON = re.compile(r"application/([^;]+\+)?json")
_METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
_CODES = {400: "invalid_json", 404: "not_found", 405: "method_not_allowed", 413: "request_too_large"}


def make_app(doors: Doors, files: Mapping[str, page.PageFile]) -> ASGIApp:
    """Returns the whole ASGI application; `files` is the page (`page.read_page`)."""
    app = Described(title="Chorale", docs_url=None, redoc_url=None, openapi_url="/openapi.json")
    app.needs_key = doors.entrance.gate.needs_key
    for door in (routes, connect, openai_models, openai_http, openai_audio, openai_speech):
        door.register(app, doors)
    for path, file in files.items():
        app.add_route(path, _page_route(file), methods=routes.READ)
    app.add_api_websocket_route("/{path:path}", _no_such_socket)
    app.add_exception_handler(ChoraleError, _answer_refusal)
    app.add_exception_handler(HTTPException, _answer_http)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(ClientDisconnect, _answer_nobody)
    app.add_exception_handler(Exception, _answer_internal)
    return Border(Coding(app, doors.compression), doors.entrance, doors.requests, doors.proxies)


def _page_route(file: page.PageFile) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        return page.serve(file, request)

    return serve


async def _no_such_socket(websocket: WebSocket) -> None:
    await websocket.send_denial_response(
        refuse(Refusal(404, "not_found", "There is nothing at this address."))
    )


async def _answer_refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, ChoraleError)
    return refuse(error)


async def _answer_http(request: Request, error: Exception) -> Response:
    """Answers what the framework refuses: unknown addresses, wrong methods, bodies too large."""
    assert isinstance(error, HTTPException)
    message, headers = str(error.detail), error.headers
    if error.status_code == 404:
        message = "There is nothing at this address."
    elif error.status_code == 405:
        taken = ", ".join(_methods(request))
        message, headers = f"Methods that this address takes: {taken}.", {"Allow": taken}
    return error_response(error.status_code, message, _CODES.get(error.status_code), headers=headers)


def _methods(request: Request) -> list[str]:
    """Returns what an address takes, of all its routes: the framework names the first one's only."""
    return [method for method in _METHODS if _is_taken(request, method)]


def _is_taken(request: Request, method: str) -> bool:
    scope = {"type": "http", "method": method, "path": request.scope["path"], "root_path": "", "headers": []}
    return any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)


async def _answer_invalid(request: Request, error: Exception) -> Response:
    """Answers a body that is not what the route takes: the first field that is wrong, as the protocol names fields. Of
    a field that may be several things the fault is told that lies deepest: what was nearest to being right."""
    assert isinstance(error, RequestValidationError)
    faults = error.errors()
    field = faults[0]["loc"][:-1] if _is_branch(faults[0]["loc"][-1]) else faults[0]["loc"]
    fault = max((one for one in faults if one["loc"][: len(field)] == field), key=_nearness)
    param = ".".join(str(step) for step in fault["loc"] if step != "body" and not _is_branch(step))
    if fault["type"] == "json_invalid":
        return refuse(WireError("invalid_json", "The body is not valid JSON."))
    if not param:
        return refuse(WireError("invalid_type", _no_object(request.headers.get("content-type", ""))))
    return refuse(WireError("invalid_value", f"Invalid value for '{param}': {fault['msg']}.", param))


def _no_object(content_type: str) -> str:
    """Says what is wrong with a body in which there are no fields: most often it is not said to be JSON."""
    if _JSON.fullmatch(content_type.partition(";")[0].strip().lower()):
        return "The body is to be a JSON object."
    return "The body is to be a JSON object, sent with the header 'Content-Type: application/json'."


def _nearness(fault: Mapping[str, Any]) -> tuple[int, bool]:
    """Says how near to being right a value was: it is of the right type where that is not what is wrong."""
    return len(fault["loc"]), not fault["type"].endswith("_type")


def _is_branch(step: object) -> bool:
    """Says whether a step of a fault's place is no field, but one of the types that a field may be of."""
    return isinstance(step, str) and (step == "str" or "[" in step)


async def _answer_nobody(_: Request, __: Exception) -> Response:
    """Answers a request whose client left in the middle of it: for the log, which is to show no fault of ours."""
    return refuse(ClientLeft())


async def _answer_internal(_: Request, __: Exception) -> Response:
    """Answers a fault of our own. The framework raises it on, and the server logs it."""
    return internal_error()
