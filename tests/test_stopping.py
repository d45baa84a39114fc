"""How a server ends though nothing that it waits for does: within a bound, and with everything asked."""

import asyncio

import pytest

from orchestrator import app
from orchestrator.app import Application
from tests.test_app import readiness, running


def test_application_stops_within_its_bounds_though_nobody_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Links that stay, calls that hang, workers that hold on, a disk and a collector that do not answer: each is waited
    for a while, those at the end of one stretch side by side, and none for ever."""
    begun: list[str] = []
    given_up: list[str] = []

    async def hang(name: str) -> None:
        begun.append(name)
        try:
            await asyncio.Event().wait()
        finally:
            given_up.append(f"{name} of {len(begun)}")

    for bound in ("_SESSIONS_END_WITHIN_S", "_PARTS_END_WITHIN_S", "_RECORDS_END_WITHIN_S"):
        monkeypatch.setattr(app, bound, 0.2)

    async def test(application: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        assert application._telemetry is not None
        monkeypatch.setattr(application._registry, "close", lambda: hang("sessions"))
        monkeypatch.setattr(application._calls, "close", lambda: hang("calls"))
        monkeypatch.setattr(application._links, "wait_empty", lambda: hang("links"))
        monkeypatch.setattr(application._pool, "stop", lambda: hang("workers"))
        monkeypatch.setattr(application._telemetry, "stop", lambda: hang("telemetry"))

    running(test)
    assert begun == ["sessions", "calls", "links", "workers", "telemetry"]
    assert sorted(given_up) == ["calls of 4", "links of 4", "sessions of 1", "telemetry of 5", "workers of 4"]


def test_the_bounds_of_stopping_are_those_that_operators_are_told() -> None:
    """20 s more than `drain_s`, as docs/operations.md says, with a second to spare."""
    told = 1 + app._SESSIONS_END_WITHIN_S + app._PARTS_END_WITHIN_S + 1 + app._RECORDS_END_WITHIN_S
    assert told <= 19
