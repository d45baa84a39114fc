"""Every answer that is an error, as HTTP: one JSON shape, one table of status codes."""

import math
from collections.abc import Mapping

from starlette.responses import JSONResponse

from orchestrator.errors import (
    ChoraleError,
    DeadlineExceeded,
    Overloaded,
    SessionClosed,
    Unauthorized,
    WireError,
    WorkerFailed,
)

NO_CACHE = {"Cache-Control": "no-store"}

WORKER_BACK_S = 5.0
"""What failed is started again (`workers`): after so long it is worth another try."""


class Refusal(ChoraleError):
    """A request that is answered with an HTTP status of its own."""

    def __init__(
        self,
        status: int,
        code: str | None,
        message: str,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.wire_code = code
        self.param = param
        self.headers = dict(headers or {})


class ShuttingDown(Refusal):
    """The server finishes what runs and takes nothing new."""

    def __init__(self) -> None:
        message = "The server is shutting down; connect again in a moment."
        super().__init__(503, "server_shutting_down", message, headers={"Retry-After": "5"})


def error_response(
    status: int,
    message: str,
    code: str | None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Returns ``{"error": {message, type, param, code}}``."""
    kind = (
        "server_error" if status >= 500 else "rate_limit_error" if status == 429 else "invalid_request_error"
    )
    body = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    return JSONResponse(body, status, {**NO_CACHE, **(headers or {})})


def refuse(error: ChoraleError) -> JSONResponse:
    """Returns the answer to a request that met `error`. Its text is fit for clients by contract (`errors`)."""
    match error:
        case Refusal():
            return error_response(error.status, str(error), error.wire_code, error.param, error.headers)
        case WireError():
            return error_response(400, str(error), error.wire_code, error.param)
        case Unauthorized():
            return error_response(401, str(error), error.code, headers={"WWW-Authenticate": "Bearer"})
        case SessionClosed():
            return error_response(404, str(error), error.code)
        case Overloaded():
            wait = str(max(1, math.ceil(error.retry_after_s)))
            status = 429 if error.is_tenant else 503
            return error_response(status, str(error), error.code, headers={"Retry-After": wait})
        case DeadlineExceeded():
            return error_response(504, str(error), error.code)
        case WorkerFailed():
            wait = str(round(WORKER_BACK_S))
            return error_response(503, str(error), error.code, headers={"Retry-After": wait})
        case _:
            return error_response(500, str(error), error.code)


def internal_error() -> JSONResponse:
    """Returns the answer where something unforeseen broke: no detail of it reaches the client."""
    return error_response(500, "Internal error.", "server_error")
