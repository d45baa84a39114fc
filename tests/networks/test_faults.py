"""What the relay of these tests does to datagrams: what it is told to, the same for the same seed."""

import pytest

from benchmarks.network_faults import CUT, UDP_HEADERS, Conditions, Line

FRAME_S = 0.02
COUNT = 20_000


def arrivals(conditions: Conditions, seed: int = 1, count: int = COUNT) -> list[tuple[float, ...]]:
    """When each of many datagrams, one every 20 ms, arrives after it was sent."""
    line = Line(seed, conditions)
    return [
        tuple(at_s - number * FRAME_S for at_s in line.carry(100, number * FRAME_S))
        for number in range(count)
    ]


def test_a_clear_line_carries_everything_at_once() -> None:
    """Without conditions nothing happens to anything."""
    assert set(arrivals(Conditions())) == {(0.0,)}


def test_the_same_seed_loses_the_same_datagrams() -> None:
    """A test that found a fault finds it again."""
    bad = Conditions(loss=0.1, jitter_s=0.06, swapped=0.05, doubled=0.05)
    assert arrivals(bad, seed=3) == arrivals(bad, seed=3)
    assert arrivals(bad, seed=3) != arrivals(bad, seed=4)


@pytest.mark.parametrize(("burst", "longest"), [(None, 1.06), (4.0, 4.0)])
def test_as_much_is_lost_as_is_said_and_in_bursts_of_that_length(burst: float | None, longest: float) -> None:
    """5 %, alone or four in a row on average."""
    lost = [not one for one in arrivals(Conditions(loss=0.05, burst=burst))]
    assert sum(lost) / COUNT == pytest.approx(0.05, rel=0.1)
    bursts = sum(now and not before for before, now in zip([False, *lost], lost, strict=False))
    assert sum(lost) / bursts == pytest.approx(longest, rel=0.1)


def test_an_outage_loses_everything() -> None:
    """Also where a burst would have ended."""
    assert set(arrivals(CUT)) == {()}


def test_jitter_keeps_the_order_and_a_swap_does_not() -> None:
    """Delays lie between the least and the greatest; only what is held longer is passed by others."""
    late = [one for (one,) in arrivals(Conditions(delay_s=0.01, jitter_s=0.06))]
    assert all(0.01 - 1e-9 <= one <= 0.07 + 1e-9 for one in late)
    assert max(late) - min(late) > 0.05
    even = [number * FRAME_S + one for number, one in enumerate(late)]
    assert even == sorted(even)
    swapped = arrivals(Conditions(swapped=0.02, swap_s=0.045))
    assert {round(late, 6) for (late,) in swapped} == {0.0, 0.045}
    assert sum(late > 0 for (late,) in swapped) / COUNT == pytest.approx(0.02, rel=0.2)


def test_doubles_come_twice() -> None:
    """The second one later."""
    twice = [one for one in arrivals(Conditions(doubled=0.03, double_s=0.5)) if len(one) == 2]
    assert len(twice) / COUNT == pytest.approx(0.03, rel=0.2)
    assert {round(late, 6) for _, late in twice} == {0.5}


def test_a_line_with_a_rate_queues_and_drops_what_does_not_fit() -> None:
    """Half the rate that is sent: half of it arrives, none of it later than the queue is long."""
    line = Line(1, Conditions(rate=50 * (100 + UDP_HEADERS) / 2, queue_s=0.2))
    late = [at_s - n * FRAME_S for n in range(COUNT) for at_s in line.carry(100, n * FRAME_S)]
    assert len(late) / COUNT == pytest.approx(0.5, abs=0.01)
    assert max(late) <= 0.2 + 2 * FRAME_S + 1e-6
    assert line.statistics().dropped == COUNT - len(late)
