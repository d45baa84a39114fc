"""Bytes and samples of sound: cutting a byte stream into whole samples and counting them as time."""

import numpy as np

from modalities.ports import Pcm

_LITTLE_ENDIAN = np.dtype("<i2")


def samples_in(duration_ms: int, rate_hz: int) -> int:
    """Returns how many samples last `duration_ms` (rounded down)."""
    return duration_ms * rate_hz // 1_000


def duration_ms(samples: int, rate_hz: int) -> int:
    """Returns how many whole milliseconds `samples` last."""
    return samples * 1_000 // rate_hz


def pcm_of(data: bytes | bytearray | memoryview) -> Pcm:
    """Returns little-endian int16 bytes as samples, without a copy where the machine is little-endian.

    Raises `ValueError` on an odd number of bytes.
    """
    return np.frombuffer(data, dtype=_LITTLE_ENDIAN).astype(np.int16, copy=False)


def bytes_of(pcm: Pcm) -> bytes:
    """Returns samples as little-endian int16 bytes."""
    return pcm.astype(_LITTLE_ENDIAN, copy=False).tobytes()


class SampleJoiner:
    """Cuts a stream of bytes that is not aligned to samples into whole ones: an odd byte waits for the next chunk."""

    __slots__ = ("_odd",)

    def __init__(self) -> None:
        self._odd = b""

    def feed(self, data: bytes | bytearray | memoryview) -> Pcm:
        """Returns the samples that are complete now; may be none. They lie in `data` where that is whole samples."""
        joined = b"".join((self._odd, data)) if self._odd else data
        whole = len(joined) & ~1
        self._odd = bytes(joined[whole:])
        return pcm_of(memoryview(joined)[:whole])

    def clear(self) -> None:
        """Forgets a waiting byte: the next chunk begins with a whole sample."""
        self._odd = b""
