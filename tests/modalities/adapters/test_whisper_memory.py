"""What was heard is kept for a while: so many bytes, so many seconds, the least used leaves first."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from modalities.adapters.whisper_memory import EncodingMemory, Remembered


def heard(positions: int) -> Remembered:
    return Remembered(np.zeros((positions, 4), dtype=np.float32), 2 * positions, "en")


def test_memory_forgets_what_is_old() -> None:
    """The bound in seconds counts from when it was kept, however often it was read."""
    memory = EncodingMemory(seconds=10.0)
    memory.keep("a", heard(3), 0.0)
    assert memory.find("a", 10.0) is not None
    assert memory.find("a", 10.1) is None
    assert memory.held_bytes == 0


def test_memory_gives_up_the_least_recently_used() -> None:
    """Reading keeps an utterance; the bound in bytes holds."""
    memory = EncodingMemory(most_bytes=3 * 16)
    for name in "abc":
        memory.keep(name, heard(1), 0.0)
    assert memory.find("a", 1.0) is not None
    memory.keep("d", heard(1), 2.0)
    assert [name for name in "abcd" if memory.find(name, 3.0)] == ["a", "c", "d"]


def test_memory_keeps_the_last_pass_over_an_utterance() -> None:
    """Kept again under one key it takes the place of the first."""
    memory = EncodingMemory()
    memory.keep("a", heard(5), 0.0)
    memory.keep("a", heard(2), 1.0)
    found = memory.find("a", 2.0)
    assert found is not None
    assert len(found.output) == 2
    assert memory.held_bytes == 2 * 16


def test_memory_does_not_keep_what_is_larger_than_all_of_it() -> None:
    """It is then heard again each time."""
    memory = EncodingMemory(most_bytes=31)
    memory.keep("a", heard(2), 0.0)
    assert memory.find("a", 0.0) is None


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 9), st.floats(0, 5)), max_size=40))
def test_memory_never_holds_more_than_its_bounds(steps: list[tuple[str, int, float]]) -> None:
    """Whatever is kept in whatever order; its count of bytes is true."""
    memory, now_s = EncodingMemory(seconds=8.0, most_bytes=12 * 16), 0.0
    kept: dict[str, tuple[float, int]] = {}
    for name, positions, wait_s in steps:
        now_s += wait_s
        memory.keep(name, heard(positions), now_s)
        kept[name] = now_s, positions
        assert memory.held_bytes <= 12 * 16
        there = [key for key in kept if memory.find(key, now_s)]
        assert memory.held_bytes == 16 * sum(kept[key][1] for key in there)
        assert all(now_s - kept[key][0] <= 8.0 for key in there)
        assert len(memory) == len(there)
