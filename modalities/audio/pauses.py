"""Cuts a long recording into pieces that a recogniser takes, each at the quietest place that will do."""

import numpy as np

from modalities.ports import SPEECH_RATE_HZ, Pcm

LONGEST = 20 * SPEECH_RATE_HZ
"""Recognisers hear 30 s at a time; but whoever talks to the same one waits for a whole piece."""

SHORTEST = 8 * SPEECH_RATE_HZ
"""Short pieces lack context."""

_FRAME = SPEECH_RATE_HZ // 50
_WINDOW = 15
"""Frames of 20 ms: a cut is in the middle of 300 ms that are quiet together."""

_AS_QUIET = 1.5
"""So much more power is no difference: 1.8 dB."""


class PauseCutter:
    """Takes 16 kHz sound as it comes and gives pieces of `SHORTEST` to `LONGEST` samples, the last one excepted. How
    the sound is cut into chunks makes no difference. Holds one piece and the newest chunk."""

    __slots__ = ("_chunks", "_length")

    def __init__(self) -> None:
        self._chunks: list[Pcm] = []
        self._length = 0

    def feed(self, pcm: Pcm) -> list[Pcm]:
        """Takes more sound; returns the pieces that are complete now."""
        self._chunks.append(pcm)
        self._length += len(pcm)
        if self._length < LONGEST:
            return []
        held, pieces = self.close(), []
        while len(held) >= LONGEST:
            cut = quietest(held[:LONGEST])
            pieces.append(held[:cut].copy())
            held = held[cut:]
        self._chunks, self._length = [held.copy()], len(held)
        return pieces

    def close(self) -> Pcm:
        """The sound ends: returns what is left."""
        chunks, self._chunks, self._length = self._chunks, [], 0
        return np.concatenate((np.zeros(0, dtype=np.int16), *chunks))


def quietest(pcm: Pcm) -> int:
    """Returns where a piece is to end: in the middle of the quietest 300 ms behind `SHORTEST`; of several that are
    about as quiet, the last."""
    frames = pcm[: len(pcm) // _FRAME * _FRAME].reshape(-1, _FRAME).astype(np.float64)
    power = np.square(frames).mean(axis=1)
    sums = np.concatenate(([0.0], np.cumsum(power)))
    windows = sums[_WINDOW:] - sums[:-_WINDOW]
    first = SHORTEST // _FRAME
    late = windows[first:]
    at = first + int(np.flatnonzero(late <= _AS_QUIET * late.min() + 1)[-1])
    return (at + _WINDOW // 2) * _FRAME
