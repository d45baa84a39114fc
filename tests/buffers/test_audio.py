import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.audio.frame import pcm_of
from modalities.ports import Pcm
from orchestrator.buffers.audio import MAX_GAPS, SpeechBuffer
from orchestrator.buffers.ring import Overrun
from orchestrator.errors import Overloaded

FRAME = 320


def _loud(size: int, level: int = 1_000) -> Pcm:
    return np.full(size, level, dtype=np.int16)


def test_speech_buffer_stall_then_burst_is_placed_by_its_stamps() -> None:
    """F-S2: a 2 s stall of the network, then everything at once: total = the time on the stamps, no silence added."""
    buffer = SpeechBuffer(16_000 * 60)
    frames = 500
    late = list(range(200, 300))
    for number in [*range(200), *late, *range(300, frames)]:
        buffer.append_at(number * FRAME, _loud(FRAME, number + 1))
    assert buffer.position == frames * FRAME
    assert buffer.gaps == ()
    assert pcm_of(buffer.extent(250 * FRAME, 251 * FRAME)).tolist() == [251] * FRAME


def test_speech_buffer_muted_client_leaves_its_pause() -> None:
    """F-S2: while nothing is sent time goes on: the pause is there as marked silence of exactly its length."""
    buffer = SpeechBuffer(16_000 * 60)
    buffer.append_at(0, _loud(FRAME))
    buffer.append_at(16_000 * 3, _loud(FRAME))
    assert buffer.gaps == ((FRAME, 48_000),)
    assert buffer.position == 48_000 + FRAME
    assert not np.any(pcm_of(buffer.extent(FRAME, 48_000)))
    assert buffer.statistics().silence == 48_000 - FRAME


def test_speech_buffer_repeated_and_overlapping_packets_are_cut() -> None:
    """What was written stays: a packet that comes twice adds nothing, an overlap only its new part."""
    buffer = SpeechBuffer(4_000)
    buffer.append_at(0, _loud(FRAME, 1))
    buffer.append_at(0, _loud(FRAME, 2))
    buffer.append_at(FRAME // 2, _loud(FRAME, 3))
    assert buffer.position == FRAME + FRAME // 2
    assert pcm_of(buffer.extent(0, buffer.position)).tolist() == [1] * FRAME + [3] * (FRAME // 2)
    assert buffer.statistics().cut == FRAME + FRAME // 2


@given(st.lists(st.tuples(st.integers(-300, 900), st.integers(0, 400)), max_size=30))
def test_speech_buffer_equals_a_plain_list(packets: list[tuple[int, int]]) -> None:
    """Any packets, early, late or overlapping: the buffer equals a list filled by the same rule, gaps marked."""
    buffer = SpeechBuffer(100_000)
    plain: list[int] = []
    silent: set[int] = set()
    for number, (offset, size) in enumerate(packets, 1):
        position = max(0, len(plain) + offset)
        buffer.append_at(position, _loud(size, number))
        new = [number] * size
        new = new[max(0, len(plain) - position) :]
        if new and position > len(plain):
            silent.update(range(len(plain), position))
            plain += [0] * (position - len(plain))
        plain += new
    assert buffer.position == len(plain)
    assert pcm_of(buffer.extent(0, len(plain))).tolist() == plain
    marked = {sample for start, stop in buffer.gaps for sample in range(start, stop)}
    assert marked == silent


@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(1, 150)), min_size=1, max_size=60),
    st.integers(1, 500),
)
def test_speech_buffer_never_grows_and_forgets_old_gaps(
    packets: list[tuple[int, int]], capacity: int
) -> None:
    """At most `capacity` samples can be read, and no gap lies outside of them."""
    buffer = SpeechBuffer(capacity)
    for gap, size in packets:
        buffer.append_at(buffer.position + gap, _loud(size))
        assert buffer.position - buffer.oldest <= capacity
        assert all(buffer.oldest <= start < stop <= buffer.position for start, stop in buffer.gaps)
    assert len(buffer.extent(buffer.oldest, buffer.position)) == 2 * (buffer.position - buffer.oldest)


def test_speech_buffer_list_of_gaps_is_bounded() -> None:
    """An hour of packet loss does not collect gaps without end: the oldest are forgotten."""
    buffer = SpeechBuffer(10**6)
    for number in range(MAX_GAPS + 50):
        buffer.append_at(number * 20, _loud(10))
    assert len(buffer.gaps) == MAX_GAPS


def test_speech_buffer_absurd_jump_costs_no_more_than_the_ring() -> None:
    """A stamp a year ahead is filled in time bounded by the ring, and the count still equals the stamp."""
    buffer = SpeechBuffer(1_000)
    buffer.append(_loud(10))
    buffer.append_at(16_000 * 86_400 * 365, _loud(5))
    assert buffer.position == 16_000 * 86_400 * 365 + 5
    assert pcm_of(buffer.extent(buffer.position - 6, buffer.position)).tolist() == [
        0,
        1_000,
        1_000,
        1_000,
        1_000,
        1_000,
    ]


def test_speech_buffer_reading_what_was_overwritten_says_so() -> None:
    """An extent that is gone raises instead of giving other sound in its place."""
    buffer = SpeechBuffer(100)
    buffer.append(_loud(150))
    with pytest.raises(Overrun):
        buffer.extent(0, 120)
    with pytest.raises(LookupError):
        buffer.extent(100, 151)


def test_speech_buffer_kept_sound_is_not_overwritten() -> None:
    """A manual buffer refuses new sound when full; what is kept stays, and after its commit there is room again."""
    buffer = SpeechBuffer(100)
    buffer.append(_loud(60, 1))
    buffer.keep_from(60)
    buffer.append(_loud(80, 2))
    with pytest.raises(Overloaded) as caught:
        buffer.append(_loud(21, 3))
    assert caught.value.retry_after_s > 0
    assert buffer.position == 140
    assert pcm_of(buffer.extent(60, 140)).tolist() == [2] * 80
    buffer.append(_loud(20, 3))
    buffer.keep_from(None)
    buffer.append(_loud(100, 4))
    assert pcm_of(buffer.extent(160, 260)).tolist() == [4] * 100
    assert buffer.statistics().refused == 21


def test_speech_buffer_refused_gap_leaves_no_trace() -> None:
    """Where a gap and its sound do not fit together neither of them is written."""
    buffer = SpeechBuffer(100)
    buffer.keep_from(0)
    buffer.append(_loud(50))
    with pytest.raises(Overloaded):
        buffer.append_at(90, _loud(20))
    assert buffer.position == 50
    assert buffer.gaps == ()
