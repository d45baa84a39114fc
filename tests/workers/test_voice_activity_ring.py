"""From the door to the probabilities over a small ring: what is heard is what was said, whatever way it came."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from modalities.adapters.silero import SileroDetector
from modalities.audio.segmenter import WINDOW
from modalities.ports import SPEECH_RATE_HZ, Pcm, VoiceActivityDetector
from orchestrator.clients.recording import read_recording
from orchestrator.sessions.events import AudioHeard
from orchestrator.sessions.intake import SpeechIntake
from orchestrator.workers.voice_activity import VoiceActivity
from tests.workers.test_voice_activity import CountingDetector

SAMPLES = Path(__file__).parent.parent.parent / "samples" / "sessions"
RING = 2 * 16_000 + 77
"""Two seconds, not of whole windows: most samples go around it several times."""


class LoudnessDetector(CountingDetector):
    """A window's probability depends on each of its samples and on all windows before it."""

    def detect(
        self, windows: NDArray[np.float32], states: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        places = np.linspace(0.5, 1, windows.shape[1], dtype=np.float32)
        states = (0.5 * states + 0.5 * (np.abs(windows) * places).mean(axis=1)[:, None]).astype(np.float32)
        return np.minimum(4 * states[:, 0], 1), states


def plain(detector: VoiceActivityDetector, sound: Pcm) -> list[float]:
    """Returns what the detector makes of all windows, one after the other."""
    state, found = detector.new_state()[None], list[float]()
    for window in sound[: len(sound) // WINDOW * WINDOW].reshape(-1, WINDOW):
        probability, state = detector.detect(window[None].astype(np.float32) / np.float32(32_768), state)
        found.append(float(probability[0]))
    return found


def heard(detector: VoiceActivityDetector, sound: Pcm, piece: int, live: bool) -> list[float]:
    """Returns what a session hears of the sound, in pieces, from a call or from a WebSocket that waits its turn."""

    async def main() -> list[float]:
        service, found = VoiceActivity(detector), dict[int, float]()

        def post(event: AudioHeard) -> None:
            found.update((event.first_window + at, p) for at, p in enumerate(event.probabilities))

        intake = SpeechIntake(service, RING, lambda: 0, post)
        for start in range(0, len(sound), piece):
            while intake.is_behind:  # noqa: ASYNC110 - as the door does
                await asyncio.sleep(0.001)
            if live:
                intake.append_at(start, sound[start : start + piece])
            else:
                intake.append(sound[start : start + piece])
        while intake._stream is not None and intake._stream.backlog:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.001)
        intake._flush()
        service.close()
        assert intake.dropped_windows == 0
        assert list(found) == list(range(len(sound) // WINDOW))
        return list(found.values())

    return asyncio.run(main())


def speech() -> Pcm:
    """Two recordings, one behind the other, and a second of a muted microphone after each."""
    files = sorted(SAMPLES.glob("*.flac"))[:2]
    pieces = [
        part for file in files for part in (read_recording(file, SPEECH_RATE_HZ), np.zeros(40_000, np.int16))
    ]
    return np.concatenate(pieces)


@pytest.mark.parametrize(("piece", "live"), [(640, True), (4_000, False), (1_111, False)])
def test_a_session_hears_every_window_as_it_was_said(piece: int, live: bool) -> None:
    """Recorded speech and silence that is not asked about, several times around the ring: each probability is that of
    the sound itself; where the microphone is muted, it is none."""
    sound = speech()
    expected = plain(LoudnessDetector(), sound)
    found = heard(LoudnessDetector(), sound, piece, live)
    muted = [not window.any() for window in sound[: len(found) * WINDOW].reshape(-1, WINDOW)]
    for one, other, silent in zip(found, expected, muted, strict=True):
        assert one == pytest.approx(other, abs=1e-6) or (silent and one == 0 and other < 0.05)


@pytest.mark.real
def test_a_session_hears_what_the_real_detector_makes_of_the_sound_itself() -> None:
    """The same network over the same windows: the same probabilities, and no speech in what it is not asked about."""
    detector, sound = SileroDetector(), speech()
    expected = plain(detector, sound)
    found = heard(detector, sound, 640, True)
    apart = [abs(one - other) for one, other in zip(found, expected, strict=True) if one > 0]
    assert len(apart) > 100
    assert max(apart) < 0.02
    assert max((expected[at] for at, one in enumerate(found) if one == 0), default=0) < 0.05
