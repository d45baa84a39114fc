"""µ-law and A-law (ITU-T G.711), by table. Of a 16-bit sample µ-law sees the upper 14 bits and A-law the upper 13."""

import numpy as np
from numpy.typing import NDArray

from modalities.ports import Pcm

RATE_HZ = 8_000
Codes = NDArray[np.uint8]

_MU_BIAS = 0x84
_MU_CLIP = 32_635


def encode_mulaw(pcm: Pcm) -> bytes:
    """Returns one µ-law byte per sample."""
    return _MU_OF_LINEAR[pcm.view(np.uint16)].tobytes()


def decode_mulaw(data: bytes | memoryview) -> Pcm:
    """Returns one 16-bit sample per µ-law byte."""
    return _LINEAR_OF_MU[np.frombuffer(data, dtype=np.uint8)]


def encode_alaw(pcm: Pcm) -> bytes:
    """Returns one A-law byte per sample."""
    return _A_OF_LINEAR[pcm.view(np.uint16)].tobytes()


def decode_alaw(data: bytes | memoryview) -> Pcm:
    """Returns one 16-bit sample per A-law byte."""
    return _LINEAR_OF_A[np.frombuffer(data, dtype=np.uint8)]


def _expand_mu() -> Pcm:
    """The 256 values of µ-law: inverted bits, sign, three bits of segment, four of step (G.711 table 2)."""
    code = ~np.arange(256, dtype=np.uint8)
    segment = (code >> 4).astype(np.int32) & 0x07
    magnitude = ((((code.astype(np.int32) & 0x0F) << 3) + _MU_BIAS) << segment) - _MU_BIAS
    return np.where(code & 0x80, -magnitude, magnitude).astype(np.int16)


def _expand_a() -> Pcm:
    """The 256 values of A-law: even bits inverted, sign, three bits of segment, four of step (G.711 table 1)."""
    code = np.arange(256, dtype=np.uint8) ^ 0x55
    segment = (code >> 4).astype(np.int32) & 0x07
    step = ((code.astype(np.int32) & 0x0F) << 4) + 8
    magnitude = np.where(segment == 0, step, (step + 0x100) << np.maximum(segment - 1, 0))
    return np.where(code & 0x80, magnitude, -magnitude).astype(np.int16)


def _linear() -> NDArray[np.int32]:
    """All 65,536 samples in the order of their unsigned bit patterns."""
    return np.arange(65_536, dtype=np.uint16).view(np.int16).astype(np.int32)


def _magnitude(linear: NDArray[np.int32]) -> NDArray[np.int32]:
    """Ones' complement for negative samples, as in the reference code (ITU-T G.191), so that -32768 has a magnitude."""
    return np.where(linear < 0, ~linear, linear).astype(np.int32)


def _segment_of(magnitude: NDArray[np.int32], lowest_bit: int) -> NDArray[np.int32]:
    """How many bits a magnitude has above `lowest_bit`, 0 to 7."""
    bits: NDArray[np.int32] = np.frexp(magnitude.astype(np.float64))[1]
    return np.minimum(np.maximum(bits - lowest_bit, 0), 7)


def _compress_mu() -> Codes:
    linear = _linear()
    negative = linear < 0
    magnitude = np.minimum(_magnitude(linear), _MU_CLIP) + _MU_BIAS
    segment = _segment_of(magnitude, 8)
    step = (magnitude >> (segment + 3)) & 0x0F
    code: NDArray[np.int32] = (negative.astype(np.int32) << 7) | (segment << 4) | step
    return (~code & 0xFF).astype(np.uint8)


def _compress_a() -> Codes:
    linear = _linear()
    negative = linear < 0
    magnitude = _magnitude(linear)
    segment = _segment_of(magnitude, 8)
    step = (magnitude >> np.where(segment == 0, 4, segment + 3)) & 0x0F
    positive_bit = np.where(negative, 0, 0x80).astype(np.int32)
    code: NDArray[np.int32] = (positive_bit | (segment << 4) | step) ^ 0x55
    return code.astype(np.uint8)


_LINEAR_OF_MU = _expand_mu()
_LINEAR_OF_A = _expand_a()
_MU_OF_LINEAR = _compress_mu()
_A_OF_LINEAR = _compress_a()
