"""Every answer of an RPC that is an error: one table of status codes for gRPC, gRPC-Web and Connect (a heart)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from orchestrator.errors import (
    ChoraleError,
    DeadlineExceeded,
    Overloaded,
    SessionClosed,
    Unauthorized,
    WireError,
    WorkerFailed,
)
from orchestrator.sessions.links import SHUTTING_DOWN
from orchestrator.transports.entrance import KEY_WITHDRAWN
from orchestrator.transports.outbox import TOO_MANY_TOLD, Closing
from orchestrator.transports.pace import TOO_FAST
from orchestrator.transports.refusals import WORKER_BACK_S, Refusal

OK = "OK"

_OF_HTTP = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "RESOURCE_EXHAUSTED",
    429: "RESOURCE_EXHAUSTED",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}

_TO_HTTP = {
    OK: 200,
    "CANCELLED": 499,
    "DEADLINE_EXCEEDED": 504,
    "FAILED_PRECONDITION": 400,
    "INTERNAL": 500,
    "INVALID_ARGUMENT": 400,
    "NOT_FOUND": 404,
    "PERMISSION_DENIED": 403,
    "RESOURCE_EXHAUSTED": 429,
    "UNAUTHENTICATED": 401,
    "UNAVAILABLE": 503,
    "UNIMPLEMENTED": 501,
}
"""As the Connect protocol has it."""

_OF_CLOSE_CODE = {1000: OK, 1001: OK, 1008: "PERMISSION_DENIED", 1012: "UNAVAILABLE", 1013: "UNAVAILABLE"}
"""1001 is the session's own end: nothing of it follows, and coming back would not help. Where it ends with its server
(`SHUTTING_DOWN`) its client was not done, and may begin anew."""


class LinkClosed(ChoraleError):
    """The server has ended a stream whose session may go on."""

    code: ClassVar[str] = "link_closed"

    def __init__(self, closing: Closing) -> None:
        super().__init__(closing.reason)
        self.closing = closing


@dataclass(frozen=True, slots=True)
class Status:
    """How a call ends: the name of a gRPC status code, a text for people, and metadata (ASCII) for programs."""

    name: str
    message: str
    metadata: tuple[tuple[str, str], ...] = ()


INTERNAL = Status("INTERNAL", "Internal error.")
"""Where something unforeseen broke: no detail of it reaches the client."""


def status_of(error: ChoraleError) -> Status:
    """Returns how a call ends that met `error`, whose text is fit for clients by contract (`errors`)."""
    code: str | None = error.code
    param: str | None = None
    wait_ms: int | None = None
    match error:
        case LinkClosed():
            name, code = _OF_CLOSE_CODE.get(error.closing.code, "INTERNAL"), None
            if error.closing in (TOO_MANY_TOLD, TOO_FAST):
                name = "RESOURCE_EXHAUSTED"
            elif error.closing.reason == SHUTTING_DOWN:
                name = "UNAVAILABLE"
            elif error.closing.reason == KEY_WITHDRAWN:
                name = "UNAUTHENTICATED"
        case Refusal():
            name = _OF_HTTP.get(error.status, "INTERNAL" if error.status >= 500 else "FAILED_PRECONDITION")
            code, param = error.wire_code, error.param
            wait_ms = _seconds_as_ms(error.headers)
        case WireError():
            name, code, param = "INVALID_ARGUMENT", error.wire_code, error.param
        case Unauthorized():
            name = "UNAUTHENTICATED"
        case SessionClosed():
            name = "NOT_FOUND"
        case Overloaded():
            name, wait_ms = "RESOURCE_EXHAUSTED", max(1, math.ceil(error.retry_after_s * 1_000))
        case DeadlineExceeded():
            name = "DEADLINE_EXCEEDED"
        case WorkerFailed():
            name, wait_ms = "UNAVAILABLE", round(WORKER_BACK_S * 1_000)
        case _:
            name = "INTERNAL"
    told = {"chorale-code": code, "chorale-param": param}
    metadata = [(key, _ascii(value)) for key, value in told.items() if value is not None]
    if wait_ms is not None:
        metadata.append(("retry-after-ms", str(wait_ms)))
    return Status(name, _unicode(str(error)), tuple(metadata))


def http_status(name: str) -> int:
    """Returns the HTTP status that stands for a status code, for those who count requests."""
    return _TO_HTTP.get(name, 500)


def _seconds_as_ms(headers: Mapping[str, str]) -> int | None:
    seconds = headers.get("Retry-After", "")
    return int(seconds) * 1_000 if seconds.isascii() and seconds.isdigit() else None


def _ascii(text: str) -> str:
    """Returns a text as metadata may carry it: what a client wrote may be part of a field's path."""
    return "".join(character if " " <= character <= "~" else "?" for character in text[:256]).strip()


def _unicode(text: str) -> str:
    """Returns a text without halves of surrogate pairs: JSON can write them, UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")
