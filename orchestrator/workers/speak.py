"""Speech output in a worker process: a sentence in, pieces of its sound out, at the one rate that the server plays."""

from collections.abc import Iterator, Sequence

import numpy as np

from modalities.audio.resample import Resampler
from modalities.ports import Pcm, SpeechSynthesizer
from orchestrator.scheduling.work import Speak, SpeechPiece, Spoke
from orchestrator.workers.desk import Tell, Wanted
from orchestrator.workers.frames import Task

OUTPUT_RATE_HZ = 24_000
PIECE_SAMPLES = OUTPUT_RATE_HZ // 5
"""200 ms: the longest piece."""

_ONSET_WINDOW_MS = 5
_ONSET_RMS = 60.0
"""About -55 dBFS: above a voice model's idle noise, below the softest consonant."""
_KEPT_LEAD_MS = 20


class Speaker:
    """A cancel is honoured before each chunk of the voice and each piece."""

    def __init__(self, voice: SpeechSynthesizer) -> None:
        self._voice = voice

    def probe(self) -> str:
        """Says a word."""
        for _ in self._voice.synthesize("Hello."):
            break
        return f"{type(self._voice).__name__} at {self._voice.sample_rate_hz} Hz"

    def do(self, tasks: Sequence[Task], tell: Tell, wanted: Wanted) -> None:
        for task in tasks:
            self._speak(task, tell, wanted)

    def _speak(self, task: Task, tell: Tell, wanted: Wanted) -> None:
        if not isinstance(task.work, Speak):
            raise TypeError(f"a voice was given {type(task.work).__name__}")
        index = 0
        for piece in _pieces(self._sound(task.work, task.job_id, wanted)):
            if not wanted(task.job_id):
                return
            audio = piece.astype("<i2", copy=False).tobytes()
            tell(SpeechPiece(task.job_id, index, OUTPUT_RATE_HZ, len(piece), audio))
            index += 1
        if wanted(task.job_id):
            tell(Spoke(task.job_id, index))

    def _sound(self, work: Speak, job_id: str, wanted: Wanted) -> Iterator[Pcm]:
        """Yields the sentence at the output rate, without the silence before it."""
        rate_hz = self._voice.sample_rate_hz
        resampler = Resampler(rate_hz, OUTPUT_RATE_HZ)
        lead = LeadTrim(rate_hz)
        for chunk in self._voice.synthesize(work.text, work.speed):
            if not wanted(job_id):
                return
            yield resampler.feed(lead.feed(chunk))
        yield resampler.flush()


class LeadTrim:
    """Takes the silence before the first sound away, but for 20 ms; a stream that never sounds is all silence."""

    def __init__(self, rate_hz: int) -> None:
        self._window = rate_hz * _ONSET_WINDOW_MS // 1000
        self._lead = rate_hz * _KEPT_LEAD_MS // 1000
        self._held: Pcm | None = np.zeros(0, dtype=np.int16)

    def feed(self, pcm: Pcm) -> Pcm:
        """Returns what is to be heard of the stream so far and was not returned before."""
        if self._held is None:
            return pcm
        self._held = np.concatenate((self._held, pcm))
        whole = len(self._held) // self._window
        windows = self._held[: whole * self._window].reshape(whole, self._window).astype(np.float32)
        loud = np.flatnonzero(np.sqrt(np.mean(windows**2, axis=1)) > _ONSET_RMS)
        if not len(loud):
            # Only what may still become the lead or the start of the sound is kept.
            self._held = self._held[-(self._lead + self._window) :]
            return self._held[:0]
        sound = self._held[max(0, int(loud[0]) * self._window - self._lead) :]
        self._held = None
        return sound


def _pieces(sound: Iterator[Pcm]) -> Iterator[Pcm]:
    """Cuts sound into pieces of at most 200 ms, each as soon as it is there."""
    for chunk in sound:
        for start in range(0, len(chunk), PIECE_SAMPLES):
            yield chunk[start : start + PIECE_SAMPLES]
