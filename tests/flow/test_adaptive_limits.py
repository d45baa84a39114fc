"""Limits that learn: within bounds whatever they see, never raised by losses, and each by its own rule."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.clock import US_PER_S, ms, seconds
from orchestrator.flow.aimd_limit import AimdLimit
from orchestrator.flow.concurrency import FixedLimit, Limit, Outcome, Sample
from orchestrator.flow.gradient_limit import GradientLimit
from orchestrator.flow.policies import LimitSettings, Policy, limit_of
from orchestrator.flow.reference_limit import ReferenceLimit, reference_value

POLICIES: Sequence[Policy] = ("fixed", "reference", "aimd", "gradient")

_samples = st.lists(
    st.tuples(
        st.integers(0, seconds(20)),  # since the one before
        st.integers(1, seconds(20)),  # how long it took
        st.integers(1, 16),
        st.sampled_from(Outcome),
        st.none() | st.floats(0, 1),
    ),
    max_size=120,
)


def _new(policy: Policy, base: int = 8, most: int = 16) -> Limit:
    return limit_of(LimitSettings(policy, base, most))


def _feed(limit: Limit, samples: list[tuple[int, int, int, Outcome, float | None]]) -> int:
    """Tells samples, one tick after each; returns the time afterwards."""
    now = seconds(100)
    for gap_us, took_us, in_flight, outcome, memory in samples:
        now += gap_us
        limit.observe(Sample(now - took_us, now, in_flight, outcome))
        limit.tick(now, memory)
        assert 1 <= limit.value <= 16
    return now


@pytest.mark.parametrize("policy", POLICIES)
@given(samples=_samples)
def test_limit_stays_between_one_and_its_most(
    policy: Policy, samples: list[tuple[int, int, int, Outcome, float | None]]
) -> None:
    """Whatever is observed, the limit lets somebody in and never more than there are places."""
    _feed(_new(policy), samples)


@pytest.mark.parametrize("policy", POLICIES)
@given(samples=_samples, losses=st.lists(st.integers(1, seconds(3)), min_size=1, max_size=200))
def test_limit_steady_timeouts_never_raise_it(
    policy: Policy,
    samples: list[tuple[int, int, int, Outcome, float | None]],
    losses: list[int],
) -> None:
    """Time-outs of equal length look calm, but each is a loss: from any state on the limit only falls (F-L6)."""
    limit = _new(policy)
    now = _feed(limit, samples)
    limit.tick(now, None)
    before = limit.value
    for gap_us in losses:
        now += gap_us
        limit.observe(Sample(now - seconds(2), now, limit.value, Outcome.DROPPED))
        assert limit.value <= before
        limit.tick(now, None)
        assert limit.value <= before
        before = limit.value


@pytest.mark.parametrize("policy", ["reference", "aimd", "gradient"])
def test_limit_steady_timeouts_take_it_to_the_ground(policy: Policy) -> None:
    """The same loss for a minute leaves one place, not all of them (F-L6)."""
    limit, now = _new(policy), seconds(10)
    for _ in range(60):
        now += seconds(1)
        limit.observe(Sample(now - ms(500), now, limit.value, Outcome.DROPPED))
        limit.tick(now, 0.4)
    assert limit.value == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_limit_ignored_work_says_nothing(policy: Policy) -> None:
    """Cancelled work, however long it was inside, moves no limit."""
    limit, now = _new(policy), seconds(10)
    for _ in range(100):
        now += seconds(1)
        limit.observe(Sample(now - seconds(9), now, 8, Outcome.IGNORED))
        limit.tick(now, 0.5)
    assert limit.value == 8


@pytest.mark.parametrize(
    ("memory", "p95_ms", "expected"),
    [(0.42, 120, 8), (0.89, 210, 5), (0.61, 580, 5), (0.75, 300, 8), (1.0, 0, 4), (1.0, 5_000, 1)],
)
def test_reference_value_follows_the_formula(memory: float, p95_ms: int, expected: int) -> None:
    """The first three are the rows of the source's table, whose last two the formula does not give (3 and 4 there)."""
    assert reference_value(8, memory, ms(p95_ms), ms(300), ms(1000)) == expected


def test_reference_value_is_not_one_less_for_a_rounding_error() -> None:
    """8 · (1 - 2 · (0.77 - 0.75) - 0.46) is 4, although its binary fractions come to 3.9999999999999996."""
    assert reference_value(8, 0.77, ms(760), ms(300), ms(1000)) == 4


def test_reference_limit_is_set_by_the_tick_from_what_was_observed() -> None:
    """The loop closes once a second: 19 of 20 durations of 100 ms and one of 2 s are a p95 of 100 ms."""
    limit, now = ReferenceLimit(8, 16), seconds(10)
    for took_ms in [100] * 19 + [2_000]:
        limit.observe(Sample(now - ms(took_ms), now, 1, Outcome.SUCCEEDED))
    assert limit.p95_us == ms(100)
    limit.observe(Sample(now - ms(580), now, 1, Outcome.SUCCEEDED))
    assert limit.value == 8
    limit.tick(now, 0.61)
    assert limit.p95_us == ms(580)
    assert limit.value == 5


def test_reference_limit_old_durations_leave_with_the_next_success() -> None:
    """What was slow half a minute ago is forgotten as soon as something newer succeeded, not before."""
    limit, now = ReferenceLimit(8, 16), seconds(10)
    limit.observe(Sample(now - seconds(2), now, 1, Outcome.SUCCEEDED))
    limit.tick(now + seconds(60), None)
    assert limit.value == 1
    limit.observe(Sample(now + seconds(60) - 1, now + seconds(60), 1, Outcome.SUCCEEDED))
    limit.tick(now + seconds(60), None)
    assert limit.value == 8


def test_aimd_limit_grows_by_one_a_round() -> None:
    """After its first loss so many successes as the limit allows raise it by about one, while it is used."""
    limit = AimdLimit(6, 64)
    limit.observe(Sample(0, 1, 6, Outcome.DROPPED))
    assert limit.value == 4
    for number in range(1, 10):
        limit.observe(Sample(number, number + 1, 4, Outcome.SUCCEEDED))
    assert limit.value == 6
    for number in range(100):
        limit.observe(Sample(number, number + 1, 1, Outcome.SUCCEEDED))
    assert limit.value == 6


@pytest.mark.parametrize("ends", ["loss", "memory"])
def test_aimd_limit_searches_until_it_has_met_what_bounds_it(ends: str) -> None:
    """From far below it grows by half in each round in which all of it is used; a loss or a full memory ends that for
    good."""
    limit = AimdLimit(8, 256)
    for number in range(50):
        limit.observe(Sample(number, number + 1, 7, Outcome.SUCCEEDED))
    assert limit.value == 8
    for number in range(8):
        limit.observe(Sample(number, number + 1, 12, Outcome.SUCCEEDED))
    assert limit.value == 12
    if ends == "loss":
        limit.observe(Sample(10, 11, 12, Outcome.DROPPED))
    else:
        limit.tick(11, 0.91)
        limit.tick(12, 0.5)
    before = limit.value
    assert before == int(12 * 0.7), "a search that ends is beyond the mark"
    for number in range(20, 20 + before):
        limit.observe(Sample(number, number + 1, before, Outcome.SUCCEEDED))
    assert limit.value <= before + 1


@pytest.mark.parametrize("outcome", [Outcome.DROPPED, Outcome.SUCCEEDED])
def test_aimd_limit_losses_of_one_round_count_once(outcome: Outcome) -> None:
    """Eight that were inside together and are lost, or are too slow, cut the limit once; one begun later cuts again."""
    limit = AimdLimit(8, 8, slow_us=ms(1300))
    for number in range(8):
        limit.observe(Sample(0, seconds(2) + number, 8, outcome))
    assert limit.value == int(8 * 0.7)
    limit.observe(Sample(seconds(3), seconds(5), 5, outcome))
    assert limit.value == int(8 * 0.7 * 0.7)


@pytest.mark.parametrize("policy", ["aimd", "gradient"])
def test_limit_does_not_grow_into_full_memory(policy: Policy) -> None:
    """Above 90 % of the memory successes do not raise it, above 95 % it falls."""
    limit = _new(policy)
    limit.tick(0, 0.92)
    held = limit.value
    assert held <= 8
    for number in range(1, 50):
        limit.observe(Sample(number, number + ms(100), 16, Outcome.SUCCEEDED))
    assert limit.value == held
    limit.tick(seconds(3), 0.97)
    assert limit.value < held


def test_aimd_limit_waits_for_what_a_cut_has_freed() -> None:
    """Those inside take their time to end: a memory that is still full half a second later is no second reason."""
    limit = AimdLimit(100, 100)
    limit.tick(0, 0.97)
    limit.tick(ms(500), 0.97)
    assert limit.value == 70
    limit.tick(seconds(2), 0.97)
    assert limit.value == 49


def test_gradient_limit_grows_while_durations_stay_as_they_are() -> None:
    """Equal durations say that there is room; unused room is not asked for."""
    limit = GradientLimit(4, 32)
    for number in range(200):
        limit.observe(Sample(number, number + ms(100), limit.value, Outcome.SUCCEEDED))
    assert limit.value == 32
    idle = GradientLimit(4, 32)
    for number in range(200):
        idle.observe(Sample(number, number + ms(100), 1, Outcome.SUCCEEDED))
    assert idle.value == 4


def test_gradient_limit_falls_where_durations_grow() -> None:
    """Four times the usual duration takes more than half of the limit away within some twenty samples."""
    limit = GradientLimit(32, 32)
    for number in range(200):
        limit.observe(Sample(number, number + ms(100), 32, Outcome.SUCCEEDED))
    for number in range(200, 220):
        limit.observe(Sample(number, number + ms(400), 32, Outcome.SUCCEEDED))
    assert limit.value < 16


def test_gradient_limit_comes_back_after_an_overload() -> None:
    """Slow times are not remembered as usual: once it is quick again the limit grows again."""
    limit, now = GradientLimit(16, 32), 0
    for took_ms, count in ((100, 100), (1_000, 300), (100, 300)):
        for _ in range(count):
            now += ms(100)
            limit.observe(Sample(now - ms(took_ms), now, 32, Outcome.SUCCEEDED))
    assert limit.value == 32


@pytest.mark.parametrize(
    ("policy", "kind"),
    [("fixed", FixedLimit), ("reference", ReferenceLimit), ("aimd", AimdLimit), ("gradient", GradientLimit)],
)
def test_limit_of_makes_what_is_asked_for(policy: Policy, kind: type[Limit]) -> None:
    """Each policy by its name, beginning with its base and at most with the places of the worker."""
    limit = limit_of(LimitSettings(policy, base=6, most=4))
    assert isinstance(limit, kind)
    assert limit.value == 4


@pytest.mark.parametrize("policy", POLICIES)
def test_limit_of_nothing_is_our_fault(policy: Policy) -> None:
    """A limit that lets nobody in is refused where it is made."""
    with pytest.raises(ValueError, match="limit"):
        limit_of(LimitSettings(policy, base=0, most=4))


def test_limits_two_numbers_of_the_formula_are_one_bound_for_aimd() -> None:
    """What costs the formula everything that latency can cost is slow for AIMD."""
    limit = limit_of(LimitSettings("aimd", 8, 8, p95_us=ms(100), slope_us=ms(200)))
    limit.observe(Sample(0, ms(299), 8, Outcome.SUCCEEDED))
    assert limit.value == 8
    limit.observe(Sample(US_PER_S, US_PER_S + ms(301), 8, Outcome.SUCCEEDED))
    assert limit.value == 5
