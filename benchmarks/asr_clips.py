"""What the recognition benchmarks listen to: recordings (CHORALE_SPEECH_DATA), or sentences said by our own voice."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.recordings import Recording, read_manifest
from modalities.audio.resample import Resampler
from modalities.ports import SPEECH_RATE_HZ, Pcm

KNOWN_TEXT = frozenset({"provided", "provided_edited", "public_text"})
"""Transcripts that were not read off a recogniser."""

SENTENCES = (
    "What is the weather like today?",
    "Set a timer for ten minutes.",
    "Turn off the lights in the kitchen.",
    "Please book a table for two at seven.",
    "Stop.",
    "Play something quiet, and remind me to call my sister tomorrow morning.",
)


@dataclass(frozen=True, slots=True)
class Spoken:
    """A clip, int16 mono at 16 kHz; `transcript` None where there is no speech in it."""

    name: str
    category: str
    transcript: str | None
    pcm: Pcm

    @property
    def seconds(self) -> float:
        return len(self.pcm) / SPEECH_RATE_HZ


def spoken_clips(data: Path | None, limit: int | None = None) -> list[Spoken]:
    """Returns clips of English speech whose words are known, evenly taken from all there are."""
    if data is None:
        return synthesised()[:limit]
    found = [
        one
        for one in read_manifest(data)
        if one.transcript
        and one.transcript_source in KNOWN_TEXT
        and one.language == "en"
        and one.category not in ("broken", "odd_format")
    ]
    return [_read(one) for one in _spread(found, limit)]


def silent_clips(data: Path | None) -> list[Spoken]:
    """Returns sounds that hold no speech."""
    if data is None:
        noise = np.random.default_rng(5)
        return [
            Spoken(
                f"hiss {level}",
                "non_speech",
                None,
                noise.normal(0, level, 2 * SPEECH_RATE_HZ).astype(np.int16),
            )
            for level in (1, 30, 300, 1000)
        ]
    return [
        _read(one) for one in read_manifest(data) if one.category == "non_speech" and one.language == "zxx"
    ]


def synthesised(sentences: Sequence[str] = SENTENCES) -> list[Spoken]:
    """Returns sentences as the project's own voice says them, each time alike. Raises `AdapterUnavailable`."""
    from modalities.adapters.piper import Piper, PiperSettings

    voice = Piper(PiperSettings(variation=0.0))
    clips = []
    for text in sentences:
        resampler = Resampler(voice.sample_rate_hz, SPEECH_RATE_HZ)
        parts = [resampler.feed(part) for part in voice.synthesize(text)]
        clips.append(Spoken(text, "synthesised", text, np.concatenate((*parts, resampler.flush()))))
    return clips


def _spread(found: Sequence[Recording], limit: int | None) -> list[Recording]:
    if limit is None or limit >= len(found):
        return list(found)
    return [found[n * len(found) // limit] for n in range(limit)]


def _read(recording: Recording) -> Spoken:
    import soundfile

    samples, rate = soundfile.read(recording.path, dtype="float32", always_2d=True)
    mono = samples.mean(axis=1)
    pcm = np.clip(np.round(mono * 32767), -32768, 32767).astype(np.int16)
    if rate != SPEECH_RATE_HZ:
        resampler = Resampler(rate, SPEECH_RATE_HZ)
        pcm = np.concatenate((resampler.feed(pcm), resampler.flush()))
    return Spoken(recording.name, recording.category, recording.transcript, pcm)
