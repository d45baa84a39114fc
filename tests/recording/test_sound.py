"""Sound in blocks: without loss, each readable by itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.recording.sound import Block, Mark, deliveries, fold, unfold


@given(st.lists(st.integers(-32_768, 32_767), max_size=200))
def test_a_block_keeps_every_sample(samples: list[int]) -> None:
    """Any int16 samples come back, also where neighbours differ by more than an int16 holds."""
    pcm = np.array(samples, np.int16)
    assert np.array_equal(unfold(fold(pcm)), pcm)


def test_a_block_of_a_quiet_sound_is_smaller_than_the_sound() -> None:
    """What makes up most of a conversation, little noise, takes less than half the room."""
    noise = np.random.default_rng(1).integers(-30, 30, 16_000).astype(np.int16)
    assert len(fold(noise)) < noise.nbytes / 2


def test_a_damaged_block_is_told() -> None:
    """Bytes that are no block raise, and give no noise."""
    with pytest.raises(ValueError, match="damaged"):
        unfold(b"nonsense")


def test_deliveries_come_back_with_their_times_and_blanked_ones_as_silence() -> None:
    """Each delivery gets its own samples; where the sound was blanked there is as much silence."""
    marks = (Mark(10, 0, 3, True), Mark(20, 5, 2, False))
    block = Block(0, 1, 5, marks)
    first, second = deliveries(block, np.arange(5, dtype=np.int16))
    assert (first.at_us, first.position, first.pcm.tolist(), first.live) == (10, 0, [0, 1, 2], True)
    assert (second.at_us, second.position, second.pcm.tolist(), second.live) == (20, 5, [3, 4], False)
    assert [one.pcm.tolist() for one in deliveries(block, np.zeros(0, np.int16))] == [[0, 0, 0], [0, 0]]
