import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.audio.frame import SampleJoiner, bytes_of, duration_ms, pcm_of, samples_in


@given(st.binary(max_size=400), st.lists(st.integers(0, 30), max_size=40))
def test_sample_joiner_loses_no_byte_at_any_cut(data: bytes, sizes: list[int]) -> None:
    """Chunks of any length give the samples of the whole; only an odd last byte is still waiting."""
    joiner = SampleJoiner()
    pieces, at = [], 0
    for size in [*sizes, len(data)]:
        pieces.append(joiner.feed(data[at : at + size]))
        at += size
    whole = data[: len(data) // 2 * 2]
    assert bytes_of(np.concatenate(pieces)) == whole


def test_sample_joiner_cleared_begins_with_a_whole_sample() -> None:
    """A byte waiting from before a clear does not shift what follows into noise."""
    joiner = SampleJoiner()
    joiner.feed(b"\x01\x02\x03")
    joiner.clear()
    assert joiner.feed(b"\x05\x00").tolist() == [5]


def test_pcm_is_little_endian() -> None:
    """The wire's byte order does not depend on the machine."""
    assert pcm_of(b"\x01\x00\xff\xff").tolist() == [1, -1]
    assert bytes_of(np.array([258], dtype=np.int16)) == b"\x02\x01"


def test_pcm_of_half_a_sample_is_refused() -> None:
    """An odd number of bytes is a caller's mistake and raises."""
    with pytest.raises(ValueError, match="multiple"):
        pcm_of(b"abc")


def test_frame_arithmetic_rounds_down() -> None:
    """20 ms at 16 kHz are 320 samples; a sample less is 19 ms."""
    assert samples_in(20, 16_000) == 320
    assert duration_ms(320, 16_000) == 20
    assert duration_ms(319, 16_000) == 19
