"""Cuts a long recording into pieces that a recogniser takes, each at the quietest place that will do."""

from collections.abc import Iterator

import numpy as np

from modalities.ports import SPEECH_RATE_HZ, Pcm

LONGEST = 28 * SPEECH_RATE_HZ
"""Recognisers hear 30 s at a time, and do better with a margin."""

SHORTEST = 10 * SPEECH_RATE_HZ
"""Short pieces lack context."""

_FRAME = SPEECH_RATE_HZ // 50
_WINDOW = 15
"""Frames of 20 ms: a cut is in the middle of 300 ms that are quiet together."""


class PauseCutter:
    """Takes 16 kHz sound as it comes and gives pieces of `SHORTEST` to `LONGEST` samples, the last one excepted. How the
    sound is cut into chunks makes no difference. Holds one piece."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: Pcm = np.zeros(0, dtype=np.int16)

    def feed(self, pcm: Pcm) -> Iterator[Pcm]:
        """Takes more sound; yields the pieces that are complete now."""
        self._held = np.concatenate((self._held, pcm))
        while len(self._held) >= LONGEST:
            cut = quietest(self._held[:LONGEST])
            piece, self._held = self._held[:cut], self._held[cut:]
            yield piece

    def close(self) -> Pcm:
        """The sound ends: returns what is left."""
        held, self._held = self._held, np.zeros(0, dtype=np.int16)
        return held


def quietest(pcm: Pcm) -> int:
    """Returns where a piece is to end: in the middle of the quietest 300 ms behind `SHORTEST`, of several the last."""
    frames = pcm[: len(pcm) // _FRAME * _FRAME].reshape(-1, _FRAME).astype(np.float64)
    power = np.square(frames).mean(axis=1)
    sums = np.concatenate(([0.0], np.cumsum(power)))
    windows = sums[_WINDOW:] - sums[:-_WINDOW]
    first = SHORTEST // _FRAME
    late = windows[first:]
    at = first + len(late) - 1 - int(np.argmin(late[::-1]))
    return (at + _WINDOW // 2) * _FRAME
