"""Recordings as the turn detector meets them: their windows' speech probabilities, and words on demand.

What a recogniser or the voice detector makes of a stretch of sound is kept for the run, so that a sweep over settings
costs little more than its first point.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.recordings import Recording
from modalities.audio.phrase_end import PhraseEnd, PhraseEnds
from modalities.audio.segmenter import WINDOW
from modalities.ports import SPEECH_RATE_HZ, Clip, Pcm, SpeechRecognizer, VoiceActivityDetector
from orchestrator.clients.recording import read_recording

SILENCE_BEHIND_S = 5
"""Put behind every recording, as loud as its quietest part: the longest patience is to come to its end."""


@dataclass(slots=True)
class Take:
    """A recording at 16 kHz with silence behind it. Positions in samples; `true_end` None: the speaker has not
    finished, or nobody speaks."""

    recording: Recording
    sound: Pcm
    stop: int
    true_end: int | None
    probabilities: tuple[float, ...]
    phrase_ends: dict[int, PhraseEnd]
    _recognizer: SpeechRecognizer
    _said: dict[tuple[int, int], str] = field(default_factory=dict)

    def said(self, start: int, stop: int) -> str:
        """Returns the words that a draft of samples [start, stop) has."""
        key = (start, stop)
        if key not in self._said:
            clip = Clip(self.sound[start:stop], language="en", draft=True)
            self._said[key] = self._recognizer.recognize([clip])[0].text
        return self._said[key]


def takes(
    recordings: Iterable[Recording], detector: VoiceActivityDetector, recognizer: SpeechRecognizer
) -> Iterator[Take]:
    """Yields a take of every recording."""
    for recording in recordings:
        pcm = read_recording(recording.path, SPEECH_RATE_HZ)
        sound = with_silence_behind(pcm)
        probabilities = _judged(sound, detector)
        yield Take(
            recording=recording,
            sound=sound,
            stop=len(pcm),
            true_end=_true_end(recording),
            probabilities=probabilities,
            phrase_ends=phrase_ends(sound, probabilities),
            _recognizer=recognizer,
        )


def with_silence_behind(pcm: Pcm) -> Pcm:
    """Returns the sound with noise behind it that is as loud as its quietest twentieth, always the same."""
    whole = pcm[: len(pcm) // WINDOW * WINDOW].reshape(-1, WINDOW).astype(np.float64)
    power = np.square(whole).mean(axis=1) if len(whole) else np.zeros(1)
    noise = np.random.default_rng(0).normal(
        0, np.sqrt(np.percentile(power, 5)), SILENCE_BEHIND_S * SPEECH_RATE_HZ
    )
    return np.concatenate((pcm, np.clip(noise, -32_768, 32_767).astype(np.int16)))


def phrase_ends(sound: Pcm, probabilities: Sequence[float]) -> dict[int, PhraseEnd]:
    """Returns the pauses of a recording by where they begin."""
    windows = sound[: len(probabilities) * WINDOW].reshape(-1, WINDOW)
    return {end.stop: end for end in PhraseEnds().observe(windows, probabilities, 0)}


def _true_end(recording: Recording) -> int | None:
    if recording.turn_complete is False or not recording.speech:
        return None
    return int(recording.speech[-1][1] * SPEECH_RATE_HZ)


def _judged(sound: Pcm, detector: VoiceActivityDetector) -> tuple[float, ...]:
    windows = sound[: len(sound) // WINDOW * WINDOW].reshape(-1, WINDOW) / np.float32(32_768)
    state = detector.new_state()[None]
    probabilities = []
    for window in windows:
        found, state = detector.detect(window[None], state)
        probabilities.append(float(found[0]))
    return tuple(probabilities)
