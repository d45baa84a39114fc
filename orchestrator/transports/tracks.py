"""What a call's track sends next: the queue of a session's sound and the times at which frames are due (hearts)."""

from collections import OrderedDict, deque
from dataclasses import dataclass

from orchestrator.buffers.views import Bytes, Views
from orchestrator.clock import US_PER_MS, US_PER_S
from orchestrator.errors import Overloaded

RATE_HZ = 24_000
FRAME_US = 20 * US_PER_MS
FRAME_SAMPLES = RATE_HZ * FRAME_US // US_PER_S
FRAME_BYTES = 2 * FRAME_SAMPLES
BYTES_PER_S = 2 * RATE_HZ

MAX_RESPONSES = 64
"""Responses queued, and responses remembered, at most."""

KEPT_FRAMES = 10 * US_PER_S // FRAME_US
"""Frames with sound whose times are remembered: what is unplayed goes no further back."""


@dataclass(frozen=True, slots=True)
class Frame:
    """20 ms to send: `FRAME_BYTES` of 24 kHz int16 mono, or None for silence. `drained`: finished responses whose last
    sample went with the frame before."""

    pcm: bytes | None
    drained: tuple[str, ...]


class _Part:
    """Sound of one response, in order: views of the pieces that the session's log holds too."""

    __slots__ = ("finished", "response_id", "sound")

    def __init__(self, response_id: str) -> None:
        self.response_id = response_id
        self.sound = Views()
        self.finished = False


class PlayoutQueue:
    """A call's sound that is still to be played, at most `limit_s` seconds; full means: new sound is refused.

    Sound stays where it is until its frame is due; then it is copied, once, into the frame.

    Where sound comes slower than it is played, silence is sent and whole frames are waited for, so that a response
    breaks off at most once per frame of delay. Only what was really taken counts as played.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_bytes = int(limit_s * BYTES_PER_S)
        self._parts: deque[_Part] = deque(maxlen=MAX_RESPONSES)
        self._bytes = 0
        self._played: OrderedDict[str, int] = OrderedDict()
        self._flushed: OrderedDict[str, int] = OrderedDict()
        self._drained: list[str] = []
        self._sent: deque[tuple[int, str, int]] = deque(maxlen=KEPT_FRAMES)  # when, of what, played before

    @property
    def queued_s(self) -> float:
        """Seconds of sound waiting."""
        return self._bytes / BYTES_PER_S

    @property
    def is_idle(self) -> bool:
        """Whether `take` has neither sound nor news."""
        return not self._parts and not self._drained

    def play(self, response_id: str, pcm: Bytes) -> None:
        """Queues sound. Raises `Overloaded`, and queues nothing, over the bound."""
        if len(pcm) % 2:
            raise ValueError("int16 sound has an even number of bytes")
        if not pcm:
            return
        part = self._parts[-1] if self._parts else None
        new = part is None or part.response_id != response_id or part.finished
        over_bytes = self._bytes + len(pcm) - self._limit_bytes
        if over_bytes > 0 or (new and len(self._parts) == MAX_RESPONSES):
            limit_s = self._limit_bytes / BYTES_PER_S
            raise Overloaded(
                f"the call has {limit_s:.0f} s of sound to play", max(over_bytes, 0) / BYTES_PER_S
            )
        if part is None or new:
            part = _Part(response_id)
            self._parts.append(part)
        part.sound.put(pcm)
        self._bytes += len(pcm)
        self._flushed.pop(response_id, None)

    def finish(self, response_id: str) -> None:
        """No more sound of this response follows: it is drained after its last sample. What was flushed never is."""
        if response_id in self._flushed:
            return
        for part in reversed(self._parts):
            if part.response_id == response_id:
                part.finished = True
                return
        self._drained.append(response_id)

    def flush(self) -> None:
        """Drops everything that waits; what it belonged to is not going to be drained."""
        for response_id in (*(part.response_id for part in self._parts), *self._drained, *self._played):
            _remember(self._flushed, response_id, 0)
        self._parts.clear()
        self._drained.clear()
        self._bytes = 0

    def take(self, now_us: int = 0) -> Frame:
        """Returns the next 20 ms, which are sent now."""
        drained, self._drained = tuple(self._drained), []
        views: list[memoryview] = []
        missing = FRAME_BYTES
        while self._parts and missing:
            part = self._parts[0]
            ends = part.finished or len(self._parts) > 1
            if len(part.sound) < missing and not ends:
                break
            before = missing
            while missing and (view := part.sound.take(missing)):
                views.append(view)
                missing -= len(view)
            played = self._played.get(part.response_id, 0)
            self._sent.append((now_us, part.response_id, played))
            _remember(self._played, part.response_id, played + (before - missing) // 2)
            if ends and not part.sound:
                self._parts.popleft()
                if part.finished:
                    self._drained.append(part.response_id)
        self._bytes -= FRAME_BYTES - missing
        return Frame(b"".join((*views, bytes(missing))) if views else None, drained)

    def unplay(self, since_us: int) -> None:
        """What was taken after this time has reached nobody: it counts as not played."""
        while self._sent and self._sent[-1][0] > since_us:
            _, response_id, played = self._sent.pop()
            _remember(self._played, response_id, played)

    def played_samples(self, response_id: str) -> int:
        """How many samples of this response were taken; remembered for the last `MAX_RESPONSES` responses."""
        return self._played.get(response_id, 0)


def _remember(memory: OrderedDict[str, int], key: str, value: int) -> None:
    memory[key] = value
    memory.move_to_end(key)
    while len(memory) > MAX_RESPONSES:
        memory.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Due:
    """When the next frame is due, and how many frames were skipped before it because the sender stood still."""

    at_us: int
    skipped: int


class Pacer:
    """Gives absolute deadlines 20 ms apart: delays never add up.

    A sender that is late sends what it owes at once, up to `max_behind_us`; after a longer stop it goes on from now,
    and the frames in between count as skipped, so that time stamps stay those of the clock.
    """

    def __init__(self, max_behind_us: int = 200 * US_PER_MS) -> None:
        self._max_behind_us = max_behind_us
        self._next_us: int | None = None

    def due(self, now_us: int) -> Due:
        """Returns when to send the next frame; the first one is due at once."""
        if self._next_us is None:
            self._next_us = now_us
        skipped = 0
        if now_us - self._next_us > self._max_behind_us:
            skipped = (now_us - self._next_us) // FRAME_US
            self._next_us += skipped * FRAME_US
        at_us = self._next_us
        self._next_us += FRAME_US
        return Due(at_us, skipped)

    def rest_us(self, frames: int, now_us: int) -> int:
        """Returns how long it is until so many more frames were due."""
        return 0 if self._next_us is None else max(0, self._next_us + (frames - 1) * FRAME_US - now_us)

    def wake(self, now_us: int) -> int:
        """Passes over the frames that were due while nothing was to be sent, but for the last, which may go at once.
        Returns how many."""
        skipped = 0 if self._next_us is None else max(0, (now_us - self._next_us) // FRAME_US)
        if self._next_us is not None:
            self._next_us += skipped * FRAME_US
        return skipped
