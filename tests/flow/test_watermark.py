"""How many may wait: waits come to the target whatever the drain rate is, and nothing is learnt from silence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.clock import US_PER_S, ms, seconds
from orchestrator.flow.watermark import (
    LEAST_WAITING,
    WAIT_BOUNDS_US,
    AdaptiveWatermark,
    FixedWatermark,
    RecentWaits,
    target_us,
)

CAPACITY = 512
TARGET_US = ms(640)


def test_fixed_mark_is_a_share_of_the_places() -> None:
    """17 of 20, whatever waits and leaves; never less than one."""
    mark = FixedWatermark(20)
    mark.waiting(17, 0)
    mark.started(seconds(100), 1)
    mark.finished(5, 2)
    assert mark.mark(seconds(60)) == 17
    assert FixedWatermark(1).mark(0) == 1


@pytest.mark.parametrize(("capacity", "share"), [(0, 0.5), (10, 0.0), (10, 1.1)])
def test_fixed_mark_of_nothing_is_no_mark(capacity: int, share: float) -> None:
    """A mark that lets nobody in, or more than there is room for, is a fault in the settings."""
    with pytest.raises(ValueError, match="share"):
        FixedWatermark(capacity, share)


def overload(mark: AdaptiveWatermark, a_second: int, from_us: int, for_s: float) -> list[int]:
    """Keeps the queue at its mark while so many a second leave it, first in first out; returns the waits."""
    waiting: list[int] = []
    waits = []
    now = from_us
    while now < from_us + int(for_s * US_PER_S):
        while len(waiting) < mark.mark(now):
            waiting.append(now)
            mark.waiting(len(waiting), now)
        waits.append(now - waiting[0])
        mark.started(now - waiting.pop(0), now)
        mark.waiting(len(waiting), now)
        now += US_PER_S // a_second
        mark.finished(1, now)
    return waits


@pytest.mark.parametrize("a_second", [200, 400, 700])
def test_adaptive_mark_brings_the_longest_waits_to_the_target(a_second: int) -> None:
    """At any rate whose mark lies between the floor and the room the waits settle within a fifth of the target."""
    mark = AdaptiveWatermark(CAPACITY, TARGET_US)
    overload(mark, a_second, 0, 8)
    waits = overload(mark, a_second, seconds(8), 4)
    assert 0.8 * TARGET_US < max(waits) < 1.2 * TARGET_US


def test_adaptive_mark_follows_a_rate_that_falls() -> None:
    """A worker that becomes half as fast has half as many wait for it, within some seconds."""
    mark = AdaptiveWatermark(CAPACITY, TARGET_US)
    overload(mark, 600, 0, 8)
    before = mark.mark(seconds(8))
    overload(mark, 300, seconds(8), 8)
    assert 0.35 * before < mark.mark(seconds(16)) < 0.65 * before


def test_adaptive_mark_has_a_floor_and_no_more_than_the_room() -> None:
    """Before the slowest worker a few may wait, before the fastest all that have room."""
    slow, fast = AdaptiveWatermark(CAPACITY, TARGET_US), AdaptiveWatermark(CAPACITY, TARGET_US)
    overload(slow, 2, 0, 60)
    overload(fast, 5_000, 0, 6)
    assert slow.mark(seconds(60)) == LEAST_WAITING
    assert fast.mark(seconds(6)) == CAPACITY


def test_adaptive_mark_is_the_fixed_one_until_something_is_known() -> None:
    """Nobody is refused by a rate of nothing."""
    mark = AdaptiveWatermark(CAPACITY, TARGET_US)
    assert mark.mark(0) == mark.mark(seconds(3600)) == int(CAPACITY * 0.85)
    assert mark.rate is None


def test_adaptive_mark_learns_no_rate_while_nobody_waits() -> None:
    """One job a minute says nothing about what could be done."""
    mark = AdaptiveWatermark(CAPACITY, TARGET_US)
    for minute in range(10):
        mark.waiting(1, seconds(60 * minute))
        mark.started(0, seconds(60 * minute))
        mark.waiting(0, seconds(60 * minute))
        mark.finished(1, seconds(60 * minute + 1))
    assert mark.mark(seconds(600)) == int(CAPACITY * 0.85)


def test_adaptive_gain_forgets_in_a_silence() -> None:
    """What was learnt of a rush is not held against the next one an hour later."""
    mark = AdaptiveWatermark(CAPACITY, TARGET_US)
    for tenth in range(40):
        mark.waiting(400, ms(100 * tenth))
        mark.started(seconds(5), ms(100 * tenth))
    mark.mark(seconds(4))
    assert mark.gain < 1
    mark.mark(seconds(3600))
    assert mark.gain == 1


@given(
    st.lists(
        st.tuples(st.integers(0, 600), st.integers(0, 10**7), st.integers(0, 20), st.integers(0, 10**7)),
        max_size=60,
    )
)
def test_adaptive_mark_stays_within_floor_and_room_whatever_comes(
    told: list[tuple[int, int, int, int]],
) -> None:
    """No history of waits and departures takes it out of its bounds, nor the gain out of [0.5, 2]."""
    mark = AdaptiveWatermark(CAPACITY, TARGET_US)
    now = 0
    for jobs, waited_us, served, later_us in told:
        now += later_us
        mark.waiting(jobs, now)
        mark.started(waited_us, now)
        mark.finished(served, now)
        assert LEAST_WAITING <= mark.mark(now) <= CAPACITY
        assert 0.5 <= mark.gain <= 2


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=200), st.floats(0.01, 1.0))
def test_recent_waits_tell_a_percentile_to_an_eighth(waits: list[int], share: float) -> None:
    """Never below the true one, at most an eighth above."""
    recent = RecentWaits(4)
    for wait in waits:
        recent.add(wait)
    ordered = sorted(waits)
    told = recent.percentile(share)
    assert told is not None
    true = next(w for n, w in enumerate(ordered, start=1) if n >= share * len(ordered) - 1e-6)
    assert true <= told <= true * 1.125 + 1


def test_recent_waits_forget_a_span_after_its_turns() -> None:
    """What is older than all spans counts no more."""
    recent = RecentWaits(2)
    recent.add(1_000)
    recent.turn()
    assert recent.percentile(0.99) is not None
    recent.turn()
    assert recent.percentile(0.99) is None


def test_the_target_is_under_the_longest_bound() -> None:
    """Silver may wait 800 ms; the waits come to 640."""
    assert target_us() == ms(640)
    assert max(WAIT_BOUNDS_US) == ms(800)
