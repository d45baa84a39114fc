"""Servers and microphones for browser tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.microphone import babble, silence, write_wav
from tests.browser.stand_in import StandIn


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    """A scripted server that serves the page; stopped at the end with all its calls."""
    server = StandIn()
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def wavs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("microphone")


@pytest.fixture(scope="session")
def still(wavs: Path) -> Path:
    """A microphone in a quiet room."""
    return write_wav(wavs / "still.wav", silence(120))


@pytest.fixture(scope="session")
def one_voice(wavs: Path) -> Path:
    """Somebody who says something once, four seconds after the microphone was opened."""
    return write_wav(wavs / "one_voice.wav", silence(4), babble(1.2), silence(120))


@pytest.fixture(scope="session")
def two_voices(wavs: Path) -> Path:
    """Somebody who speaks, and speaks again four seconds later."""
    return write_wav(wavs / "two_voices.wav", silence(4), babble(1.2), silence(4), babble(1.2), silence(120))
