"""Recorded speech for tests, found through CHORALE_SPEECH_DATA (layout: its README and manifest.jsonl)."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr
from numpy.typing import NDArray

from modalities.ports import SPEECH_RATE_HZ, Pcm


@dataclass(frozen=True)
class Recording:
    """One line of the manifest."""

    file: Path
    category: str
    transcript: str | None
    language: str
    duration_s: float

    def pcm(self) -> Pcm:
        """Returns the sound as int16 mono at 16 kHz."""
        samples, rate = soundfile.read(self.file, dtype="float32", always_2d=True)
        mono: NDArray[np.float32] = samples.mean(axis=1)
        if rate != SPEECH_RATE_HZ:
            mono = soxr.resample(mono, rate, SPEECH_RATE_HZ)
        return np.clip(np.round(mono * 32768.0), -32768, 32767).astype(np.int16)


def recordings(*categories: str) -> list[Recording]:
    """Returns the recordings of these categories; skips the calling test where the data is not here."""
    root = os.environ.get("CHORALE_SPEECH_DATA")
    if not root:
        pytest.skip("CHORALE_SPEECH_DATA is not set")
    found = []
    for line in (Path(root) / "manifest.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if entry["category"] in categories:
            found.append(
                Recording(
                    Path(root) / entry["file"],
                    entry["category"],
                    entry.get("transcript"),
                    entry.get("language", "en"),
                    entry.get("duration_s") or 0.0,
                )
            )
    return found
