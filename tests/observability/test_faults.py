"""A loop that serves everybody goes on after a fault, which is told and counted."""

import asyncio

import pytest

from orchestrator.observability.faults import FAULTS, Faults
from orchestrator.observability.loop_lag import LoopLag


class Broken(Exception):
    """Nothing that anybody would have foreseen."""


def test_guard_goes_on_and_counts(caplog: pytest.LogCaptureFixture) -> None:
    """Every fault is counted; the log says when it began, with its trace, and when it was over."""
    caplog.set_level("INFO", "chorale.faults")
    faults = Faults()
    guard = faults.guard("tick")
    for breaks in (False, True, True, True, False, False, True):
        with guard:
            if breaks:
                raise Broken
        assert guard.failed is breaks
    assert faults.counts() == {"tick": 4}
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO", "ERROR"]
    assert caplog.records[0].exc_info is not None


def test_guard_lets_a_cancelled_task_go() -> None:
    """Who is cancelled ends; that is no fault."""
    faults = Faults()

    async def forever() -> None:
        while True:
            with faults.guard("forever"):
                await asyncio.Event().wait()

    async def main() -> None:
        task = asyncio.create_task(forever())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert faults.counts() == {"forever": 0}


def test_faults_know_a_loop_before_it_fails() -> None:
    """A series that appears with the first fault has no increase to be alarmed by."""
    faults = Faults()
    faults.guard("one")
    faults.guard("one")
    assert faults.counts() == {"one": 0}


def test_loop_lag_goes_on_though_who_is_told_fails() -> None:
    """The loop is measured as long as the server runs, whatever telemetry makes of it."""
    before = FAULTS.counts().get("loop lag", 0)

    async def main() -> None:
        told = asyncio.Event()
        count = 0

        def tell(_: float) -> None:
            nonlocal count
            count += 1
            if count == 3:
                told.set()
            raise Broken

        lag = LoopLag(0.001, tell)
        lag.start()
        async with asyncio.timeout(120):
            await told.wait()
        lag.close()

    asyncio.run(main())
    assert FAULTS.counts()["loop lag"] == before + 3
