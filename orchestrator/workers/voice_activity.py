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
from orchestrator.sessions.intake import DeliverProbabilities
from orchestrator.workers.stillness import Stillness

log = logging.getLogger("chorale.detector")

MOST_WINDOWS_A_TICK = 64
"""Of one stream: a client that sends minutes at once does not hold up the others for longer than some 10 ms."""


GATHER_S = 0.01
"""Ticks are so far apart at least: many calls bring windows all the time, and a hop to the thread costs more than what
it is for. A call alone, with sound every 40 ms, never waits for it."""


@dataclass(slots=True)
class _Work:
    """Windows of one stream that go through the detector together."""

    stream: "_Stream"
    first_window: int
    windows: NDArray[np.int16]
    owed: NDArray[np.int16]
    """Windows before them that were answered already and are judged for the state's sake."""


@dataclass(frozen=True, slots=True)
class _Judgement:
    """What the thread made of a stream's windows."""

    probabilities: tuple[float, ...]
    phrase_ends: tuple[PhraseEnd, ...]


class _Stream:
    """One session's queue of windows. Bounded by its owner, which looks at `backlog`."""

    def __init__(self, service: "VoiceActivity", deliver: DeliverProbabilities) -> None:
        self._service = service
        self.deliver = deliver
        self.state = service.detector.new_state()
        self.phrase_ends = PhraseEnds()
        self.stillness = Stillness()
        self.pending: deque[tuple[int, NDArray[np.int16]]] = deque(maxlen=65_536)
        self.backlog = 0
        self.expected = -1
        self.closed = False

    def push(self, first_window: int, windows: NDArray[np.int16]) -> None:
        if self.closed or not len(windows):
            return
        if self.backlog == 0 and first_window == self.expected and self.stillness.passes(windows):
            self._pass_over(first_window, windows)
            if self.stillness.owes_many:
                self._service.want(self)
            return
        self.pending.append((first_window, windows))
        self.backlog += len(windows)
        self._service.want(self)

    def _pass_over(self, first_window: int, windows: NDArray[np.int16]) -> None:
        """Answers for the detector, here and now: a hop to its thread and back costs more than its answer."""
        self.expected = first_window + len(windows)
        silence = (0.0,) * len(windows)
        self.deliver(first_window, silence, self.phrase_ends.observe(windows, silence, first_window))

    def take(self) -> _Work | None:
        """Returns the next at most 64 windows that follow each other, or none behind those that are owed."""
        if not self.pending:
            nothing = np.empty((0, WINDOW), np.int16)
            owes = self.stillness.owes_many
            return _Work(self, self.expected, nothing, self.stillness.owed()) if owes else None
        first, windows = self.pending.popleft()
        if len(windows) > MOST_WINDOWS_A_TICK:
            self.pending.appendleft((first + MOST_WINDOWS_A_TICK, windows[MOST_WINDOWS_A_TICK:]))
            windows = windows[:MOST_WINDOWS_A_TICK]
        if first != self.expected:
            self.state = self._service.detector.new_state()
            self.stillness.begin()
        self.expected = first + len(windows)
        return _Work(self, first, windows, self.stillness.owed())

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
        self._closed = False

    def stream(self, deliver: DeliverProbabilities) -> _Stream:
        return _Stream(self, deliver)

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
        sounds = [np.concatenate((w.owed, w.windows)) for w in work]
        results: list[list[float]] = [[] for _ in work]
        for k in range(max(map(len, sounds))):
            rows = [i for i, sound in enumerate(sounds) if k < len(sound)]
            heard = np.stack([sounds[i][k] for i in rows]).astype(np.float32) / 32_768.0
            states = np.stack([work[i].stream.state for i in rows])
            probabilities, states = self.detector.detect(heard, states)
            for row, i in enumerate(rows):
                work[i].stream.state = states[row]
                results[i].append(float(probabilities[row]))
        return [_judgement(w, tuple(result[len(w.owed) :])) for w, result in zip(work, results, strict=True)]

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
            if not work.stream.closed and found.probabilities:
                work.stream.stillness.judged(work.windows, found.probabilities)
                work.stream.deliver(work.first_window, found.probabilities, found.phrase_ends)
        self._go_on()


def _judgement(work: _Work, probabilities: tuple[float, ...]) -> _Judgement:
    if not probabilities:
        return _Judgement((), ())
    heard = work.stream.phrase_ends.observe(work.windows, probabilities, work.first_window)
    return _Judgement(probabilities, heard)
