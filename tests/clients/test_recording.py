"""Recordings in, WAV out."""

import io
import wave
from pathlib import Path

import av
import numpy as np
import pytest
from av import AudioFrame, AudioStream

from orchestrator.clients.recording import NotSound, read_recording, write_wav
from tests.transports.calling import tone


def coded(format_name: str, codec: str, rate_hz: int) -> io.BytesIO:
    """A second of a tone as a file of that kind."""
    data = io.BytesIO()
    with av.open(data, "w", format=format_name) as container:
        stream = container.add_stream(codec, rate=rate_hz, layout="stereo")
        assert isinstance(stream, AudioStream)
        mono = tone(1, rate_hz=rate_hz)
        frame = AudioFrame.from_ndarray(np.repeat(mono, 2)[None, :], format="s16", layout="stereo")
        frame.sample_rate = rate_hz
        for packet in (*stream.encode(frame), *stream.encode(None)):
            container.mux(packet)
    data.seek(0)
    return data


@pytest.mark.parametrize(
    ("format_name", "codec", "rate_hz"),
    [("wav", "pcm_s16le", 16_000), ("flac", "flac", 44_100), ("ogg", "libopus", 48_000)],
)
def test_recordings_of_any_kind_become_48_khz_mono(format_name: str, codec: str, rate_hz: int) -> None:
    """A second stays a second, as loud; both channels count."""
    samples = read_recording(coded(format_name, codec, rate_hz))
    assert abs(len(samples) - 48_000) < 1_500
    assert np.sqrt(np.mean(samples[4_800:43_200].astype(float) ** 2)) == pytest.approx(
        8_000 / 2**0.5, rel=0.05
    )


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    """Sample by sample."""
    samples = tone(0.1, rate_hz=48_000)
    write_wav(tmp_path / "a.wav", samples)
    assert np.array_equal(read_recording(tmp_path / "a.wav"), samples)


def test_an_empty_recording_has_no_samples(tmp_path: Path) -> None:
    """It is a recording all the same."""
    write_wav(tmp_path / "empty.wav", np.zeros(0, np.int16))
    assert len(read_recording(tmp_path / "empty.wav")) == 0


def test_what_holds_no_sound_is_named(tmp_path: Path) -> None:
    """Text, a cut header, nothing: `NotSound`; a file that is not there: as always."""
    broken = tmp_path / "broken.wav"
    with wave.open(str(broken), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8_000)
        file.writeframes(bytes(100))
    broken.write_bytes(broken.read_bytes()[:30])
    for source in (broken, Path(__file__), io.BytesIO(b"")):
        with pytest.raises(NotSound, match=r"input|wav|py"):
            read_recording(source)
    with pytest.raises(FileNotFoundError):
        read_recording(tmp_path / "missing.wav")
