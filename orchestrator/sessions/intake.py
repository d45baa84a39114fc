"""The listening side of a session: sound to its ring, windows to the voice detector, probabilities to its heart."""

from collections.abc import Callable
from typing import Protocol

from modalities.audio.frame import bytes_of
from modalities.audio.phrase_end import PhraseEnd
from modalities.audio.segmenter import BEGIN_WINDOWS, WINDOW
from modalities.ports import SPEECH_RATE_HZ, Pcm
from orchestrator.buffers.audio import SpeechBuffer
from orchestrator.errors import Overloaded
from orchestrator.sessions.events import AudioHeard

_REPORT_SAMPLES = SPEECH_RATE_HZ // 10
_SPEECH = 0.5

MOST_WINDOWS = 16_384
"""Windows of one session that wait for the detector, where its sound comes from no clock: almost nine minutes."""

MOST_LIVE_WINDOWS = 128
"""4 s: a call's sound that is heard later than that comes too late for a conversation. A moment in which the machine
stands still is made up for within it."""


class DeliverProbabilities(Protocol):
    """Takes the speech probabilities of windows `first_window` … and the pauses that were found among them."""

    def __call__(
        self, first_window: int, probabilities: tuple[float, ...], phrase_ends: tuple[PhraseEnd, ...] = (), /
    ) -> None: ...


class Sound(Protocol):
    """A session's sound, as its ring holds it: written by the event loop, read by the detector's thread beside it."""

    def peek(self, start: int, stop: int) -> tuple[Pcm, ...]:
        """Returns samples [start, stop) as views of the ring. Raises `LookupError` where they are not held."""
        ...

    def read_into(self, start: int, view: Pcm) -> None:
        """Copies samples from `start` on. Raises `Overrun` where they were overwritten, also meanwhile."""
        ...


class DetectorStream(Protocol):
    """One session's stream into the shared voice detector."""

    @property
    def backlog(self) -> int:
        """Windows handed in and not yet judged."""
        ...

    @property
    def passed_over(self) -> int:
        """Windows that were overwritten before their turn: no probability of them is delivered."""
        ...

    def push(self, windows: range) -> None:
        """Hands in windows by their numbers: window n is samples [512 n, 512 (n + 1)) of the sound, which stays where
        it is. Probabilities come back by the callback, in order."""
        ...

    def close(self) -> None:
        """Nothing is delivered any more."""
        ...


class Detector(Protocol):
    """The shared voice detector (design §5.1)."""

    def stream(self, deliver: DeliverProbabilities, sound: Sound) -> DetectorStream:
        """Opens a stream; `deliver(first_window, probabilities, phrase_ends)` is called on the event loop."""
        ...


class SoundTap(Protocol):
    """Sees what is taken in (`orchestrator.sessions.tap`)."""

    def heard(self, at_us: int, position: int, pcm: bytes, live: bool) -> None: ...


class SpeechIntake:
    """Implements `AudioIntake` for one session.

    Full means: sound of a paced source replaces the oldest; of an unpaced one (WebSocket) it is refused with
    `Overloaded` while an uncommitted buffer or sound that nobody has judged would be lost, or beyond `max_backlog`
    windows of it. The detector gets extents: beside the ring nothing is kept of what waits for it.
    """

    def __init__(
        self,
        detector: Detector,
        capacity: int,
        now: Callable[[], int],
        post: Callable[[AudioHeard], None],
        max_backlog: int = MOST_WINDOWS,
        max_live_backlog: int = MOST_LIVE_WINDOWS,
    ) -> None:
        self._detector = detector
        self._capacity = capacity
        self._now = now
        self._post = post
        self._max_backlog = max_backlog
        self._max_live_backlog = max_live_backlog
        self._buffer: SpeechBuffer | None = None
        self._stream: DetectorStream | None = None
        self._kept_from: int | None = None
        self._listen_at: int | None = None
        self._next_window = 0
        self._live = False
        self._reported = 0
        self._held: list[float] = []
        self._held_from = 0
        self._phrase_ends: list[PhraseEnd] = []
        self._speech_windows = 0
        self._closed = False
        self.tap: SoundTap | None = None
        self.detecting = True
        self._dropped = 0

    @property
    def position(self) -> int:
        return 0 if self._buffer is None else self._buffer.position

    @property
    def capacity(self) -> int:
        """Samples that the ring holds at most."""
        return self._capacity

    @property
    def backlog(self) -> int:
        """Windows that wait for the detector."""
        return 0 if self._stream is None else self._stream.backlog

    @property
    def dropped_windows(self) -> int:
        """Windows that were never judged, or whose probabilities the session did not take."""
        return self._dropped + (0 if self._stream is None else self._stream.passed_over)

    @property
    def is_behind(self) -> bool:
        # A quarter of the ring: the longest utterance that ends in what waits must still be held when it is found.
        return self._stream is not None and self._stream.backlog * WINDOW > self._capacity // 4

    def append(self, pcm: Pcm) -> None:
        if self._closed:
            return
        buffer = self._open()
        if not self._fits(len(pcm)):
            raise Overloaded("sound comes faster than it can be listened to", 1.0)
        self._live = False
        buffer.keep_from(self._kept_from)
        position = buffer.position
        buffer.append(pcm)
        if self.tap is not None:
            self.tap.heard(self._now(), position, bytes_of(pcm), False)
        self._advance(buffer)

    def append_at(self, position: int, pcm: Pcm) -> None:
        if self._closed:
            return
        buffer = self._open()
        self._live = True
        buffer.keep_from(None)
        buffer.append_at(position, pcm)
        if self.tap is not None:
            self.tap.heard(self._now(), position, bytes_of(pcm), True)
        self._advance(buffer)

    def keep_from(self, position: int | None) -> None:
        """What is held from `position` on may still be committed: unpaced sound must not overwrite it."""
        self._kept_from = position

    def listen_at(self, position: int | None) -> None:
        """The session decides something should the sound stay silent up to `position`: it is told there at once."""
        self._listen_at = position

    def extent(self, start: int, stop: int) -> bytes:
        """Returns a copy of samples [start, stop), int16. Raises `LookupError` where they were overwritten."""
        return b"" if self._buffer is None else self._buffer.extent(start, stop)

    def close(self) -> None:
        """Lets the detector and the sound go; what still comes is dropped. Idempotent."""
        self._closed = True
        self._end_stream()
        self._buffer = None

    def _fits(self, size: int) -> bool:
        """Says whether so many samples more can wait for the detector, all in the ring."""
        backlog = 0 if self._stream is None else self._stream.backlog
        held = not backlog or (backlog + 1) * WINDOW + size <= self._capacity
        return held and backlog + size // WINDOW <= self._max_backlog

    def _end_stream(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._dropped += self._stream.passed_over
            self._stream = None

    def _open(self) -> SpeechBuffer:
        if self._buffer is None:
            # Not before the first sound: a session of text costs no ring.
            self._buffer = SpeechBuffer(self._capacity)
        return self._buffer

    def _advance(self, buffer: SpeechBuffer) -> None:
        """Hands whole new windows to the detector, or only tells how far the sound has come where nobody detects."""
        position = buffer.position
        if not self.detecting:
            self._end_stream()
            self._next_window = -(-position // WINDOW)
            if position - self._reported >= _REPORT_SAMPLES:
                self._tell(position, self._next_window, ())
            return
        if self._stream is None:
            self._stream = self._detector.stream(self._judged, buffer)
        self._next_window = max(self._next_window, -(-buffer.oldest // WINDOW))
        count = position // WINDOW - self._next_window
        if count <= 0:
            return
        if self._live and self._stream.backlog >= self._max_live_backlog:
            # A paced source goes on whatever happens: windows that came too late to matter are passed over.
            self._dropped += count
            self._next_window += count
            return
        first, self._next_window = self._next_window, self._next_window + count
        self._stream.push(range(first, self._next_window))

    def _judged(
        self, first_window: int, probabilities: tuple[float, ...], phrase_ends: tuple[PhraseEnd, ...] = ()
    ) -> None:
        """Passes probabilities on: every 100 ms, and at once where speech begins (barge-in waits for it) or where the
        session can decide by the silence so far (`listen_at`)."""
        if not self._held:
            self._held_from = first_window
        elif first_window != self._held_from + len(self._held):
            self._flush()
            self._held_from = first_window
        self._held.extend(probabilities)
        self._phrase_ends.extend(phrase_ends)
        began = False
        for probability in probabilities:
            self._speech_windows = self._speech_windows + 1 if probability >= _SPEECH else 0
            began = began or self._speech_windows == BEGIN_WINDOWS
        if began or len(self._held) * WINDOW >= _REPORT_SAMPLES or self._is_awaited():
            self._flush()

    def _is_awaited(self) -> bool:
        """Whether what is held reaches the awaited position, in silence: speech has moved the decision on already."""
        if self._listen_at is None or self._speech_windows:
            return False
        return self._reported < self._listen_at <= (self._held_from + len(self._held)) * WINDOW

    def _flush(self) -> None:
        held, self._held = tuple(self._held), []
        if held:
            self._tell((self._held_from + len(held)) * WINDOW, self._held_from, held)

    def _tell(self, stop: int, first_window: int, probabilities: tuple[float, ...]) -> None:
        """Never raises: whoever brings probabilities serves other sessions too."""
        self._reported = stop
        phrase_ends, self._phrase_ends = tuple(self._phrase_ends), []
        try:
            self._post(AudioHeard(stop, self._now(), first_window, probabilities, self._live, phrase_ends))
        except Overloaded:
            self._dropped += len(probabilities)
