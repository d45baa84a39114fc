"""How fast one link may speak."""

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.clock import US_PER_S
from orchestrator.errors import Overloaded
from orchestrator.scheduling.job import Tier
from orchestrator.sessions.links import LinkKind, SessionRequest
from orchestrator.transports.pace import Pace, Paces, Rate
from tests.transports.fake_sessions import FakeSession

RATE = Rate(events_per_s=100, bytes_per_s=1_000, burst_bytes=5_000, excess_s=2)


def test_link_within_its_rate_never_waits() -> None:
    """A hundred small events a second for a minute, and a burst of its size after a silence."""
    pace = Pace(RATE)
    now_us = 0
    for _ in range(6_000):
        assert pace.take(10, now_us) == 0
        now_us += 10_000
    assert pace.take(5_000, now_us + 10 * US_PER_S) == 0
    assert not pace.is_over(now_us + 10 * US_PER_S)


def test_events_and_bytes_are_bounded_each() -> None:
    """Of events 2 s' worth may come at once, of bytes the burst; one more waits for as long as it stands for."""
    pace = Pace(RATE)
    assert [pace.take(0, 0) for _ in range(200)] == [0] * 200
    assert pace.take(0, 0) == 0.01
    pace = Pace(RATE)
    assert pace.take(5_000, 0) == 0
    assert pace.take(500, 0) == 0.5


def test_link_that_is_held_back_without_a_pause_is_over() -> None:
    """After `excess_s` of it, and not if it has once kept to its rate in between."""
    pace = Pace(RATE)
    now_us = 0
    while not pace.is_over(now_us):
        now_us += int(pace.take(6_000, now_us) * US_PER_S)
    assert 2 * US_PER_S <= now_us <= 9 * US_PER_S
    pace = Pace(RATE)
    assert pace.take(6_000, 0) == 1
    assert pace.take(10, 10 * US_PER_S) == 0
    assert pace.take(6_000, 10 * US_PER_S) > 0
    assert not pace.is_over(11 * US_PER_S)
    assert pace.is_over(12 * US_PER_S)


@given(st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 400_000)), max_size=200))
def test_reader_that_waits_as_told_reads_no_faster_than_the_rate(messages: list[tuple[int, int]]) -> None:
    """Whatever comes and when: in any time no more than burst and rate, but for the message in hand."""
    pace = Pace(RATE)
    now_us = 0
    read: list[tuple[float, int]] = []
    for size, gap_us in messages:
        now_us += gap_us
        read.append((now_us, size))
        now_us += round(pace.take(size, now_us) * US_PER_S)
    for first in range(len(read)):
        total = 0
        for at_us, size in read[first:-1]:
            total += size
            passed_s = (at_us - read[first][0]) / US_PER_S
            assert total - size <= RATE.burst_bytes + RATE.bytes_per_s * passed_s + 1


def session() -> FakeSession:
    return FakeSession(SessionRequest("acme", Tier.GOLD, None, None), LinkKind.EVENTS)


def test_requests_to_one_session_have_a_rate_together() -> None:
    """Of events or bytes too much: the request behind waits for as long as it stands for, and is not counted; another
    session is not asked. Who waits is let in again."""
    paces, one, other = Paces(RATE), session(), session()
    for _ in range(4):
        paces.take(one, 64, 100, 0)
    with pytest.raises(Overloaded) as caught:
        paces.check(one, 0)
    assert (caught.value.retry_after_s, caught.value.is_tenant) == (0.56, True)
    for _ in range(9):
        with pytest.raises(Overloaded):
            paces.take(one, 64, 100, 0)
    paces.take(other, 1, 5_500, 0)
    with pytest.raises(Overloaded) as caught:
        paces.take(other, 1, 1, 0)
    assert caught.value.retry_after_s == 0.5
    paces.take(one, 64, 100, 560_000)
    paces.take(other, 1, 1, 500_000)


def test_requests_have_no_rate_where_none_is_asked_for() -> None:
    """Nothing is remembered then."""
    paces, one = Paces(None), session()
    for _ in range(100):
        paces.take(one, 64, 10**9, 0)
    assert len(paces) == 0


def test_session_that_has_gone_is_not_remembered() -> None:
    """However many there were."""
    paces = Paces(RATE)
    for _ in range(100):
        paces.take(session(), 1, 1, 0)
    gc.collect()
    assert len(paces) == 0
