"""Recordings to samples and back (PyAV decodes whatever FFmpeg knows)."""

import io
import wave
from pathlib import Path
from typing import BinaryIO

import av
import numpy as np
from av import AudioResampler
from numpy.typing import NDArray

CALL_RATE_HZ = 48_000
Samples = NDArray[np.int16]


class NotSound(ValueError):
    """The file holds no sound that can be read."""


def read_recording(source: str | Path | BinaryIO, rate_hz: int = CALL_RATE_HZ) -> Samples:
    """Returns a recording as mono int16. Raises `NotSound`, `FileNotFoundError`."""
    if isinstance(source, str | Path):
        source = Path(source)
        name, data = str(source), io.BytesIO(source.read_bytes())
    else:
        name, data = "the input", io.BytesIO(source.read())
    resampler = AudioResampler(format="s16", layout="mono", rate=rate_hz)
    pieces: list[Samples] = []
    try:
        with av.open(data, "r") as container:
            if not container.streams.audio:
                raise NotSound(f"{name} holds no sound")
            for frame in container.decode(container.streams.audio[0]):
                frame.pts = None
                pieces += [piece.to_ndarray()[0] for piece in resampler.resample(frame)]
            pieces += [piece.to_ndarray()[0] for piece in resampler.resample(None)]
    except av.FFmpegError as error:
        raise NotSound(f"{name} is not a recording that can be read ({error.strerror})") from error
    return np.concatenate(pieces) if pieces else np.zeros(0, np.int16)


def write_wav(path: str | Path, samples: Samples, rate_hz: int = CALL_RATE_HZ) -> None:
    """Writes mono int16 samples."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate_hz)
        file.writeframes(samples.astype("<i2").tobytes())
