"""The measurement of calls per core, small: one real call for a second."""

import numpy as np
import pytest
import uvloop
from aiortc.rtp import compute_audio_level_dbov
from av import AudioFrame
from rich.console import Console

from benchmarks.outcome import Outcome
from benchmarks.rtc import Step, measure
from benchmarks.rtc_server import level_by_numpy


@pytest.mark.real
@pytest.mark.parametrize("way", ["aiortc", "chorale"])
def test_one_call_is_processed_whole(way: str) -> None:
    """Every frame of a call that is measured comes out at the end, in both ways; nobody's share is nothing."""
    outcome = Outcome("rtc", {})
    (step,) = uvloop.run(measure(way, 1, 1, 1.0, True, Console(quiet=True), outcome))
    assert step.missing < 0.2
    assert step.cpu > 0
    assert step.clients > 0
    assert outcome.tables[f"profile of {way}"]


def test_step_holds_where_nothing_is_missing_or_late() -> None:
    """One frame in a thousand, or a loop late by 50 ms, is too many calls."""
    fine = {"calls": 3, "cpu": 0.1, "loop_cpu": 0.1, "clients": 0.1}
    assert Step(missing=0.0009, lag_p99_ms=49, **fine).holds  # type: ignore[arg-type]
    assert not Step(missing=0.001, lag_p99_ms=1, **fine).holds  # type: ignore[arg-type]
    assert not Step(missing=0, lag_p99_ms=50, **fine).holds  # type: ignore[arg-type]


@pytest.mark.parametrize("level", [0, 1, 300, 32_767])
def test_level_by_numpy_is_the_level_of_aiortc(level: int) -> None:
    """The yardstick with numpy computes what the other one does, to a decibel."""
    noise = np.random.default_rng(2).integers(-level, level + 1, (1, 1_920), dtype=np.int16)
    frame = AudioFrame.from_ndarray(noise, format="s16", layout="stereo")
    assert abs(level_by_numpy(frame) - compute_audio_level_dbov(frame)) <= 1
