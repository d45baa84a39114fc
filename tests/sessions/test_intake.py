"""Sound on its way from a door to the detector and back to the session."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.audio.segmenter import WINDOW
from orchestrator.errors import Overloaded
from orchestrator.sessions.events import AudioHeard
from orchestrator.sessions.intake import DeliverProbabilities, Sound, SpeechIntake


class Stream:
    """Keeps what it is to judge until the test has it judged; a window's probability is its first sample / 1000."""

    def __init__(self, deliver: DeliverProbabilities, sound: Sound) -> None:
        self._deliver = deliver
        self._sound = sound
        self._waiting: list[range] = []
        self.closed = False
        self.passed_over = 0

    @property
    def backlog(self) -> int:
        return sum(map(len, self._waiting))

    def push(self, windows: range) -> None:
        self._waiting.append(windows)

    def judge(self) -> None:
        waiting, self._waiting = self._waiting, []
        for windows in waiting:
            firsts = [self._sound.peek(at * WINDOW, at * WINDOW + 1)[0][0] for at in windows]
            self._deliver(windows.start, tuple(float(first) / 1_000 for first in firsts))

    def close(self) -> None:
        self.closed = True


class Ears:
    """An intake with its detector and the events that it posts."""

    def __init__(self, capacity_s: int = 10, max_backlog: int = 16_384, max_live: int = 128) -> None:
        self.streams: list[Stream] = []
        self.events: list[AudioHeard] = []
        self.full = False
        self.intake = SpeechIntake(self, capacity_s * 16_000, lambda: 7, self._post, max_backlog, max_live)

    def stream(self, deliver: DeliverProbabilities, sound: Sound) -> Stream:
        self.streams.append(Stream(deliver, sound))
        return self.streams[-1]

    def hear(self, windows: int, level: int) -> None:
        """Appends so many windows, one at a time, each judged at once."""
        for _ in range(windows):
            self.intake.append(np.full(WINDOW, level, dtype=np.int16))
            self.streams[-1].judge()

    def _post(self, event: AudioHeard) -> None:
        if self.full:
            raise Overloaded("full", 1.0)
        self.events.append(event)


@given(st.lists(st.integers(0, 3_000), max_size=20))
def test_intake_hands_every_whole_window_on_once(sizes: list[int]) -> None:
    """However sound is cut, windows follow one another without hole or repeat; a rest waits for the next."""
    ears = Ears()
    for size in sizes:
        ears.intake.append(np.full(size, 900, dtype=np.int16))
    if sum(sizes) >= WINDOW:
        ears.streams[0].judge()
    seen = [w for e in ears.events for w in range(e.first_window, e.first_window + len(e.probabilities))]
    assert seen == list(range(len(seen)))
    assert ears.intake.position == sum(sizes)


def test_intake_tells_a_beginning_at_once_and_else_ten_times_a_second_at_most() -> None:
    """The second window of speech is not held back; else four windows make an event."""
    ears = Ears()
    ears.hear(31, 20)
    ears.hear(2, 900)
    assert ears.events[-1].stop == 33 * WINDOW
    ears.hear(60, 900)
    ears.hear(60, 20)
    assert len(ears.events) <= 10 * (33 + 120) * WINDOW / 16_000


def test_intake_tells_silence_up_to_the_awaited_position_at_once() -> None:
    """A decision that falls between two marks is not put off to the next one, and is told once."""
    ears = Ears()
    ears.hear(6, 900)
    told = ears.events[-1].stop
    ears.intake.listen_at(told + 2 * WINDOW)
    ears.hear(2, 20)
    assert ears.events[-1].stop == told + 2 * WINDOW
    ears.hear(3, 20)
    assert ears.events[-1].stop == told + 2 * WINDOW
    ears.hear(1, 20)
    assert ears.events[-1].stop == told + 6 * WINDOW


def test_intake_awaits_nothing_where_speech_goes_on() -> None:
    """At the awaited position somebody speaks: nothing is decided there, so the session is not woken for it."""
    ears = Ears()
    ears.hear(6, 900)
    told = ears.events[-1].stop
    ears.intake.listen_at(told + 2 * WINDOW)
    ears.hear(3, 900)
    assert ears.events[-1].stop == told
    ears.hear(1, 900)
    assert ears.events[-1].stop == told + 4 * WINDOW


def test_intake_only_counts_where_nobody_detects() -> None:
    """With detection off the session learns how far the sound has come; detection begins again where it is then."""
    ears = Ears()
    ears.hear(4, 20)
    ears.intake.detecting = False
    ears.intake.append(np.zeros(16_000, dtype=np.int16))
    assert ears.streams[0].closed
    assert ears.events[-1].probabilities == ()
    assert ears.events[-1].stop == 4 * WINDOW + 16_000
    ears.intake.detecting = True
    ears.hear(8, 20)
    assert ears.events[-1].first_window >= -(-(4 * WINDOW + 16_000) // WINDOW)


def test_intake_never_fails_whoever_brings_probabilities() -> None:
    """A session that cannot take them loses them and counts it: the detector serves others too."""
    ears = Ears()
    ears.full = True
    ears.hear(4, 20)
    assert ears.intake.dropped_windows == 4


def test_intake_refuses_unpaced_sound_and_passes_paced_over_when_the_detector_is_late() -> None:
    """A WebSocket is told; a call goes on, and what came too late to matter is not judged."""
    ears = Ears(max_backlog=32, max_live=30)
    sound = np.full(3 * WINDOW, 20, dtype=np.int16)
    for _ in range(10):
        ears.intake.append(sound)
    with pytest.raises(Overloaded):
        ears.intake.append(sound)
    assert ears.intake.position == 30 * WINDOW
    ears.intake.append_at(30 * WINDOW, sound)
    assert ears.intake.position == 33 * WINDOW
    assert ears.intake.dropped_windows == 3


def test_intake_drops_what_comes_after_its_end() -> None:
    """A door that still reads when the session has ended allocates nothing."""
    ears = Ears()
    ears.hear(1, 20)
    ears.intake.close()
    ears.intake.close()
    ears.intake.append(np.zeros(16_000, dtype=np.int16))
    ears.intake.append_at(0, np.zeros(16_000, dtype=np.int16))
    assert len(ears.streams) == 1
    assert ears.intake.position == 0
    assert ears.intake.extent(0, 0) == b""


def test_intake_says_that_it_is_behind_before_unheard_sound_is_overwritten() -> None:
    """A door stops reading a quarter of the ring before anything could be lost, and goes on once that was heard."""
    ears = Ears(capacity_s=10)
    appended = 0
    while not ears.intake.is_behind:
        ears.intake.append(np.zeros(1_600, dtype=np.int16))
        appended += 1_600
    assert 2.5 * 16_000 <= appended <= 3 * 16_000
    ears.streams[-1].judge()
    assert not ears.intake.is_behind


def test_intake_refuses_sound_that_would_overwrite_what_nobody_has_judged() -> None:
    """Whoever does not ask whether it is behind is told, and nothing is lost: what waits for the detector lies in the
    ring and nowhere else."""
    ears = Ears(capacity_s=1)
    window = np.full(WINDOW, 900, dtype=np.int16)
    taken = 16_000 // WINDOW - 1
    for _ in range(taken):
        ears.intake.append(window)
    with pytest.raises(Overloaded):
        ears.intake.append(window)
    ears.streams[-1].judge()
    ears.intake.append(window)
    ears.streams[-1].judge()
    heard = [p for event in ears.events for p in event.probabilities]
    assert heard == [0.9] * len(heard)
    assert len(heard) > taken - 4


def test_intake_counts_what_the_detector_passed_over() -> None:
    """Overwritten before their turn: windows that were never judged, also when their stream has ended."""
    ears = Ears()
    ears.hear(4, 20)
    ears.streams[0].passed_over = 3
    assert ears.intake.dropped_windows == 3
    ears.intake.detecting = False
    ears.intake.append(np.zeros(WINDOW, dtype=np.int16))
    assert ears.intake.dropped_windows == 3
