"""Finds utterances in speech probabilities: where they began and ended, in samples of the 16 kHz stream.

One window is 512 samples (32 ms); window i covers samples [512 i, 512 i + 512). All durations are audio time: silence
on the wire is not silence in the sound.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from modalities.ports import SPEECH_RATE_HZ

WINDOW = 512
"""Samples per speech probability."""

HYSTERESIS = 0.15
"""Speech goes on while the probability is at least the threshold less this."""

LOWEST_END_THRESHOLD = 0.01
BEGIN_WINDOWS = 2
"""So many windows in a row make a beginning (64 ms). Of 15 recordings without speech one window is fooled by 3, two by
none; a third would find no more and make every interruption 32 ms later."""

TAIL_SAMPLES = 3 * WINDOW
"""Kept after the last window of speech (96 ms): final fricatives fade below the threshold before they end."""

_SAMPLES_PER_MS = SPEECH_RATE_HZ // 1_000


@dataclass(frozen=True, slots=True)
class SegmenterSettings:
    """`silence_ms` ends an utterance; one of `max_utterance_s` is ended by force and may begin again at once."""

    threshold: float = 0.5
    prefix_padding_ms: int = 300
    silence_ms: int = 500
    max_utterance_s: float = 30.0


@dataclass(frozen=True, slots=True)
class SpeechBegan:
    """Speech is in the sound from `start_sample` on (prefix padding included); known at `detected_sample`."""

    start_sample: int
    detected_sample: int


@dataclass(frozen=True, slots=True)
class SpeechEnded:
    """The utterance that began last ends at `stop_sample` (a short tail included); known at `detected_sample`.

    `forced`: it was cut for its length while the speaker went on.
    """

    stop_sample: int
    detected_sample: int
    forced: bool = False


SegmentEvent = SpeechBegan | SpeechEnded


class _State(Enum):
    QUIET = "quiet"
    SPEAKING = "speaking"


class Segmenter:
    """Turns windows into beginnings and ends, which alternate and never overlap.

    The result depends on the probabilities only, not on how they are cut into calls.
    """

    __slots__ = (
        "_end_threshold",
        "_floor",
        "_last_speech_stop",
        "_max_samples",
        "_next_window",
        "_padding",
        "_run_start",
        "_run_windows",
        "_silence",
        "_start",
        "_state",
        "_threshold",
    )

    def __init__(self, settings: SegmenterSettings) -> None:
        self.configure(settings)
        self._state = _State.QUIET
        self._next_window = 0
        self._floor = 0
        self._last_speech_stop = 0
        self._run_start = 0
        self._run_windows = 0
        self._start = 0

    def configure(self, settings: SegmenterSettings) -> None:
        """Changes the rules from the next window on; a running utterance goes on under the new ones."""
        self._threshold = settings.threshold
        self._end_threshold = max(settings.threshold - HYSTERESIS, LOWEST_END_THRESHOLD)
        self._padding = settings.prefix_padding_ms * _SAMPLES_PER_MS
        self._silence = max(settings.silence_ms * _SAMPLES_PER_MS, WINDOW)
        self._max_samples = max(int(settings.max_utterance_s * SPEECH_RATE_HZ), WINDOW)

    @property
    def speaking(self) -> bool:
        """An utterance has begun and not ended."""
        return self._state is _State.SPEAKING

    @property
    def position(self) -> int:
        """The first sample that was not observed yet."""
        return self._next_window * WINDOW

    @property
    def last_speech_stop(self) -> int:
        """The first sample behind the last window of speech (where the last reset was, if none came)."""
        return self._last_speech_stop

    @property
    def silence_ms(self) -> int:
        """Milliseconds of sound observed since the last window of speech (since the last reset, if none came)."""
        return max(0, self.position - self._last_speech_stop) // _SAMPLES_PER_MS

    def observe(self, probabilities: Sequence[float], first_window: int) -> tuple[SegmentEvent, ...]:
        """Takes the probabilities of windows `first_window`, `first_window` + 1 …; returns what they began and ended.

        Windows seen before are ignored; windows that were left out (marked silence) count as silence.
        """
        events: list[SegmentEvent] = []
        self._pass_over(first_window, events)
        for probability in probabilities[max(0, self._next_window - first_window) :]:
            self._take(probability, events)
        return tuple(events)

    def settle(self) -> tuple[SegmentEvent, ...]:
        """Ends a running utterance at once where the silence heard so far is enough under the present rules."""
        events: list[SegmentEvent] = []
        if self.speaking and self.position - self._last_speech_stop >= self._silence:
            self._end(min(self._last_speech_stop + TAIL_SAMPLES, self.position), self.position, False, events)
        return tuple(events)

    def reset(self, at_sample: int) -> None:
        """Forgets a running utterance without a word (commit, clear); the next begins not before `at_sample`."""
        self._state = _State.QUIET
        self._run_windows = 0
        self._floor = max(self._floor, at_sample)
        self._last_speech_stop = max(self._last_speech_stop, at_sample)

    def _pass_over(self, first_window: int, events: list[SegmentEvent]) -> None:
        """Counts windows up to `first_window` as silent; takes bounded time however many they are."""
        while self._state is _State.SPEAKING and self._next_window < first_window:
            self._take(0.0, events)
        if self._next_window < first_window:
            self._next_window = first_window
            self._run_windows = 0

    def _take(self, probability: float, events: list[SegmentEvent]) -> None:
        start = self._next_window * WINDOW
        stop = start + WINDOW
        self._next_window += 1
        if stop <= self._floor:
            return
        if self._state is _State.QUIET:
            self._listen(probability, start, stop, events)
        else:
            self._follow(probability, stop, events)

    def _listen(self, probability: float, start: int, stop: int, events: list[SegmentEvent]) -> None:
        if not probability >= self._threshold:
            self._run_windows = 0
            return
        if self._run_windows == 0:
            self._run_start = start
        self._run_windows += 1
        self._last_speech_stop = stop
        if self._run_windows >= BEGIN_WINDOWS:
            self._start = max(self._run_start - self._padding, self._floor)
            self._state = _State.SPEAKING
            events.append(SpeechBegan(self._start, stop))

    def _follow(self, probability: float, stop: int, events: list[SegmentEvent]) -> None:
        if probability >= self._end_threshold:
            self._last_speech_stop = stop
        if stop - self._last_speech_stop >= self._silence:
            self._end(min(self._last_speech_stop + TAIL_SAMPLES, stop), stop, False, events)
        elif stop + WINDOW - self._start > self._max_samples:
            self._end(stop, stop, True, events)

    def _end(self, stop: int, detected: int, forced: bool, events: list[SegmentEvent]) -> None:
        self._state = _State.QUIET
        self._run_windows = 0
        self._floor = stop
        events.append(SpeechEnded(stop, detected, forced))
