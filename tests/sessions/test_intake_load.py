"""Many calls and a detector that is just quick enough, or not (F-L1), over a minute, step by step."""

from collections import deque

import numpy as np

from modalities.audio.segmenter import WINDOW
from orchestrator.sessions.events import AudioHeard
from orchestrator.sessions.intake import MOST_LIVE_WINDOWS, DeliverProbabilities, Sound, SpeechIntake

CALLS = 32
STEPS = 60 * 1_000 // 32
"""A minute in windows of 32 ms."""


class SlowDetector:
    """Judges so many windows in each step, of all streams in turn, the oldest first."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[SlowStream, int]] = deque(maxlen=100_000)

    def stream(self, deliver: DeliverProbabilities, sound: Sound) -> "SlowStream":
        return SlowStream(self, deliver)

    def work(self, windows: int) -> None:
        for _ in range(min(windows, len(self.waiting))):
            stream, window = self.waiting.popleft()
            stream.backlog -= 1
            stream.deliver(window, (0.0,))


class SlowStream:
    def __init__(self, service: SlowDetector, deliver: DeliverProbabilities) -> None:
        self.deliver = deliver
        self.backlog = 0
        self.passed_over = 0
        self._service = service

    def push(self, windows: range) -> None:
        self.backlog += len(windows)
        self._service.waiting.extend((self, window) for window in windows)

    def close(self) -> None:
        """Nothing to let go of."""


def ages(windows_a_step: int) -> tuple[list[int], int]:
    """Returns how old the newest judged window was, in windows, the worst of all calls after each second; and how many
    windows were passed over."""
    detector, newest = SlowDetector(), [0] * CALLS
    intakes = []
    for number in range(CALLS):

        def post(event: AudioHeard, number: int = number) -> None:
            newest[number] = max(newest[number], event.first_window + len(event.probabilities))

        intakes.append(SpeechIntake(detector, 120 * 16_000, lambda: 0, post))
    silence, worst = np.zeros(WINDOW, np.int16), []
    for step in range(STEPS):
        for intake in intakes:
            intake.append_at(step * WINDOW, silence)
        detector.work(windows_a_step)
        if step % 31 == 30:
            worst.append(step + 1 - min(newest))
    return worst, sum(intake.dropped_windows for intake in intakes)


def test_intake_of_many_calls_stays_as_young_as_it_was() -> None:
    """F-L1: where there is time for all, what was judged last is never older than the marks are apart (four windows),
    after a minute as after a second, and nothing is passed over."""
    worst, dropped = ages(CALLS)
    assert max(worst) <= 4
    assert dropped == 0


def test_intake_over_budget_passes_sound_over_and_says_so() -> None:
    """F-L1: with time for three windows in four, the age grows to its bound and no further; what is passed over is
    counted, and is what there was no time for."""
    worst, dropped = ages(CALLS * 3 // 4)
    bound = MOST_LIVE_WINDOWS
    assert max(worst) <= bound * 3 // 2 + 8
    assert max(worst[30:]) <= max(worst[:30]) + 4
    assert abs(dropped - CALLS * STEPS / 4) < CALLS * (bound + 8)
    assert dropped > CALLS * STEPS / 8
