"""The loop's lateness, on virtual time: what holds it up is told, exactly (F-L2)."""

import asyncio

import pytest

from orchestrator.observability.loop_lag import KEPT, LATELY, LoopLag
from tests.virtual_time import run


def test_loop_lag_of_an_idle_loop_is_nothing() -> None:
    """Woken in time, twenty times a second."""

    async def test() -> None:
        lag = LoopLag()
        lag.start()
        await asyncio.sleep(10.01)
        lag.close()
        seen = lag.statistics()
        assert seen.samples == 200
        assert (seen.p50_ms, seen.p99_ms, seen.worst_ms) == pytest.approx((0, 0, 0), abs=1e-6)

    run(test())


def test_loop_lag_tells_what_held_the_loop_up() -> None:
    """One turn of 300 ms in ten seconds is the worst, and no more than the worst; the next sample is in time again."""

    class Late(LoopLag):
        """Its third sample finds the loop 300 ms late."""

        def _wake(self, loop: asyncio.AbstractEventLoop, due_s: float) -> None:
            super()._wake(loop, due_s - 0.3 if self._samples == 2 else due_s)

    async def test() -> None:
        lag = Late()
        lag.start()
        await asyncio.sleep(10.01)
        lag.close()
        seen = lag.statistics()
        assert seen.worst_ms == pytest.approx(300, abs=1e-3)
        assert seen.p99_ms == pytest.approx(0, abs=1e-3)
        lag.clear()
        assert lag.statistics().worst_ms == 0
        assert lag.statistics().worst_ever_ms == pytest.approx(300, abs=1e-3)

    run(test())


def test_loop_lag_of_a_blocked_loop_is_at_least_the_block() -> None:
    """On a real loop: work that holds it for 100 ms shows as nearly all of that."""

    async def test() -> None:
        lag = LoopLag(0.01)
        lag.start()
        await asyncio.sleep(0.05)
        loop = asyncio.get_running_loop()
        stop_s = loop.time() + 0.1
        while loop.time() < stop_s:
            pass
        await asyncio.sleep(0.05)
        lag.close()
        assert lag.statistics().worst_ms >= 80

    asyncio.run(test())


def test_loop_lag_keeps_a_minute() -> None:
    """However long it runs, its memory is bounded, and closing ends it."""

    async def test() -> None:
        lag = LoopLag()
        lag.start()
        lag.start()
        await asyncio.sleep(3_600)
        lag.close()
        lag.close()
        assert len(lag._lags_s) == KEPT
        samples = lag.statistics().samples
        await asyncio.sleep(60)
        assert lag.statistics().samples == samples

    run(test())


def test_loop_lag_tells_every_sample() -> None:
    """Whoever counts them misses none, and hears seconds."""
    told: list[float] = []

    async def test() -> None:
        lag = LoopLag(tell=told.append)
        lag.start()
        await asyncio.sleep(1.01)
        lag.close()

    run(test())
    assert told == pytest.approx([0.0] * 20, abs=1e-6)


def test_usual_lateness_is_of_the_last_two_seconds_and_no_single_stall() -> None:
    """Unknown before; a long stall among samples in time makes no difference, a loop that is always late does."""

    async def main() -> None:
        lag = LoopLag(period_s=0.001)
        assert lag.usual_s() == 0
        lag._lags_s.extend([0.0] * LATELY)
        lag._lags_s.append(3.0)
        assert lag.usual_s() == 0
        lag._lags_s.extend([0.07] * (LATELY // 2 + 1))
        assert lag.usual_s() == 0.07

    asyncio.run(main())
