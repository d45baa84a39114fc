"""The shared voice detector: one thread, one hop per tick over all sessions' windows together (design §5.1)."""

import asyncio
import logging
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from modalities.audio.phrase_end import PhraseEnd, PhraseEnds
from modalities.audio.segmenter import WINDOW
from modalities.ports import VoiceActivityDetector
from orchestrator.buffers.ring import Overrun
from orchestrator.observability.faults import FAULTS
from orchestrator.sessions.intake import DeliverProbabilities, Sound
from orchestrator.workers.stillness import Stillness

log = logging.getLogger("chorale.detector")

MOST_WINDOWS_A_TICK = 64
"""Of one stream: a client that sends minutes at once does not hold up the others for longer than some 10 ms."""

MOST_EXTENTS = 64
"""Of one stream's windows that wait so many are kept as they came; what comes then joins them, a tick's worth each."""

GATHER_S = 0.01
"""Ticks are so far apart at least: many calls bring windows all the time, and a hop to the thread costs more than what
it is for. A call alone, with sound every 40 ms, never waits for it."""


@dataclass(slots=True)
class _Work:
    """Windows of one stream that go through the detector together."""

    stream: "_Stream"
    windows: range
    owed: range
    """Windows before them that were answered already and are judged for the state's sake."""

    def read(self) -> NDArray[np.int16]:
        """Returns a copy of all of them, shape (n, 512); of none where the ring does not hold them all any more."""
        sound = np.empty((len(self.owed) + len(self.windows), WINDOW), np.int16)
        for numbers, out in ((self.owed, sound[: len(self.owed)]), (self.windows, sound[len(self.owed) :])):
            try:
                if numbers:
                    self.stream.sound.read_into(numbers.start * WINDOW, out.reshape(-1))
            except Overrun:
                return sound[:0]
        return sound


@dataclass(frozen=True, slots=True)
class _Judgement:
    """What the thread made of a stream's windows, of which it has a copy; `lapped`: they had been overwritten."""

    windows: NDArray[np.int16]
    probabilities: tuple[float, ...] = ()
    phrase_ends: tuple[PhraseEnd, ...] = ()
    lapped: bool = False


class _Stream:
    """One session's queue of windows, by number. Bounded by its owner, which looks at `backlog`."""

    def __init__(self, service: "VoiceActivity", deliver: DeliverProbabilities, sound: Sound) -> None:
        self._service = service
        self.sound = sound
        self.deliver = deliver
        self.state = service.detector.new_state()
        self.phrase_ends = PhraseEnds()
        self.stillness = Stillness()
        self.pending: deque[range] = deque(maxlen=65_536)
        self.backlog = 0
        self.passed_over = 0
        self.expected = -1
        self.closed = False

    def push(self, windows: range) -> None:
        if self.closed or not windows:
            return
        if self.backlog == 0 and windows.start == self.expected and self.stillness.is_settled:
            sound = self.sound.peek(windows.start * WINDOW, windows.stop * WINDOW)
            if self.stillness.passes(windows, sound):
                self._pass_over(windows, sound)
                if self.stillness.owes_many:
                    self._service.want(self)
                return
        self.backlog += len(windows)
        last = self.pending[-1] if len(self.pending) >= MOST_EXTENTS else range(0)
        if last and last.stop == windows.start and len(last) < MOST_WINDOWS_A_TICK:
            self.pending[-1] = range(last.start, windows.stop)
        else:
            self.pending.append(windows)
        self._service.want(self)

    def _pass_over(self, windows: range, sound: tuple[NDArray[np.int16], ...]) -> None:
        """Answers for the detector, here and now: a hop to its thread and back costs more than its answer."""
        self.expected = windows.stop
        silence = (0.0,) * len(windows)
        whole = sound[0] if len(sound) == 1 else np.concatenate(sound)
        ends = self.phrase_ends.observe(whole.reshape(-1, WINDOW), silence, windows.start)
        self.deliver(windows.start, silence, ends)

    def take(self) -> _Work | None:
        """Returns the next at most 64 windows that follow each other, or none behind those that are owed."""
        if not self.pending:
            return _Work(self, range(0), self.stillness.owed()) if self.stillness.owes_many else None
        windows = self.pending.popleft()
        if len(windows) > MOST_WINDOWS_A_TICK:
            self.pending.appendleft(windows[MOST_WINDOWS_A_TICK:])
            windows = windows[:MOST_WINDOWS_A_TICK]
        if windows.start != self.expected:
            self.begin()
        self.expected = windows.stop
        return _Work(self, windows, self.stillness.owed())

    def begin(self) -> None:
        """What comes next does not follow what the detector remembers."""
        self.state = self._service.detector.new_state()
        self.stillness.begin()

    def close(self) -> None:
        self.closed = True
        self.pending.clear()
        self.backlog = 0


class VoiceActivity:
    """Judges the windows of all sessions. `start` and `close` on the event loop that delivers."""

    def __init__(self, detector: VoiceActivityDetector) -> None:
        self.detector = detector
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="voice-activity")
        self._wanting: dict[int, _Stream] = {}
        self._busy = False
        self._due_s = 0.0
        self._failing = False
        self._guard = FAULTS.guard("voice detection")
        self._closed = False

    def stream(self, deliver: DeliverProbabilities, sound: Sound) -> _Stream:
        return _Stream(self, deliver, sound)

    def want(self, stream: _Stream) -> None:
        """A stream has windows. While the thread is busy they wait and go with everyone else's next."""
        self._wanting[id(stream)] = stream
        if not self._busy and not self._closed:
            self._busy = True
            self._go_on()

    def close(self) -> None:
        """Stops delivering and lets the thread end. Idempotent."""
        self._closed = True
        self._wanting.clear()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _go_on(self) -> None:
        """Judges soon what all sessions have by then: in the next turn of the loop at the earliest."""
        loop = asyncio.get_running_loop()
        if any(stream.backlog >= MOST_WINDOWS_A_TICK for stream in self._wanting.values()):
            loop.call_soon(self._tick)
        else:
            loop.call_at(max(self._due_s, loop.time()), self._tick)

    def _tick(self) -> None:
        work: list[_Work] = []
        for key, stream in list(self._wanting.items()):
            taken = None
            with self._guard:  # one session's fault must not leave all others deaf
                taken = None if stream.closed else stream.take()
            if taken is None:
                del self._wanting[key]
            else:
                work.append(taken)
        if not work or self._closed:
            self._busy = False
            return
        loop = asyncio.get_running_loop()
        self._due_s = loop.time() + GATHER_S
        future = loop.run_in_executor(self._thread, self._judge, work)
        future.add_done_callback(partial(self._judged, work))

    def _judge(self, work: list[_Work]) -> list[_Judgement]:
        """In the thread: the k-th windows of all streams in one call each; then how each speaker paused."""
        sounds = [w.read() for w in work]
        results: list[list[float]] = [[] for _ in work]
        for k in range(max(map(len, sounds))):
            rows = [i for i, sound in enumerate(sounds) if k < len(sound)]
            heard = np.stack([sounds[i][k] for i in rows]).astype(np.float32) / 32_768.0
            states = np.stack([work[i].stream.state for i in rows])
            probabilities, states = self.detector.detect(heard, states)
            for row, i in enumerate(rows):
                work[i].stream.state = states[row]
                results[i].append(float(probabilities[row]))
        return [
            _judgement(w, sound, tuple(result[len(w.owed) :]))
            for w, sound, result in zip(work, sounds, results, strict=True)
        ]

    def _judged(self, asked: list[_Work], future: "asyncio.Future[list[_Judgement]]") -> None:
        """Delivers, whatever became of it, and goes on: one bad window must not leave every session deaf."""
        if self._closed or future.cancelled():
            return
        broke = future.exception()
        if broke is not None and not self._failing:
            log.error("voice detection fails; what it was to judge counts as silence", exc_info=broke)
        self._failing = broke is not None
        for work in asked:
            work.stream.backlog -= 0 if work.stream.closed else len(work.windows)
            if broke is not None:
                work.stream.expected = -1
        for work, found in () if broke is not None else zip(asked, future.result(), strict=True):
            with self._guard:
                _hand_back(work, found)
        self._go_on()


def _hand_back(work: _Work, found: _Judgement) -> None:
    if found.lapped:
        work.stream.passed_over += len(work.windows)
        work.stream.expected = -1
    elif not work.stream.closed and found.probabilities:
        work.stream.stillness.judged(found.windows, found.probabilities)
        work.stream.deliver(work.windows.start, found.probabilities, found.phrase_ends)


def _judgement(work: _Work, sound: NDArray[np.int16], probabilities: tuple[float, ...]) -> _Judgement:
    windows = sound[len(work.owed) :]
    if not probabilities:
        return _Judgement(windows, lapped=len(sound) < len(work.owed) + len(work.windows))
    ends = work.stream.phrase_ends.observe(windows, probabilities, work.windows.start)
    return _Judgement(windows, probabilities, ends)
