"""Permits: given at once or refused, ended exactly once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.clock import ms, seconds
from orchestrator.errors import InvalidState
from orchestrator.flow.concurrency import FixedLimit, Outcome, Sample
from orchestrator.flow.limiter import Limiter, Permit, Refusal


class _Recording(FixedLimit):
    """A fixed limit that remembers what it was told."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.samples: list[Sample] = []

    def observe(self, sample: Sample) -> None:
        self.samples.append(sample)


class _Adjustable:
    def __init__(self, value: int) -> None:
        self.value = value

    def observe(self, sample: Sample) -> None: ...

    def tick(self, now: int, memory_share: float | None) -> None: ...


def _acquire(limiter: Limiter, now: int) -> Permit:
    permit = limiter.acquire(now)
    assert isinstance(permit, Permit)
    return permit


def test_limiter_two_starts_at_the_same_instant_do_not_both_pass_a_limit_of_one() -> None:
    """The place is reserved on accept (F-C5)."""
    limiter = Limiter(FixedLimit(1))
    assert isinstance(limiter.acquire(0), Permit)
    assert isinstance(limiter.acquire(0), Refusal)


def test_limiter_place_is_free_again_after_any_end() -> None:
    """Succeeded, dropped and ignored all give the place back."""
    limiter = Limiter(FixedLimit(1))
    for end in (Permit.succeeded, Permit.dropped, Permit.ignored):
        end(_acquire(limiter, 0), 1)
        assert limiter.in_flight == 0


@pytest.mark.parametrize("second", [Permit.succeeded, Permit.dropped, Permit.ignored])
def test_permit_second_end_is_our_fault(second: "object") -> None:
    """A permit ends exactly once; a second end raises and changes no count."""
    limiter = Limiter(FixedLimit(3))
    permit = _acquire(limiter, 0)
    permit.ignored(1)
    assert callable(second)
    with pytest.raises(InvalidState):
        second(permit, 2)
    assert limiter.statistics().ignored == 1
    assert limiter.in_flight == 0


def test_limiter_tells_the_limit_what_became_of_the_work() -> None:
    """A limit learns start, end, company and outcome; a drop is told as a drop (F-L6)."""
    limit = _Recording(2)
    limiter = Limiter(limit)
    first, second = _acquire(limiter, 10), _acquire(limiter, 20)
    second.dropped(50)
    first.succeeded(60)
    assert limit.samples == [Sample(20, 50, 2, Outcome.DROPPED), Sample(10, 60, 1, Outcome.SUCCEEDED)]


def test_limiter_limit_that_falls_takes_no_permit_back() -> None:
    """Those inside stay; nobody new comes in until enough have left."""
    limit = _Adjustable(3)
    limiter = Limiter(limit)
    permits = [_acquire(limiter, 0) for _ in range(3)]
    limit.value = 1
    permits.pop().succeeded(1)
    permits.pop().succeeded(1)
    assert isinstance(limiter.acquire(1), Refusal)
    permits.pop().succeeded(1)
    assert isinstance(limiter.acquire(1), Permit)


def test_limiter_refusal_waits_longer_where_work_stays_longer() -> None:
    """`retry_after_s` follows how long permits are held."""

    def retry_after(stay_s: float) -> float:
        limiter = Limiter(FixedLimit(1))
        for start in range(100):
            _acquire(limiter, seconds(start * 100)).succeeded(seconds(start * 100 + stay_s))
        _acquire(limiter, seconds(10_000))
        refusal = limiter.acquire(seconds(10_000))
        assert isinstance(refusal, Refusal)
        return refusal.retry_after_s

    assert retry_after(10.0) == pytest.approx(10.0, rel=0.01)
    assert retry_after(2.0) == pytest.approx(2.0, rel=0.01)


def test_fixed_limit_below_one_is_refused() -> None:
    """A limit that lets nobody in is a fault of the configuration."""
    with pytest.raises(ValueError):
        FixedLimit(0)


@given(st.integers(1, 5), st.lists(st.integers(-1, 20), max_size=80))
def test_limiter_permits_balance(limit: int, steps: list[int]) -> None:
    """Under any order of acquiring and ending: never above the limit, and what was acquired is inside or has ended."""
    limiter = Limiter(FixedLimit(limit))
    inside: list[Permit] = []
    refused = 0
    for now, step in enumerate(steps):
        if step < 0 or not inside:
            answer = limiter.acquire(now)
            assert isinstance(answer, Refusal) == (len(inside) == limit)
            if isinstance(answer, Permit):
                inside.append(answer)
            else:
                assert answer.retry_after_s > 0
                refused += 1
        else:
            end = (Permit.succeeded, Permit.dropped, Permit.ignored)[step % 3]
            end(inside.pop(step % len(inside)), now)
        counts = limiter.statistics()
        assert counts.in_flight == len(inside) <= limit
        assert counts.acquired == counts.in_flight + counts.succeeded + counts.dropped + counts.ignored
        assert counts.refused == refused


def test_permit_that_is_late_tells_the_limit_at_once_and_once() -> None:
    """The limit learns of the loss when the time is over; the place is free, and counted, at the real end."""
    limit = _Recording(2)
    limiter = Limiter(limit)
    permit = _acquire(limiter, 0)
    permit.late(seconds(1))
    permit.late(seconds(2))
    assert limit.samples == [Sample(0, seconds(1), 1, Outcome.DROPPED)]
    assert limiter.in_flight == 1
    permit.ignored(seconds(3))
    permit.late(seconds(4))
    assert len(limit.samples) == 1
    told = limiter.statistics()
    assert (told.dropped, told.ignored, told.in_flight) == (0, 1, 0)


def test_permit_that_was_answered_took_so_long() -> None:
    """For work that gives its result bit by bit the first bit counts; work that was lost has no such time."""
    limit = _Recording(2)
    limiter = Limiter(limit)
    for end in (Permit.succeeded, Permit.dropped):
        permit = _acquire(limiter, 0)
        permit.answered(ms(200))
        permit.answered(ms(300))
        end(permit, seconds(9))
    assert [sample.ended_us for sample in limit.samples] == [ms(200), seconds(9)]
