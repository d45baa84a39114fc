"""Ready work in order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.scheduling.ready_queue import ReadyQueue


def test_ready_queue_reads_in_order_of_rank_within_a_level() -> None:
    """Repeats come before the rest, then the order of arrival decides."""
    queue: ReadyQueue[str] = ReadyQueue()
    queue.add(2, (1, 0.0, 0, 7), "late")
    queue.add(2, (1, 0.0, 0, 3), "early")
    queue.add(2, (0, 0.0, 0, 9), "repeated")
    queue.add(1, (1, 0.0, 0, 8), "urgent")
    assert queue.levels == [1, 2]
    assert queue.first(2) == "repeated"
    assert list(queue.scan(2, 10)) == ["repeated", "early", "late"]
    assert list(queue.scan(2, 2)) == ["repeated", "early"]
    assert list(queue.scan(3, 2)) == []


def test_ready_queue_removing_what_is_not_there_raises() -> None:
    """A wrong place is a fault, not a quiet nothing."""
    queue: ReadyQueue[str] = ReadyQueue()
    queue.add(1, (1, 0.0, 0, 2), "a")
    with pytest.raises(KeyError):
        queue.remove(1, (1, 0.0, 0, 1))
    with pytest.raises(KeyError):
        queue.remove(2, (1, 0.0, 0, 2))


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 2), st.integers(0, 30)), max_size=60
    )
)
def test_ready_queue_equals_a_sorted_list(places: list[tuple[int, int, int, int]]) -> None:
    """Adding a place that is not there and removing one that is: the content is always the sorted set."""
    queue: ReadyQueue[tuple[int, int, int, int]] = ReadyQueue()
    model: set[tuple[int, int, int, int]] = set()
    for place in places:
        level, *rank = place
        if place in model:
            model.remove(place)
            queue.remove(level, (rank[0], float(rank[1]), 0, rank[2]))
        else:
            model.add(place)
            queue.add(level, (rank[0], float(rank[1]), 0, rank[2]), place)
        assert queue.levels == sorted({level for level, *_ in model})
        assert [item for level in queue.levels for item in queue.scan(level, 99)] == sorted(model)
