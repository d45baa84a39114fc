"""The measurement of the ring, small: every way runs, and the ring leaves the collector nothing to do."""

import json
from pathlib import Path

import pytest
from typer import Typer
from typer.testing import CliRunner

from benchmarks.ring import WAYS, command, measure


@pytest.mark.parametrize("way", WAYS)
def test_every_way_takes_all_writes(way: str) -> None:
    """Around the ring's end and beyond what is held, by all of them."""
    took_s, _ = measure(WAYS[way], operations=64, held_bytes=300_000)
    assert took_s > 0


def test_the_ring_leaves_nothing_to_collect() -> None:
    """Ten thousand writes and reads make no garbage that a collection would be started for."""
    _, collections = measure(WAYS["ring"], operations=10_000, held_bytes=300_000)
    assert collections == 0


def test_the_command_writes_its_figures(tmp_path: Path) -> None:
    """The figures of all ways, the ratios, and the claims, whatever they come out as on this machine."""
    app, file = Typer(), tmp_path / "ring.json"
    app.command()(command)
    CliRunner().invoke(app, ["--operations", "40", "--rounds", "1", "--json", str(file)])
    told = json.loads(file.read_text())
    assert [row["way"] for row in told["tables"]["ways"]] == list(WAYS)
    assert told["figures"]["against BytesIO"] > 0
    assert len(told["claims"]) == 2
