"""Notices where speech pauses and hears how the phrase closed (heart): the last two seconds, once per pause.

Measured on one core: the contour of every window costs 85 % of what the voice detector itself takes for one stream
(0.18 of 0.21 ms). The last two seconds at once take 0.9 ms, and a pause comes every second or two.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from modalities.audio.prosody import WINDOW_MS, Prosody, contour, prosody
from modalities.audio.segmenter import BEGIN_WINDOWS, HYSTERESIS, WINDOW
from modalities.ports import Pcm

QUIET_WINDOWS = 2
"""So much silence is a pause (64 ms): closures of consonants are shorter, and the words are not known before either."""

HEARD_WINDOWS = 62
"""What is looked at: about two seconds before the pause."""

GONE_WINDOWS = 62
"""Who says nothing for two seconds has taken no breath but begins another turn: the rhythm starts anew."""

LEAST_PAUSE_MS = 200
"""Silence that counts in the rhythm; what is shorter stands inside phrases of every speaker."""

PAUSES_KEPT = 8

_SPEECH = 0.5
_QUIET = _SPEECH - HYSTERESIS


@dataclass(frozen=True, slots=True)
class PhraseEnd:
    """Speech paused at `stop`, the first sample behind its last window. `prosody` is that of the two seconds before,
    `earlier_ms` the last pauses that the speaker went on from without being gone in between."""

    stop: int
    prosody: Prosody
    earlier_ms: tuple[int, ...] = ()


class PhraseEnds:
    """Follows one stream. Holds its last 64 windows (64 KiB), from its first one on."""

    __slots__ = ("_held", "_held_from", "_next", "_pauses", "_run", "_speaking", "_speech_stop")

    def __init__(self) -> None:
        self._held: Pcm = np.zeros((HEARD_WINDOWS + QUIET_WINDOWS, WINDOW), dtype=np.int16)
        self._pauses: deque[int] = deque(maxlen=PAUSES_KEPT)
        self._begin(0)

    def _begin(self, window: int) -> None:
        self._held_from = self._next = window
        self._speech_stop = window - GONE_WINDOWS - 1
        self._run = 0
        self._speaking = False
        self._pauses.clear()

    def observe(
        self, windows: Pcm, probabilities: Sequence[float], first_window: int
    ) -> tuple[PhraseEnd, ...]:
        """Takes successive windows, shape (n, 512), with their speech probabilities; returns the pauses in them.

        Windows that do not follow the last ones begin anew: nothing was heard before them.
        """
        if first_window != self._next:
            self._begin(first_window)
        ends = []
        for window, probability in zip(windows, probabilities, strict=True):
            self._held[self._next % len(self._held)] = window
            self._next += 1
            self._run = self._run + 1 if probability >= _SPEECH else 0
            silence = self._next - 1 - self._speech_stop
            if probability >= _QUIET and (
                self._speaking or silence <= GONE_WINDOWS or self._run >= BEGIN_WINDOWS
            ):
                if not self._speaking:
                    self._resume(silence)
                self._speech_stop = self._next
            elif self._speaking and silence + 1 >= QUIET_WINDOWS:
                self._speaking = False
                ends.append(self._end())
        return tuple(ends)

    def _resume(self, silence: int) -> None:
        self._speaking = True
        if silence > GONE_WINDOWS:
            self._pauses.clear()
        elif silence * WINDOW_MS >= LEAST_PAUSE_MS:
            self._pauses.append(silence * WINDOW_MS)

    def _end(self) -> PhraseEnd:
        first = max(self._held_from, self._speech_stop - HEARD_WINDOWS)
        places = np.arange(first, self._speech_stop) % len(self._held)
        heard: Pcm = self._held[places].reshape(-1)
        return PhraseEnd(self._speech_stop * WINDOW, prosody(contour(heard)), tuple(self._pauses))
