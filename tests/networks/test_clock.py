"""The session clock over an hour: a sender's clock that is off, on a line with jitter and loss, moves no word.

The whole chain on virtual time: RTP stamps, placement, decoder, ring, windows, the session's heart. What is judged is
when the session believes that each word began.
"""

import asyncio
from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks.network_faults import Conditions, Line
from modalities.audio.g711 import encode_mulaw
from modalities.audio.segmenter import WINDOW
from orchestrator.sessions.events import AudioHeard
from orchestrator.sessions.intake import DeliverProbabilities, Sound, SpeechIntake
from orchestrator.sessions.links import LinkKind
from orchestrator.transports.receive import ReceiveSettings, SoundReceiver
from orchestrator.transports.rtp_order import Packet, SoundCodec
from tests import virtual_time
from tests.sessions.talk import Talk

HOUR_S = 3_600
FRAME_S = 0.06
EVERY = 320 * WINDOW
"""A word begins every 10.24 s, at the first sample of a window of the detector: what is judged is the clock, not the
detector's 32 ms."""

WORD = 8_000
LINE = Conditions(loss=0.02, delay_s=0.01, jitter_s=0.06, swapped=0.01)


class LoudnessDetector:
    """Takes loud windows for speech, at once."""

    backlog = passed_over = 0

    def stream(self, deliver: DeliverProbabilities, sound: Sound) -> "LoudnessDetector":
        self._deliver = deliver
        self._sound = sound
        return self

    def push(self, windows: range) -> None:
        heard = np.empty((len(windows), WINDOW), np.int16)
        self._sound.read_into(windows.start * WINDOW, heard.reshape(-1))
        loud = np.abs(heard.astype(np.int32)).mean(axis=1) > 2_000
        self._deliver(windows.start, tuple(0.95 if one else 0.02 for one in loud))

    def close(self) -> None:
        """Nothing is left to deliver."""


def packets(drift_ppm: int, line: Line) -> Iterator[tuple[float, int, float]]:
    """Yields (arrival, number, moment at which its frame was spoken in full) in seconds, in order of arrival."""
    rate = 1 + drift_ppm / 1e6
    arrivals = []
    for number in range(int(HOUR_S * rate / FRAME_S)):
        spoken_s = (number + 1) * FRAME_S / rate
        arrivals += [(at_s, number, spoken_s) for at_s in line.carry(500, spoken_s)]
    return iter(sorted(arrivals))


def hear_for_an_hour(drift_ppm: int, seed: int) -> tuple[list[int], set[int]]:
    """Returns when the session believes that words began, in µs of its clock, and which frames came at all."""
    talk = Talk(kind=LinkKind.CALL)
    quiet, loud = (encode_mulaw(np.full(480, level, np.int16)) for level in (0, 8_000))
    came: set[int] = set()

    def heard(event: AudioHeard) -> None:
        talk.now_ms = event.at_us / 1_000
        talk.step(event)
        for job in talk.finals():
            talk.transcribed("", job)

    async def main() -> None:
        loop, clock = asyncio.get_running_loop(), virtual_time.VirtualClock()
        intake = SpeechIntake(LoudnessDetector(), 60 * 16_000, clock.now_us, heard)
        receiver = SoundReceiver(intake, clock, ReceiveSettings())
        for at_s, number, _ in packets(drift_ppm, Line(seed, LINE)):
            await asyncio.sleep(at_s - loop.time())
            came.add(number)
            start = number * 960
            within = [(start + offset) % EVERY < WORD for offset in (0, 959)]
            payload = loud if all(within) else quiet
            if within[0] != within[1]:
                at = (start + 2 * np.arange(480)) % EVERY < WORD
                payload = encode_mulaw(np.where(at, 8_000, 0).astype(np.int16))
            stamp = (number * 480 + 4_294_000_000) % (1 << 32)
            receiver.receive(Packet(1, number % (1 << 16), stamp, SoundCodec.PCMU, payload, clock.now_us()))
        receiver.drop()

    virtual_time.run(main())
    return [entry.began_us for entry in talk.heart.conversation], came


@pytest.mark.parametrize("drift_ppm", [-100, 100])
def test_after_an_hour_of_drift_every_word_is_within_20_ms(drift_ppm: int) -> None:
    """A sender's clock off by 100 ppm is off by 360 ms after an hour. No word whose first packets arrived is placed
    20 ms off the moment at which it was spoken, the line's own delay aside."""
    began_us, came = hear_for_an_hour(drift_ppm, seed=5)
    rate = 1 + drift_ppm / 1e6
    spoken_us = [
        number * EVERY / 16_000 / rate * 1e6 for number in range(int(HOUR_S * rate * 16_000 / EVERY) + 1)
    ]
    judged, worst_us = 0, 0.0
    for number, spoken in enumerate(spoken_us[3:], 3):  # the window of 30 s is to be filled
        frame = number * EVERY // 960
        if not {frame - 1, frame, frame + 1, frame + 2} <= came:
            continue
        nearest = min(began_us, key=lambda at: abs(at - spoken))
        worst_us = max(worst_us, abs(nearest - spoken - LINE.delay_s * 1e6))
        judged += 1
    assert judged > 250
    assert worst_us < 20_000
