"""Levels share by weight; none starves, none saves up."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.scheduling.priority import LEVEL_WEIGHTS, FairShares


def _serve(shares: FairShares, waiting: list[int], times: int) -> Counter[int]:
    served: Counter[int] = Counter()
    for _ in range(times):
        level = shares.choose(waiting)
        shares.charge(level)
        served[level] += 1
    return served


def test_shares_all_levels_waiting_are_served_by_weight() -> None:
    """Of 150 jobs the levels get 80, 40, 20 and 10."""
    assert _serve(FairShares(), [0, 1, 2, 3], 150) == {0: 80, 1: 40, 2: 20, 3: 10}


def test_shares_unblocking_work_that_just_came_is_next() -> None:
    """A level that slept wakes at the position of the others and wins the tie if it is more urgent."""
    shares = FairShares()
    _serve(shares, [1, 2, 3], 50)
    assert shares.choose([0, 1, 2, 3]) == 0


def test_shares_sleeping_level_saves_nothing_up() -> None:
    """After 1,000 jobs of gold, platinum gets its share of two in three (off by one) and not 1,000 in a row."""
    shares = FairShares()
    _serve(shares, [2], 1000)
    assert abs(_serve(shares, [1, 2], 60)[1] - 40) <= 1


@given(st.lists(st.sets(st.integers(0, 2)), min_size=1, max_size=300))
def test_shares_lowest_level_never_starves(others: list[set[int]]) -> None:
    """Whatever else comes and goes, silver is served within 15 choices."""
    shares = FairShares()
    since = 0
    for waiting in others:
        level = shares.choose([*waiting, 3])
        shares.charge(level)
        since = 0 if level == 3 else since + 1
        assert since <= sum(LEVEL_WEIGHTS.values())


def test_shares_who_filled_places_that_were_left_over_is_not_made_to_wait_for_it() -> None:
    """A thousand batches with one job of platinum and three of silver, since no more of platinum came: when it comes in
    plenty, silver waits for the worth of one batch and not for six thousand jobs."""
    shares = FairShares()
    for _ in range(1000):
        shares.choose([1, 3])
        for level in (1, 3, 3, 3):
            shares.charge(level)
    served: list[int] = []
    while 3 not in served:
        served.append(shares.choose([1, 3]))
        shares.charge(served[-1])
    assert len(served) <= 4 * 4 + 2


@given(st.lists(st.tuples(st.sets(st.integers(0, 2)), st.lists(st.integers(0, 3), max_size=3)), max_size=200))
def test_shares_lowest_level_never_starves_whoever_rides(steps: list[tuple[set[int], list[int]]]) -> None:
    """Whatever rode along before: once nobody rides any more, silver is served within four batches and 15 choices."""
    shares = FairShares()
    for others, riders in steps:
        waiting = [*others, 3]
        for level in (shares.choose(waiting), *(rider for rider in riders if rider in waiting)):
            shares.charge(level)
    served = list(_serve(shares, [0, 1, 2, 3], 4 * 15 + 15))
    assert 3 in served


def test_shares_places_beside_the_chosen_one_are_given_in_turn() -> None:
    """Who has had less of its share comes first; of equals the more urgent."""
    shares = FairShares()
    assert shares.in_turn([3, 1, 2]) == [1, 2, 3]
    shares.charge(1)
    shares.charge(2)
    assert shares.in_turn([1, 2, 3]) == [3, 1, 2]
