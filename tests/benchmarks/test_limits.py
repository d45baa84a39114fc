"""The comparison of limits, small: the same requests for all, and what a limit is for can be seen."""

import json
from pathlib import Path

from typer import Typer
from typer.testing import CliRunner

from benchmarks.limits import POLICIES, command, run


def test_limits_the_same_seed_gives_the_same_figures() -> None:
    """Virtual time: nothing of this machine is in it."""
    first, second = (run(POLICIES["gradient"], 50, 10, seed=3, warm_s=5) for _ in range(2))
    assert first == second
    assert first.answered > 100


def test_limits_without_one_an_overloaded_worker_works_for_nobody() -> None:
    """At twice what it can do most replies are given up inside; with the reference formula they are not, and more are
    answered."""
    none, reference = (run(POLICIES[name], 90, 20, seed=1) for name in ("none", "reference"))
    assert none.lost > none.answered
    assert reference.lost < 0.02 * reference.answered
    assert reference.answered > 1.3 * none.answered


def test_the_command_writes_its_figures(tmp_path: Path) -> None:
    """A row for every policy at every load, and the claims."""
    app, file = Typer(), tmp_path / "limits.json"
    app.command()(command)
    CliRunner().invoke(app, ["--loads", "20,90", "--seconds", "5", "--json", str(file)])
    told = json.loads(file.read_text())
    assert [row["policy"] for row in told["tables"]["policies"]] == [*POLICIES, *POLICIES]
    assert len(told["claims"]) == 2
