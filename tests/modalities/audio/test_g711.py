import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from modalities.audio.g711 import decode_alaw, decode_mulaw, encode_alaw, encode_mulaw

ALL_CODES = bytes(range(256))


@pytest.mark.parametrize(
    ("sample", "mulaw", "alaw"),
    # The ends of the segments in the tables of ITU-T G.711, scaled to 16 bits (µ: 14 bits « 2, A: 13 bits « 3).
    [
        (0, 0xFF, 0xD5),
        (-1, 0x7F, 0x55),
        (31, 0xFB, 0xD4),
        (32, 0xFB, 0xD7),
        (1000, 0xCE, 0xFA),
        (-1000, 0x4E, 0x7A),
        (8031, 0xA0, 0x8A),
        (16_383, 0x8F, 0xBA),
        (32_767, 0x80, 0xAA),
        (-32_768, 0x00, 0x2A),
    ],
)
def test_g711_encodes_known_samples(sample: int, mulaw: int, alaw: int) -> None:
    """Samples get the codes of the standard's tables."""
    pcm = np.array([sample], dtype=np.int16)
    assert (encode_mulaw(pcm)[0], encode_alaw(pcm)[0]) == (mulaw, alaw)


@pytest.mark.parametrize(
    ("code", "mulaw", "alaw"),
    [
        (0x00, -32_124, -5_504),
        (0x80, 32_124, 5_504),
        (0xFF, 0, 848),
        (0x7F, 0, -848),
        (0x2A, -5_372, -32_256),
    ],
)
def test_g711_decodes_known_codes(code: int, mulaw: int, alaw: int) -> None:
    """Codes get the quantised values of the standard's tables."""
    assert (decode_mulaw(bytes([code]))[0], decode_alaw(bytes([code]))[0]) == (mulaw, alaw)


def test_g711_silence_of_a_telephone_line_is_silence() -> None:
    """0xFF (µ) and 0xD5 (A), which lines send when nobody speaks, decode to at most one step around zero."""
    assert decode_mulaw(b"\xff" * 160).tolist() == [0] * 160
    assert decode_alaw(b"\xd5" * 160).tolist() == [8] * 160


def test_g711_coding_again_changes_nothing() -> None:
    """A decoded value encodes to itself again: repeated coding on the way of a call adds no loss."""
    for encode, decode in ((encode_mulaw, decode_mulaw), (encode_alaw, decode_alaw)):
        values = decode(ALL_CODES)
        assert decode(encode(values)).tolist() == values.tolist()


@given(arrays.arrays(np.int16, st.integers(0, 500)))
def test_g711_keeps_every_sample_within_half_a_step(pcm: np.ndarray[tuple[int], np.dtype[np.int16]]) -> None:
    """The error is at most half of the segment's step (1/32 of the value), the clipped top of µ-law aside."""
    for encode, decode in ((encode_mulaw, decode_mulaw), (encode_alaw, decode_alaw)):
        exact = np.clip(pcm.astype(np.int32), -32_635, 32_635)
        error = np.abs(decode(encode(pcm)).astype(np.int32) - exact)
        assert np.all(error <= np.maximum(np.abs(exact) / 32 + 8, 8) + 4)


@given(arrays.arrays(np.int16, st.integers(1, 100)))
def test_g711_reads_strided_views(pcm: np.ndarray[tuple[int], np.dtype[np.int16]]) -> None:
    """A view on every second sample encodes like its copy."""
    assert encode_mulaw(pcm[::2]) == encode_mulaw(pcm[::2].copy())
    assert encode_alaw(pcm[::2]) == encode_alaw(pcm[::2].copy())
