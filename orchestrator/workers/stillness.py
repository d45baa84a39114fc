"""Which windows of a stream the voice detector need not look at now, since next to nothing is in them (heart).

A muted microphone sends zeros, or what a codec makes of them. The network says "no speech" to that, so it is not asked.
Its state drifts in silence all the same, and with it what it makes of the next word: windows that were answered for it
are owed to it. They are judged some at a time, and before the next window that holds anything, until the state has come
to rest.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FLOOR = 4
"""No sample of a still window is further from zero (-78 dBFS). Of 120 recordings of speech that were made so quiet none
had a probability over 0.21, nor at twice the level; at four times seven were heard."""

SETTLED_WINDOWS = 31
"""So many still windows in a row (1 s) are judged before the next are answered without."""

REST_WINDOWS = 1_250
"""After so many (40 s) the state is where silence leads it from anywhere: what follows is owed no more."""

MOST_OWED = 16
"""So many windows are judged at a time (0.5 s, some 3 ms of work)."""

MOST_HELD = 128
"""So many are owed at most (4 s). A file brings more silence in one piece, which is judged then, as any sound is."""

_NO_SPEECH = 0.05
"""Far below whatever ends speech (`modalities.audio.segmenter`)."""


class Stillness:
    """Follows one stream of windows, all of which come by in order, either through `passes` or through `judged`.

    What is owed it knows by number: the sound stays where it lies.
    """

    __slots__ = ("_owed", "_still")

    def __init__(self) -> None:
        self._still = 0
        self._owed = range(0)

    def passes(self, numbers: range, sound: Sequence[NDArray[np.int16]]) -> bool:
        """Takes windows that need not be judged now; says whether these need not. `sound`: their samples, in pieces."""
        if self._still < SETTLED_WINDOWS or not all(map(_is_still, sound)):
            return False
        if self._still < REST_WINDOWS:
            if len(self._owed) + len(numbers) > MOST_HELD:
                return False
            self._owed = range(self._owed.start if self._owed else numbers.start, numbers.stop)
        self._still += len(numbers)
        return True

    @property
    def is_settled(self) -> bool:
        """Whether still windows would pass now."""
        return self._still >= SETTLED_WINDOWS

    @property
    def owes_many(self) -> bool:
        """Whether it is time to judge some of what was passed."""
        return len(self._owed) >= MOST_OWED

    def owed(self) -> range:
        """Returns, once, the windows that are to be judged before anything else."""
        owed, self._owed = self._owed, range(0)
        return owed

    def judged(self, windows: NDArray[np.int16], probabilities: Sequence[float]) -> None:
        """Notes what the detector made of windows, shape (n, 512)."""
        is_still = max(probabilities, default=0.0) < _NO_SPEECH and _is_still(windows)
        self._still = self._still + len(windows) if is_still else 0

    def begin(self) -> None:
        """What comes next does not follow what came before."""
        self._still = 0
        self._owed = range(0)


def _is_still(sound: NDArray[np.int16]) -> bool:
    return len(sound) > 0 and int(sound.min()) >= -FLOOR and int(sound.max()) <= FLOOR
