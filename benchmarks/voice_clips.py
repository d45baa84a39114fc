"""What callers say: short questions by the project's own voice, or recordings; and where the speech in them ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.recordings import pick, read_manifest
from modalities.adapters.piper import Piper, PiperSettings
from modalities.audio.resample import Resampler
from orchestrator.clients.recording import CALL_RATE_HZ, Samples, read_recording

QUESTIONS = (
    "What is the capital of France?",
    "What's the weather like today?",
    "Can you tell me a short story?",
    "How many days are in a week?",
    "What should I cook for dinner tonight?",
    "Who wrote Romeo and Juliet?",
)
_WINDOW = CALL_RATE_HZ // 200
_FLOOR = 0.02
"""Speech has ended behind the last 5 ms with 2 % of the loudest one's level: 34 dB below it."""


@dataclass(frozen=True, slots=True)
class Clip:
    """48 kHz mono int16, cut behind the last sound of the speech, so that its end is the end of speech."""

    name: str
    samples: Samples

    @property
    def duration_s(self) -> float:
        return len(self.samples) / CALL_RATE_HZ


def speech_stop(samples: Samples) -> int:
    """Returns the sample behind the last sound that stands out of the noise."""
    whole = len(samples) // _WINDOW
    windows = samples[: whole * _WINDOW].reshape(whole, _WINDOW).astype(np.float64)
    level = np.sqrt(np.mean(windows**2, axis=1)) if whole else np.zeros(0)
    loud = np.flatnonzero(level > _FLOOR * level.max(initial=0))
    return (int(loud[-1]) + 1) * _WINDOW if len(loud) else 0


def synthesized(texts: Sequence[str] = QUESTIONS) -> list[Clip]:
    """Returns the questions as the default voice says them, the same each time. Raises `AdapterUnavailable`."""
    voice = Piper(PiperSettings(variation=0.0))
    clips = []
    for text in texts:
        resampler = Resampler(voice.sample_rate_hz, CALL_RATE_HZ)
        pieces = [resampler.feed(chunk) for chunk in voice.synthesize(text)]
        clips.append(_clip(text, np.concatenate([*pieces, resampler.flush()])))
    return clips


def recorded(folder: Path, count: int = 12) -> list[Clip]:
    """Returns short recorded sentences, spread over the speakers."""
    short = [one for one in read_manifest(folder) if 1.0 <= one.speech_s <= 4.0]
    chosen = pick(short, ("clean_read", "command"), count)
    return [_clip(one.name, read_recording(one.path)) for one in chosen]


def _clip(name: str, samples: Samples) -> Clip:
    return Clip(name, samples[: speech_stop(samples)].astype(np.int16, copy=False))
