"""Amounts: reserved before the work, settled after it, and never more than the quota in any window."""

from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.clock import US_PER_S, ms, seconds
from orchestrator.errors import InvalidState
from orchestrator.flow.limiter import Refusal, RefusalReason
from orchestrator.flow.token_limiter import BUCKETS, PLACES, Pacer, Quota, Reservation, TokenLimiter

WINDOW_US = seconds(60)


def _reserve(limiter: TokenLimiter, amount: int, now: int) -> Reservation:
    taken = limiter.reserve(amount, now)
    assert isinstance(taken, Reservation)
    return taken


class ExactLog:
    """What a limiter would be with unbounded memory: every entry with its time."""

    def __init__(self) -> None:
        self.entries: list[list[int]] = []  # [when, amount]

    def add(self, amount: int, now: int) -> list[int]:
        self.entries.append([now, amount])
        return self.entries[-1]

    def held(self, now: int, window_us: int = WINDOW_US) -> int:
        """The sum of what came in ``(now - W, now]``."""
        return sum(amount for when, amount in self.entries if now - window_us < when <= now)


def test_token_limiter_five_calls_at_once_do_not_pass_a_limit_of_100() -> None:
    """The estimate is taken before the work: two of 40 fit, whatever they turn out to use (F-L3)."""
    limiter = TokenLimiter(Quota(100))
    answers = [limiter.reserve(40, seconds(1)) for _ in range(5)]
    assert [isinstance(one, Reservation) for one in answers] == [True, True, False, False, False]
    assert limiter.used == 80


@given(
    calls=st.lists(st.tuples(st.integers(1, 100), st.integers(0, 150)), min_size=1, max_size=12),
    limit=st.integers(1, 300),
)
def test_token_limiter_simultaneous_calls_never_reserve_more_than_the_limit(
    calls: list[tuple[int, int]], limit: int
) -> None:
    """However many come at one instant, and whatever each used in the end, what was let in fitted (F-L3)."""
    limiter = TokenLimiter(Quota(limit))
    taken = [(limiter.reserve(estimate, 5), estimate, used) for estimate, used in calls]
    assert sum(estimate for one, estimate, _ in taken if isinstance(one, Reservation)) <= limit
    for one, _, used in taken:
        if isinstance(one, Reservation):
            one.settle(used, 6)
    assert limiter.open == 0


_steps = st.lists(
    st.tuples(
        st.one_of(st.integers(0, ms(50)), st.integers(0, seconds(2)), st.integers(0, 2 * WINDOW_US)),
        st.integers(0, 60),  # asked for
        st.floats(0, 1.5),  # share of it that is used in the end
        st.integers(0, 5),  # which open reservation ends then
        st.booleans(),  # whether one ends
    ),
    max_size=150,
)


@given(steps=_steps, burst=st.none() | st.integers(1, 100))
@settings(max_examples=300)
def test_token_limiter_never_passes_the_limit_of_an_exact_log(
    steps: list[tuple[int, int, float, int, bool]], burst: int | None
) -> None:
    """Whatever is reserved, settled, refunded or overrun: what is let in fits into the window as an exact log has it,
    the limiter's own sum is never below the log's, and a refusal in an idle minute is for size alone."""
    limiter = TokenLimiter(Quota(100, WINDOW_US, burst))
    log, now = ExactLog(), seconds(1000)
    open_ones: list[tuple[Reservation, list[int]]] = []
    for gap_us, amount, share, which, ends in steps:
        now += gap_us
        if ends and open_ones:
            taken, entry = open_ones.pop(which % len(open_ones))
            used = int(taken.amount * share)
            taken.settle(used, now)
            if used <= taken.amount:
                entry[1] = used
            else:
                log.add(used - taken.amount, now)
        before = log.held(now)
        answer = limiter.reserve(amount, now)
        if isinstance(answer, Reservation):
            assert before + amount <= 100 or amount == 0
            open_ones.append((answer, log.add(amount, now)))
        else:
            assert answer.reason is RefusalReason.TENANT
            assert answer.retry_after_s >= 0
        assert limiter.used >= log.held(now)
    assert limiter.open == len(open_ones)


@given(gaps=st.lists(st.integers(0, seconds(3)), min_size=1, max_size=400), amount=st.integers(1, 30))
def test_token_limiter_counts_nothing_longer_than_a_bucket_too_long(gaps: list[int], amount: int) -> None:
    """The error to the safe side is bounded: the sum is never above that of a log of one bucket more."""
    limiter, log, now = TokenLimiter(Quota(500)), ExactLog(), seconds(100)
    for gap_us in gaps:
        now += gap_us
        if isinstance(limiter.reserve(amount, now), Reservation):
            log.add(amount, now)
        assert limiter.used <= log.held(now, WINDOW_US + -(-WINDOW_US // BUCKETS) + 1)


def test_token_limiter_takes_a_full_burst_once_per_window() -> None:
    """A job that uses up its quota each minute is let in each minute (but for W/32,640), not every second one."""
    limiter, late_us = TokenLimiter(Quota(100)), WINDOW_US // (BUCKETS * PLACES) + 2
    now = seconds(1000) + 123_457
    for _ in range(50):
        _reserve(limiter, 100, now).settle(100, now)
        assert isinstance(limiter.reserve(1, now + WINDOW_US - 1), Refusal)
        now += WINDOW_US + late_us


def test_token_limiter_refusal_says_when_there_is_room_and_is_right() -> None:
    """Before that time the same amount is refused, from then on it is taken; several old entries may have to leave."""
    for amount in (10, 30, 60, 100):
        limiter, now = TokenLimiter(Quota(100)), seconds(500)
        for _ in range(10):
            _reserve(limiter, 10, now)
            now += seconds(3)
        refusal = limiter.reserve(amount, now)
        assert isinstance(refusal, Refusal)
        wait_us = round(refusal.retry_after_s * US_PER_S)
        assert isinstance(limiter.reserve(amount, now + wait_us - 1), Refusal)
        assert isinstance(limiter.reserve(amount, now + wait_us), Reservation)


@pytest.mark.parametrize("quota", [Quota(100), Quota(1000, burst=100)])
def test_token_limiter_more_than_the_quota_ever_gives_is_not_told_to_wait(quota: Quota) -> None:
    """Such a request never fits: 0 s says that waiting does not help."""
    refusal = TokenLimiter(quota).reserve(101, 0)
    assert refusal == Refusal(0.0, RefusalReason.TENANT)


def test_token_limiter_refund_makes_room_at_once() -> None:
    """Work that did not happen used nothing; neither did the part that was not needed."""
    limiter = TokenLimiter(Quota(100))
    first, second = _reserve(limiter, 60, 0), _reserve(limiter, 40, 0)
    assert isinstance(limiter.reserve(1, 1), Refusal)
    first.refund(2)
    second.settle(10, 2)
    _reserve(limiter, 90, 3)
    assert isinstance(limiter.reserve(1, 3), Refusal)


def test_token_limiter_what_is_used_beyond_the_estimate_counts_from_then_on() -> None:
    """A debt is booked when it is known: until it has left the window nothing more is let in."""
    limiter = TokenLimiter(Quota(100))
    _reserve(limiter, 50, 0).settle(180, seconds(10))
    assert limiter.used == 180
    assert isinstance(limiter.reserve(1, WINDOW_US + seconds(5)), Refusal)
    _reserve(limiter, 100, WINDOW_US + seconds(11))


def test_token_limiter_late_settlement_gives_nothing_back_twice() -> None:
    """A reservation leaves with its window; settled after that it makes no room a second time."""
    limiter = TokenLimiter(Quota(100))
    old = _reserve(limiter, 100, 0)
    _reserve(limiter, 100, 2 * WINDOW_US)
    old.settle(0, 2 * WINDOW_US + 1)
    assert isinstance(limiter.reserve(1, 2 * WINDOW_US + 2), Refusal)


def test_reservation_second_end_is_our_fault() -> None:
    """It ends exactly once, and a second end changes nothing."""
    limiter = TokenLimiter(Quota(100))
    taken = _reserve(limiter, 50, 0)
    taken.settle(20, 1)
    for end in (taken.refund, lambda now: taken.settle(5, now)):
        with pytest.raises(InvalidState):
            end(2)
    assert (limiter.used, limiter.open) == (20, 0)
    with pytest.raises(ValueError, match="-1"):
        _reserve(limiter, 1, 3).settle(-1, 4)


def test_token_limiter_clock_that_goes_back_frees_nothing() -> None:
    """An earlier time is taken for the last one."""
    limiter = TokenLimiter(Quota(100))
    _reserve(limiter, 100, seconds(90))
    assert isinstance(limiter.reserve(1, seconds(10)), Refusal)


@given(steps=st.lists(st.tuples(st.integers(0, seconds(20)), st.integers(0, 80)), max_size=100))
def test_pacer_of_a_full_burst_refuses_nothing_that_the_window_admits(steps: list[tuple[int, int]]) -> None:
    """The proof in its docstring, by trial: whenever the window has room so has the bucket."""
    exact: deque[tuple[int, int]] = deque(maxlen=1000)
    pacer, now = Pacer(100, WINDOW_US, 100), 0
    for gap_us, amount in steps:
        now += gap_us
        held = sum(one for when, one in exact if when > now - WINDOW_US)
        if held + amount <= 100:
            assert pacer.wait_us(amount, now) == 0
            pacer.add(amount, now)
            exact.append((now, amount))


@given(
    steps=st.lists(
        st.tuples(st.integers(0, seconds(5)), st.integers(1, 10), st.booleans()), min_size=1, max_size=60
    )
)
def test_token_limiter_with_a_burst_paces_what_is_used(steps: list[tuple[int, int, bool]]) -> None:
    """In no span of time more is used than the burst and what the pace gives in it, whatever was given back between."""
    limiter, now = TokenLimiter(Quota(60, WINDOW_US, 10)), seconds(100)
    log, last = ExactLog(), None
    for gap_us, amount, keeps in steps:
        now += gap_us
        if last is not None and not keeps:
            last[0].refund(now)
            last[1][1] = 0
            last = None
        answer = limiter.reserve(amount, now)
        if isinstance(answer, Reservation):
            last = (answer, log.add(amount, now))
    for first, (start, _) in enumerate(log.entries):
        used = 0
        for when, amount in log.entries[first:]:
            used += amount
            assert used <= 10 + (when - start) * 60 / WINDOW_US + 1e-6


def test_token_limiter_with_a_burst_says_how_long_the_pace_takes() -> None:
    """60 in a minute, 10 at once: the next 5 are due 5 s later."""
    limiter, now = TokenLimiter(Quota(60, WINDOW_US, 10)), seconds(100)
    _reserve(limiter, 10, now)
    refusal = limiter.reserve(5, now)
    assert isinstance(refusal, Refusal)
    assert refusal.retry_after_s == pytest.approx(5)
    assert isinstance(limiter.reserve(5, now + seconds(5) - 1), Refusal)
    _reserve(limiter, 5, now + seconds(5))


def test_token_limiter_is_new_once_nothing_of_it_counts() -> None:
    """Not while something is in the window, is open, or has not drained."""
    limiter = TokenLimiter(Quota(60, WINDOW_US, 10))
    assert limiter.is_new(0)
    taken = _reserve(limiter, 10, seconds(1))
    assert not limiter.is_new(seconds(2))
    assert not limiter.is_new(seconds(1000))  # still open
    taken.settle(10, seconds(1000))
    assert limiter.is_new(seconds(1000))


@pytest.mark.parametrize(
    "quota",
    [
        lambda: Quota(0),
        lambda: Quota(2**32),
        lambda: Quota(10, 5),
        lambda: Quota(10, burst=11),
        lambda: Quota(10, burst=0),
    ],
)
def test_quota_that_makes_no_sense_is_refused(quota: "object") -> None:
    """Nothing, more than can be counted, a window without room for its buckets, a burst beyond the limit."""
    assert callable(quota)
    with pytest.raises(ValueError, match=r"quota|window|burst"):
        quota()
