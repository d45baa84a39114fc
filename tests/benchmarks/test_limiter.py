"""The measurement of the limiter, small: every traffic, every way, and the claims that hold on any machine."""

import asyncio
import json
import random
from pathlib import Path

import pytest
from typer import Typer
from typer.testing import CliRunner

from benchmarks.limiter import (
    FUSED,
    LIMIT,
    LOG,
    TRAFFIC,
    TWO,
    WINDOW_US,
    at_once,
    command,
    compare,
    memory,
    worst_window,
)


@pytest.mark.parametrize("kind", TRAFFIC)
def test_limiter_is_within_one_percent_of_the_log_and_never_over(kind: str) -> None:
    """On every kind of traffic: no window over the limit, and as good as all that an exact log lets in."""
    rows = {str(row["way"]): row for row in compare(kind, minutes=12, seed=7)}
    for name in (LOG, FUSED):
        worst = rows[name]["worst window"]
        assert isinstance(worst, float)
        assert worst <= 1
    share = rows[FUSED]["of the log's"]
    assert isinstance(share, float)
    assert 0.99 <= share <= 1.01


def test_two_buckets_are_over_the_limit_on_bursts() -> None:
    """What the comparison is for: the usual approximation lets a window pass that holds more than the limit."""
    rows = {str(row["way"]): row for row in compare("bursts", minutes=20, seed=1)}
    worst = rows[TWO]["worst window"]
    assert isinstance(worst, float)
    assert worst > 1.1


def test_worst_window_is_half_open() -> None:
    """What came exactly one window ago has left."""
    assert worst_window([(0, 5), (WINDOW_US - 1, 3), (WINDOW_US, 4)]) == 8


def test_calls_at_one_instant_reserve_no_more_than_the_limit() -> None:
    """A thousand that all ask before any of them settles."""
    reserved, used = asyncio.run(at_once(1_000))
    assert 0.9 * LIMIT < reserved <= LIMIT
    assert used < reserved


def test_memory_of_an_account_stays_as_it_is() -> None:
    """After two windows of traffic what it was after one."""
    row = memory(50, random.Random(1))
    first, later = row["after 1 window"], row["after 2 windows"]
    assert isinstance(first, int)
    assert isinstance(later, int)
    assert first > 600
    assert later <= 1.1 * first


def test_the_command_writes_its_figures(tmp_path: Path) -> None:
    """Tables of traffic, memory and cost, and every claim."""
    app, file = Typer(), tmp_path / "limiter.json"
    app.command()(command)
    options = ["--minutes", "3", "--tenants", "20", "--decisions", "100", "--json", str(file)]
    result = CliRunner().invoke(app, options)
    told = json.loads(file.read_text())
    assert set(told["tables"]) == {"traffic", "memory", "cost"}
    assert [row["tenants"] for row in told["tables"]["memory"]] == [10, 20]
    assert len(told["claims"]) == 4
    assert told["figures"]["worst window"] <= 1, result.output
