"""Too many turns fail: known only with evidence, over only with patience."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.clock import ms, seconds
from orchestrator.flow.slo import DWELL_US, LEAST_TURNS, SloGuard, SloState, wilson_lower


def told(guard: SloGuard, turns: int, failed: int, from_us: int, over_us: int) -> None:
    """So many turns end, evenly, the failed ones among them."""
    for n in range(turns):
        now = from_us + n * over_us // turns
        guard.ended(n * failed // turns != (n + 1) * failed // turns, now)
        guard.tick(now)


@pytest.mark.parametrize(("turns", "failed"), [(1, 1), (10, 3), (50, 1), (600, 3)])
def test_a_little_is_no_alarm(turns: int, failed: int) -> None:
    """One failure of fifty may be chance, and of ten turns nobody can tell."""
    guard = SloGuard()
    told(guard, turns, failed, 0, seconds(50))
    assert guard.tick(seconds(50)) is SloState.NORMAL


def test_two_failures_of_a_hundred_turns_a_minute_for_a_while_are_an_alarm() -> None:
    """At 600 turns a minute and 2 % failing it is known within half a minute."""
    guard = SloGuard()
    told(guard, 300, 6, 0, seconds(30))
    assert guard.tick(seconds(30)) is SloState.DEGRADED
    assert guard.degraded


def test_what_is_older_than_a_minute_does_not_count() -> None:
    """The share is the last minute's."""
    guard = SloGuard()
    told(guard, 100, 100, 0, seconds(1))
    assert guard.share(seconds(30)) == 1
    assert guard.share(seconds(62)) == 0


def test_the_alarm_ends_after_calm_without_a_break() -> None:
    """The failures leave the minute, then the dwell; until then the server is degraded."""
    guard = SloGuard()
    told(guard, 100, 10, 0, seconds(10))
    ends = next(now for now in range(seconds(10), seconds(200), ms(500)) if not_degraded(guard, now))
    assert seconds(60) + DWELL_US <= ends <= seconds(72) + DWELL_US


def not_degraded(guard: SloGuard, now: int) -> bool:
    return guard.tick(now) is SloState.NORMAL


def test_a_failure_while_recovering_starts_the_time_anew() -> None:
    """One bad second within the dwell is not passed over."""
    guard = SloGuard()
    told(guard, 100, 10, 0, seconds(10))
    guard.tick(seconds(75))
    assert guard.state is SloState.RECOVERING
    guard.ended(True, seconds(80))
    assert guard.tick(seconds(80)) is SloState.DEGRADED
    guard.tick(seconds(150))
    assert guard.tick(seconds(150) + DWELL_US - 1) is SloState.RECOVERING
    assert guard.tick(seconds(150) + DWELL_US) is SloState.NORMAL


@given(st.integers(0, 500), st.integers(1, 500))
@example(0, 77)
def test_the_interval_lies_under_the_share(failed: int, turns: int) -> None:
    """The lower end is at most what was counted, and nears it with more turns."""
    failed = min(failed, turns)
    lower = wilson_lower(failed, turns)
    assert 0 <= lower <= failed / turns + 1e-12
    assert wilson_lower(failed * 100, turns * 100) >= lower - 1e-12
    assert failed or not lower


@given(st.lists(st.tuples(st.booleans(), st.integers(0, seconds(5))), max_size=300))
def test_the_share_is_exact_whatever_the_gaps(events: list[tuple[bool, int]]) -> None:
    """Counts by the second are those of an exact log of the last 60 seconds that have begun."""
    guard = SloGuard()
    log: list[tuple[int, bool]] = []
    now = 0
    for failed, later_us in events:
        now += later_us
        guard.ended(failed, now)
        log.append((now // seconds(1), failed))
        recent = [one for second, one in log if second > now // seconds(1) - 60]
        assert guard.share(now) == sum(recent) / len(recent)


def test_a_share_of_nothing_is_a_fault() -> None:
    """Zero or more than all turns is no service level."""
    for rate in (0, -0.1, 1.1):
        with pytest.raises(ValueError, match="share"):
            SloGuard(rate)
    assert LEAST_TURNS == 50
