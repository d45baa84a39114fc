import wave
from pathlib import Path

import numpy as np
import pytest

from benchmarks.recordings import Recording, Undecodable, decode, pick, read_manifest

CATEGORIES = ("clean_read", "command")


def recording(category: str, number: int) -> Recording:
    return Recording(Path(f"{number}.wav"), f"{number}.wav", category, None, "none", "en", 1.0, None, "")


def written(path: Path, rate_hz: int, channels: int, samples: int) -> Path:
    sine = (8_000 * np.sin(np.arange(samples) * 2 * np.pi * 440 / rate_hz)).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate_hz)
        file.writeframes(np.repeat(sine, channels).tobytes())
    return path


def test_picking_spreads_a_limit_over_and_within_categories() -> None:
    """A small part is taken from everywhere, always the same; without a limit everything is."""
    every = [recording(name, number) for name in CATEGORIES for number in range(10)]
    picked = [(one.category, one.name) for one in pick(every, CATEGORIES, 5)]
    assert picked == [
        ("clean_read", "0.wav"),
        ("clean_read", "5.wav"),
        ("command", "0.wav"),
        ("command", "3.wav"),
        ("command", "6.wav"),
    ]
    assert pick(every, CATEGORIES, None) == every


def test_picking_from_a_category_that_is_not_there_names_it() -> None:
    """A misspelt category is an error, not an empty run."""
    with pytest.raises(LookupError, match="commands"):
        pick([recording("command", 1)], ["command", "commands"], None)


@pytest.mark.parametrize(("rate_hz", "channels"), [(8_000, 1), (16_000, 2), (44_100, 6), (48_000, 1)])
def test_decoding_gives_mono_at_the_wanted_rate(tmp_path: Path, rate_hz: int, channels: int) -> None:
    """Whatever the file's rate and channels, the sound keeps its length and its loudness."""
    sound = decode(written(tmp_path / "sine.wav", rate_hz, channels, rate_hz), 48_000)
    assert sound.dtype == np.int16
    assert abs(len(sound) - 48_000) <= 480
    assert 4_000 < np.sqrt(np.mean(sound[4_800:-4_800].astype(float) ** 2)) < 20_000


def test_decoding_what_is_no_sound_says_so(tmp_path: Path) -> None:
    """Text, an empty file and a header without samples are undecodable, by one error."""
    (tmp_path / "text.wav").write_text("hello")
    (tmp_path / "empty.wav").write_bytes(b"")
    written(tmp_path / "header.wav", 16_000, 1, 0)
    for name in ("text.wav", "empty.wav", "header.wav"):
        with pytest.raises(Undecodable, match=name):
            decode(tmp_path / name, 48_000)


@pytest.mark.corpus
def test_every_recording_of_the_data_decodes_or_is_known_to_be_broken(speech_data: Path) -> None:
    """Only files of the category `broken` that promise no full sound fail to decode."""
    failed = []
    for one in read_manifest(speech_data):
        try:
            decode(one.path, 48_000)
        except Undecodable:
            failed.append(one)
    assert {one.category for one in failed} == {"broken"}
    assert {one.expect for one in failed} <= {"error", "empty"}
