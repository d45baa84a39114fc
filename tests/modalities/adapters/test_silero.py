"""Silero VAD through ONNX Runtime: same judgements as the reference wrapper, stream by stream and batched."""

import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.typing import NDArray

from modalities.adapters.silero import STATE_WIDTH, WINDOW, SileroDetector, SileroSettings
from modalities.errors import AdapterUnavailable
from modalities.ports import VoiceActivityDetector
from tests.modalities.adapters.recordings import recordings

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(find_spec("silero_vad") is None, reason="the silero-vad package is not installed"),
]


@pytest.fixture(scope="module")
def detector() -> SileroDetector:
    return SileroDetector()


def made_speech(seconds: float, seed: int) -> NDArray[np.float32]:
    """Returns a buzzing voice with two vowels' formants, in syllables: enough to pass for speech."""
    generator = np.random.default_rng(seed)
    t = np.arange(int(seconds * 16_000)) / 16_000
    phase = 2 * np.pi * np.cumsum(120 + 15 * np.sin(2 * np.pi * 1.3 * t)) / 16_000
    vowel = np.where(np.sin(2 * np.pi * 2 * t) > 0, 700.0, 350.0)
    sound = np.zeros_like(t)
    for harmonic in range(1, 30):
        pitch = harmonic * 120.0
        loud = np.exp(-(((pitch - vowel) / 150) ** 2)) + 0.5 * np.exp(-(((pitch - 1600) / 250) ** 2)) + 0.02
        sound += loud * np.sin(harmonic * phase)
    syllables = np.clip(np.sin(2 * np.pi * 4 * t), 0, 1)
    noisy = 0.1 * sound * syllables + 0.002 * generator.standard_normal(t.size)
    return np.asarray(noisy, dtype=np.float32)


def judge(detector: VoiceActivityDetector, sound: NDArray[np.float32]) -> list[float]:
    state = detector.new_state()[None]
    judged = []
    for start in range(0, len(sound) - WINDOW + 1, WINDOW):
        probability, state = detector.detect(sound[None, start : start + WINDOW], state)
        judged.append(float(probability[0]))
    return judged


@pytest.mark.filterwarnings("ignore")
def test_silero_gives_the_probabilities_of_the_reference_wrapper(detector: SileroDetector) -> None:
    """Window by window, the probabilities are those of the package's own wrapper around the same network."""
    import torch
    from silero_vad import load_silero_vad

    sound = made_speech(3.0, seed=1)
    reference = load_silero_vad(onnx=True)
    expected = [
        float(reference(torch.from_numpy(sound[start : start + WINDOW]), 16_000))
        for start in range(0, len(sound) - WINDOW + 1, WINDOW)
    ]
    assert np.ptp(expected) > 0.1, "the sound must move the network for the comparison to mean anything"
    np.testing.assert_allclose(judge(detector, sound), expected, atol=1e-5)


def test_silero_batched_streams_do_not_touch_each_other(detector: SileroDetector) -> None:
    """A stream's probabilities and states are the same alone and among others."""
    sounds = [made_speech(1.0, seed=n) * (0.2 + 0.4 * n) for n in range(5)]
    states = np.stack([detector.new_state() for _ in sounds])
    batched = []
    for start in range(0, len(sounds[0]) - WINDOW + 1, WINDOW):
        windows = np.stack([sound[start : start + WINDOW] for sound in sounds])
        probabilities, states = detector.detect(windows, states)
        batched.append(probabilities)
    for n, sound in enumerate(sounds):
        np.testing.assert_allclose([row[n] for row in batched], judge(detector, sound), atol=1e-4)
    assert states.shape == (5, STATE_WIDTH)


def test_silero_without_streams_answers_nothing(detector: SileroDetector) -> None:
    """A tick in which no stream has a whole window is legal."""
    probabilities, states = detector.detect(
        np.empty((0, WINDOW), np.float32), np.empty((0, STATE_WIDTH), np.float32)
    )
    assert probabilities.shape == (0,)
    assert states.shape == (0, STATE_WIDTH)


def test_silero_hears_recorded_speech_and_not_the_silence_before_it(detector: SileroDetector) -> None:
    """On read speech most windows inside the utterance are speech; digital silence is not."""
    recording = max(recordings("clean_read"), key=lambda r: r.duration_s)
    speech = recording.pcm().astype(np.float32) / 32768
    judged = np.array(judge(detector, np.concatenate((np.zeros(16_000, np.float32), speech))))
    assert judged[2:30].max() < 0.3
    assert (judged[32:] > 0.5).mean() > 0.6


def test_silero_does_not_import_the_package_that_carries_the_model() -> None:
    """Detecting needs neither torch nor the silero_vad module in the process."""
    script = (
        "import sys; from modalities.adapters.silero import SileroDetector; SileroDetector();"
        "sys.exit(any(name in sys.modules for name in ('torch', 'silero_vad')))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_silero_names_the_command_that_installs_a_missing_model() -> None:
    """A path without a model is told with the command that helps, not with a stack of ONNX errors."""
    with pytest.raises(AdapterUnavailable, match="pip install"):
        SileroDetector(SileroSettings(path="/nonexistent/silero.onnx"))
