"""A small part of the load study: Locust's users against the real server on simulated accelerators."""

from dataclasses import replace

import pytest

from benchmarks.load.arrivals import Plan
from benchmarks.load.policies import POLICIES, TIERS
from benchmarks.load.study import LOCUST_PYTHON, Point, measure

pytestmark = pytest.mark.skipif(not LOCUST_PYTHON.exists(), reason="Locust is not installed: make load")


@pytest.mark.real
def test_twenty_users_are_answered_by_the_real_server() -> None:
    """Every turn of twenty sessions over real WebSockets is answered, written and spoken, and its row says so."""
    plan = Plan(0, 20, 4.0, warm_s=1.0, duration_s=5.0, drain_s=60.0, speaking=1)
    row = measure(Point(POLICIES["none"], 0.1, 40.0, plan))
    assert row["sessions"] == 20
    assert row["faults"] == 0
    written = [turn for turn in plan_turns(plan) if plan.warm_s <= turn < plan.until_s]
    assert row["turns/s"] == len(written) / plan.duration_s
    assert (row["refused"], row["unfinished"], row["other"]) == (0, 0, 0)
    assert row["spoken done"] == row["spoken"]
    assert isinstance(row["p95 ms"], float)
    assert row["p95 ms"] > 0
    assert row["silver done"] == 1


def plan_turns(plan: Plan) -> list[float]:
    """Returns when written turns are meant to begin, of users who have the study's keys."""
    return [at_s for at_s, _ in replace(plan, keys=TIERS).written()]
