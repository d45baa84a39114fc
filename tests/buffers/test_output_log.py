import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.buffers.output_log import Dropped, OutputLog


def test_output_log_reader_that_resumes_misses_nothing() -> None:
    """F-C1: a socket dropped at event 37 comes back with its cursor and gets 38 and on, once and in order."""
    log: OutputLog[str] = OutputLog(1_000, 10**6)
    for number in range(1, 101):
        assert log.append(f"event {number}", 10) == number
    assert log.read(37, 1_000) == [(number, f"event {number}") for number in range(38, 101)]


def test_output_log_reader_that_is_too_late_is_told_where_the_log_begins() -> None:
    """F-C1: a range that is gone is an explicit gap, never silently skipped."""
    log: OutputLog[int] = OutputLog(10, 10**6)
    for number in range(1, 31):
        log.append(number, 1)
    with pytest.raises(Dropped) as caught:
        log.read(19, 5)
    assert caught.value.first_available == 21
    assert log.read(20, 2) == [(21, 21), (22, 22)]


def test_output_log_entry_beyond_all_bounds_is_numbered_but_not_held() -> None:
    """One entry over the byte bound empties the log: readers see a gap, memory stays bounded."""
    log: OutputLog[str] = OutputLog(10, 100)
    log.append("small", 10)
    assert log.append("huge", 101) == 2
    assert log.statistics().size == 0
    with pytest.raises(Dropped) as caught:
        log.read(1, 1)
    assert caught.value.first_available == 3
    assert log.append("next", 1) == 3
    assert log.read(2, 5) == [(3, "next")]


def test_output_log_cleared_goes_on_counting() -> None:
    """A detached session's log can be let go; numbers never repeat."""
    log: OutputLog[str] = OutputLog(10, 100)
    log.append("a", 1)
    log.clear()
    assert log.append("b", 1) == 2
    with pytest.raises(Dropped):
        log.read(0, 1)


def test_output_log_read_from_the_end_or_beyond_is_empty() -> None:
    """A cursor with nothing newer gets nothing; so does one that was never given out."""
    log: OutputLog[str] = OutputLog(10, 100)
    log.append("a", 1)
    assert log.read(1, 10) == []
    assert log.read(7, 10) == []
    assert log.read(0, 0) == []


@pytest.mark.parametrize(("events", "size"), [(0, 1), (1, 0)])
def test_output_log_of_no_capacity_is_refused(events: int, size: int) -> None:
    """A log that could hold nothing raises when it is made."""
    with pytest.raises(ValueError, match="at least one"):
        OutputLog[str](events, size)


@given(
    st.integers(1, 20),
    st.integers(1, 200),
    st.lists(st.one_of(st.integers(0, 80), st.tuples(st.integers(0, 60), st.integers(0, 10))), max_size=60),
)
def test_output_log_equals_a_plain_list(
    max_events: int, max_bytes: int, steps: list[int | tuple[int, int]]
) -> None:
    """Appending and reading in any order gives what a list of everything, cut to the bounds, gives."""
    log: OutputLog[int] = OutputLog(max_events, max_bytes)
    sizes: list[int] = []
    first = 1
    for step in steps:
        if isinstance(step, int):
            sizes.append(step)
            assert log.append(-len(sizes), step) == len(sizes)
            while len(sizes) - first + 1 > max_events or sum(sizes[first - 1 :]) > max_bytes:
                first += 1
        else:
            after, limit = step
            if after + 1 < first:
                with pytest.raises(Dropped) as caught:
                    log.read(after, limit)
                assert caught.value.first_available == first
            else:
                wanted = [(n, -n) for n in range(after + 1, len(sizes) + 1)][:limit]
                assert log.read(after, limit) == wanted
        statistics = log.statistics()
        assert (statistics.first, statistics.last) == (first, len(sizes)) == (log.first, log.last)
        assert statistics.size == sum(sizes[first - 1 :]) <= max_bytes
        assert statistics.dropped == first - 1
