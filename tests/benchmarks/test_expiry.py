"""The measurement of deadlines, small: every job ends at its own, and none before; how late is the machine's affair."""

import asyncio
import json
from pathlib import Path

from typer import Typer
from typer.testing import CliRunner

from benchmarks.expiry import command, measure


def test_expiry_no_job_ends_early_and_all_do() -> None:
    """Half of them run and half wait, with other work beside them."""
    late = asyncio.run(measure(40, 0.3, 100, seed=2))
    assert (len(late["running"]), len(late["waiting"])) == (20, 20)
    assert min(late["running"] + late["waiting"]) >= 0


def test_expiry_the_command_writes_its_figures(tmp_path: Path) -> None:
    """Both places of a job, and three claims; whether the last two hold depends on the machine."""
    app, file = Typer(), tmp_path / "expiry.json"
    app.command()(command)
    CliRunner().invoke(app, ["--jobs", "20", "--seconds", "1", "--json", str(file)])
    told = json.loads(file.read_text())
    assert [row["job was"] for row in told["tables"]["late"]] == ["waiting", "running"]
    assert told["claims"][0]["holds"]
    assert len(told["claims"]) == 3
