"""The comparison of marks, small: the same bursts for all, and what an adaptive mark is for can be seen."""

import json
from pathlib import Path

from typer import Typer
from typer.testing import CliRunner

from benchmarks.watermark import BOUND_US, ROOM, command, play
from orchestrator.flow.watermark import AdaptiveWatermark, FixedWatermark, target_us


def test_watermark_small_bursts_are_served_whole() -> None:
    """A tenth of a second of work each: nothing is refused, and nobody waits longer than it takes."""
    played = play(FixedWatermark(ROOM), 0.1, 30)
    assert played.refused == 0
    assert played.p99_us <= 100_000
    assert played.lost == 0


def test_watermark_a_fixed_mark_that_suits_short_jobs_lets_long_ones_wait() -> None:
    """At overload the default mark has jobs of the slow phase wait beyond the bound; the adaptive one has not."""
    fixed, adaptive = (
        play(mark, 6.0, 30) for mark in (FixedWatermark(ROOM), AdaptiveWatermark(ROOM, target_us()))
    )
    assert fixed.p99_us > 2 * BOUND_US
    assert adaptive.p99_us <= BOUND_US
    assert adaptive.lost == fixed.lost == 0


def test_watermark_the_command_writes_its_figures(tmp_path: Path) -> None:
    """Three marks at two kinds of rate, and claims that hold."""
    app, file = Typer(), tmp_path / "watermark.json"
    app.command()(command)
    result = CliRunner().invoke(app, ["--seconds", "30", "--json", str(file)])
    told = json.loads(file.read_text())
    assert result.exit_code == 0, result.output
    assert [len(told["tables"][one]) for one in ("varying", "constant")] == [3, 3]
    assert all(claim["holds"] for claim in told["claims"])
