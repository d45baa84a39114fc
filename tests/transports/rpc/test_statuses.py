"""Errors as statuses of calls."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import (
    ChoraleError,
    DeadlineExceeded,
    ModelMissing,
    Overloaded,
    SessionClosed,
    Unauthorized,
    WireError,
    WorkerFailed,
)
from orchestrator.sessions import links
from orchestrator.transports.outbox import FELL_BEHIND, TOO_MANY_TOLD, Closing
from orchestrator.transports.refusals import Refusal, ShuttingDown
from orchestrator.transports.rpc.door import SHUTTING_DOWN
from orchestrator.transports.rpc.statuses import OK, LinkClosed, http_status, status_of


@pytest.mark.parametrize(
    ("error", "name", "metadata"),
    [
        (
            WireError("invalid_value", "no", "session.voice"),
            "INVALID_ARGUMENT",
            {"chorale-code": "invalid_value", "chorale-param": "session.voice"},
        ),
        (Unauthorized("who?"), "UNAUTHENTICATED", {"chorale-code": "invalid_api_key"}),
        (SessionClosed("gone"), "NOT_FOUND", {"chorale-code": "session_expired"}),
        (
            Overloaded("full", 1.5),
            "RESOURCE_EXHAUSTED",
            {"chorale-code": "rate_limit_exceeded", "retry-after-ms": "1500"},
        ),
        (DeadlineExceeded("late"), "DEADLINE_EXCEEDED", {"chorale-code": "deadline_exceeded"}),
        (
            WorkerFailed("asr", "broke"),
            "UNAVAILABLE",
            {"chorale-code": "worker_failed", "retry-after-ms": "5000"},
        ),
        (
            Refusal(403, "origin_not_allowed", "no"),
            "PERMISSION_DENIED",
            {"chorale-code": "origin_not_allowed"},
        ),
        (
            Refusal(429, "too_many_attempts", "no", headers={"Retry-After": "7"}),
            "RESOURCE_EXHAUSTED",
            {"chorale-code": "too_many_attempts", "retry-after-ms": "7000"},
        ),
        (Refusal(421, "forwarded", "no"), "FAILED_PRECONDITION", {"chorale-code": "forwarded"}),
        (
            ShuttingDown(),
            "UNAVAILABLE",
            {"chorale-code": "server_shutting_down", "retry-after-ms": "5000"},
        ),
        (ModelMissing("asr", "x", "y"), "INTERNAL", {"chorale-code": "model_missing"}),
        (LinkClosed(FELL_BEHIND), "UNAVAILABLE", {}),
        (LinkClosed(SHUTTING_DOWN), "UNAVAILABLE", {}),
        (LinkClosed(Closing(1001, links.SHUTTING_DOWN)), "UNAVAILABLE", {}),
        (LinkClosed(TOO_MANY_TOLD), "RESOURCE_EXHAUSTED", {}),
        (LinkClosed(Closing(1011, "broke")), "INTERNAL", {}),
    ],
)
def test_status_says_what_a_client_can_do_about_an_error(
    error: ChoraleError, name: str, metadata: dict[str, str]
) -> None:
    """Each kind has its code; the protocol's own code, the field and the time to come back go as metadata."""
    status = status_of(error)
    assert (status.name, status.message, dict(status.metadata)) == (name, str(error), metadata)


@pytest.mark.parametrize("closing", [Closing(1000, "over"), Closing(1001, "The session has ended.")])
def test_end_of_a_session_is_no_error(closing: Closing) -> None:
    """A stream whose session is over ends like any that is complete: coming back would not help."""
    assert status_of(LinkClosed(closing)).name == OK


@given(st.text(), st.text(), st.text())
def test_status_can_be_sent_whatever_a_client_wrote(code: str, message: str, param: str) -> None:
    """Metadata is printable ASCII of bounded length, the text is Unicode, whatever they quote."""
    status = status_of(WireError(code, message, param))
    status.message.encode()
    for _, value in status.metadata:
        assert value.isascii()
        assert value.isprintable()
        assert len(value) <= 256
        assert value == value.strip()


@pytest.mark.parametrize(
    ("name", "status"),
    [(OK, 200), ("NOT_FOUND", 404), ("RESOURCE_EXHAUSTED", 429), ("CANCELLED", 499), ("DATA_LOSS", 500)],
)
def test_http_status_stands_for_a_code(name: str, status: int) -> None:
    """Requests of both ports are counted by one kind of status; what is unknown is a fault of the server."""
    assert http_status(name) == status
