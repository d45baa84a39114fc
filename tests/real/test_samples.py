"""The programs of samples/, run as a reader would run them, against the real server."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from orchestrator.clients.recording import read_recording, write_wav
from tests.real.serving import ROOT

pytestmark = pytest.mark.real


def ran(url: str, *command: str) -> str:
    """Returns what a sample printed. It must end well."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, "CHORALE_URL": url},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_question_in_writing_is_answered(server_url: str) -> None:
    """`samples/ask.py` prints an answer of some words."""
    assert len(ran(server_url, "samples/ask.py", "What colour is the sky?").split()) >= 3


@pytest.mark.corpus
def test_a_recording_is_understood_and_answered_in_sound(
    server_url: str, speech_data: Path, tmp_path: Path
) -> None:
    """`samples/speak.py` prints what was said and the reply, and saves a sound that can be heard."""
    question, answer = tmp_path / "question.wav", tmp_path / "answer.wav"
    write_wav(
        question, read_recording(speech_data / "commands/azure_whatstheweatherlike.flac", 24_000), 24_000
    )
    told = ran(server_url, "samples/speak.py", str(question), str(answer))
    assert "weather" in told.splitlines()[0]
    assert "reply:" in told
    sound = read_recording(answer, 24_000)
    assert len(sound) > 12_000
    assert np.abs(sound).max() > 1_000
