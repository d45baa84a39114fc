"""The studies of the scheduler, small: what they claim holds, and what they compare is equal but for its cost."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer import Typer
from typer.testing import CliRunner

from benchmarks import decisions, hybrid, overload, queues
from benchmarks.queue_world import Watch, jain, p95


def test_hybrid_one_burst_bears_its_claims_out() -> None:
    """Silver keeps its share where plain priority gives it nothing, and all together wait no longer."""
    told = hybrid.study(30, seed=3)
    assert [claim.text for claim in hybrid.claims(told) if not claim.holds] == []
    jobs = {sum(len(waits) for waits in one.waits_s.values()) for one in told.values()}
    assert len(jobs) == 1, "every rule serves the same jobs"
    assert told["plain priority"].both[3] == 0


def test_overload_bears_its_claims_out_and_is_the_same_each_time() -> None:
    """Twice the capacity on virtual time: nothing of this machine is in it."""
    told = overload.study(20, seed=5)
    fairness = overload.turns(20, seed=5)
    assert [claim.text for claim in overload.claims(told, fairness, 20) if not claim.holds] == []
    assert told == overload.study(20, seed=5)


def test_watch_tells_an_inversion_from_a_share() -> None:
    """A lower level may have its share and one more; what it gets beyond that while a higher one waits is counted."""
    watch, waiting = Watch(), {1: 5, 3: 5}
    assert [watch.started(3, waiting) for _ in range(3)] == [0, 1, 1]
    assert [watch.started(1, waiting) for _ in range(9)] == [0] * 9
    assert watch.started(3, {3: 5}) == 0
    assert watch.started(3, waiting) == 0, "it begins anew once the higher one had nothing that waits"


def test_figures_of_fairness_and_of_waits_are_what_they_say() -> None:
    """Jain's index from 1 / n to 1; the 95th percentile."""
    assert jain([3.0, 3.0, 3.0]) == pytest.approx(1)
    assert jain([1.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert p95([float(n) for n in range(101)]) == 95


@given(
    st.sampled_from(list(queues.LINES.values())),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2), st.booleans()), max_size=200),
)
def test_every_way_to_keep_what_waits_is_a_sorted_set(
    make: Callable[[], queues.Line], steps: list[tuple[int, int, bool]]
) -> None:
    """Add, remove, first and scan agree with sorting, whatever the way; no key comes twice, as in the scheduler."""
    line, model = make(), list[queues.Key]()
    for n, (number, kind, scans) in enumerate(steps):
        if kind == 0 and model:
            line.remove(model.pop(number % len(model)))
        else:
            key = (kind, number / 7, n)
            model.append(key)
            line.add(key, "x")
        if scans:
            assert line.scan(8) == sorted(model)[:8]
        if model:
            assert line.first() == min(model)


@pytest.mark.parametrize(
    ("command", "arguments", "table"),
    [
        (hybrid.command, ["--seconds", "30"], "rules"),
        (overload.command, ["--seconds", "15"], "tiers"),
        (queues.command, ["--largest", "100", "--rounds", "50"], "ways"),
        (decisions.command, ["--largest", "1000", "--rounds", "50"], "sizes"),
    ],
)
def test_the_commands_write_their_figures(
    command: Callable[..., None], arguments: list[str], table: str, tmp_path: Path
) -> None:
    """Rows and claims, whether they hold on this machine or not."""
    app, file = Typer(), tmp_path / "told.json"
    app.command()(command)
    CliRunner().invoke(app, [*arguments, "--json", str(file)])
    told = json.loads(file.read_text())
    assert told["tables"][table]
    assert told["claims"]
