"""The measurement of the hand-over, small: both ways bring what was sent, and the figures are written."""

import json
from pathlib import Path

import pytest
from typer import Typer
from typer.testing import CliRunner

from benchmarks.handover import WAYS, command, measure


@pytest.mark.parametrize("way", WAYS)
def test_every_way_hands_all_over(way: str) -> None:
    """As often as asked, each with its time; the receiver raises where something else comes."""
    took, _ = measure(WAYS[way], size=1_000, times=30)
    assert len(took) == 30
    assert min(took) > 0


def test_the_command_writes_its_figures(tmp_path: Path) -> None:
    """Both ways at each size, and the claim about the largest, whatever it comes out as on this machine."""
    app, file = Typer(), tmp_path / "handover.json"
    app.command()(command)
    CliRunner().invoke(
        app, ["--megabytes", "0.001,0.1", "--times", "20", "--rounds", "1", "--json", str(file)]
    )
    told = json.loads(file.read_text())
    assert [(row["MB"], row["way"]) for row in told["tables"]["ways"]] == [
        (size, way) for size in (0.001, 0.1) for way in WAYS
    ]
    assert "0.1 MB" in told["claims"][0]["text"]
