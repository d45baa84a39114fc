"""What is left out: in one order, at once when it must be, and not back before things have calmed down."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.clock import ms, seconds
from orchestrator.flow.shedding import (
    DEGRADED_LIMITS,
    DEGRADED_REPLY_TOKENS,
    DWELL_US,
    ENTER,
    FULL_SERVICE,
    LEAVE_BELOW,
    Service,
    Sheddable,
    Shedding,
)


def under(pressure: float, for_us: int = seconds(10), degraded: bool = False) -> Shedding:
    """Returns what has had this pressure for so long, looked at every 100 ms."""
    shedding = Shedding()
    for now in range(0, for_us, ms(100)):
        shedding.observe(pressure, degraded, now)
    return shedding


def test_full_service_leaves_nothing_out() -> None:
    """A server with little to do serves everything."""
    assert all(FULL_SERVICE.allows(what) for what in Sheddable)
    assert under(0.4).service == FULL_SERVICE


def test_what_is_left_out_follows_the_order() -> None:
    """Drafts first, then speech, then silver's turns, then new sessions, each from its own threshold."""
    for threshold, what in zip(ENTER, Sheddable, strict=True):
        left_out = [one for one in Sheddable if not under(threshold + 0.01).service.allows(one)]
        assert left_out == [one for one in Sheddable if one <= what]


def test_a_rush_is_met_within_its_smoothing() -> None:
    """From nothing to everything full: new sessions are left out within two seconds, not after four dwells."""
    shedding = under(0.0)
    now = seconds(10)
    while shedding.service.allows(Sheddable.SESSION):
        shedding.observe(1.0, False, now)
        now += ms(100)
    assert now - seconds(10) <= seconds(2)


def test_levels_are_left_one_at_a_time() -> None:
    """After the rush each level lasts its dwell, so that what was left out does not come back all at once."""
    shedding = under(1.0)
    levels = [
        (shedding.service.level, now)
        for now in range(seconds(10), seconds(25), ms(100))
        if shedding.observe(0.0, False, now)
    ]
    assert [level for level, _ in levels] == [3, 2, 1, 0]
    assert all(later - sooner >= DWELL_US for (_, sooner), (_, later) in pairwise(levels))


def test_a_pressure_between_leaving_and_entering_changes_nothing() -> None:
    """Just under a threshold is no reason to come back."""
    shedding = under(ENTER[1] + 0.01)
    assert not any(
        shedding.observe(ENTER[1] - LEAVE_BELOW / 2, False, now)
        for now in range(seconds(10), seconds(60), ms(100))
    )


def test_degraded_service_is_short_and_easy() -> None:
    """While too many turns fail: no drafts, no speech, short replies, fewer jobs at once; then all is back."""
    shedding = under(0.0, degraded=True)
    assert shedding.service == Service(2, True, DEGRADED_REPLY_TOKENS, DEGRADED_LIMITS)
    assert shedding.observe(0.0, False, seconds(10))
    assert shedding.service == FULL_SERVICE
    assert shedding.since_us == seconds(10)


@given(st.lists(st.tuples(st.floats(0, 2), st.integers(1, 10**6), st.booleans()), max_size=100))
def test_a_level_is_never_left_within_its_dwell(told: list[tuple[float, int, bool]]) -> None:
    """Whatever the pressure does, it never flaps: after any change of level it falls no sooner than the dwell."""
    shedding = Shedding()
    now, level, changed = 0, 0, 0
    for pressure, later_us, _ in told:
        now += later_us
        shedding.observe(pressure, False, now)
        if shedding.service.level != level:
            if shedding.service.level < level:
                assert shedding.service.level == level - 1
                assert now - changed >= DWELL_US
            level, changed = shedding.service.level, now
