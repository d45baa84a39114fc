"""What a session hears: its 16 kHz stream in a ring, with gaps as marked silence."""

from collections import deque
from dataclasses import dataclass

from modalities.ports import SPEECH_RATE_HZ, Pcm
from orchestrator.buffers.ring import Ring
from orchestrator.errors import Overloaded

MAX_GAPS = 256
"""Gaps remembered at most; the oldest are forgotten first."""

_RETRY_AFTER_S = 1.0


@dataclass(frozen=True, slots=True)
class SpeechStatistics:
    """Samples counted since the session began. `silence`: filled into gaps. `cut`: overlapped what was there.
    `refused`: did not fit beside a kept extent. `overwritten`: left the ring by age."""

    written: int
    silence: int
    cut: int
    refused: int
    overwritten: int


class SpeechBuffer:
    """The last `capacity` samples of a session's sound (an `AudioIntake`), positions counted from its first sample.

    Full means: the oldest samples go, except those kept by `keep_from`; then new ones are refused with `Overloaded`.
    """

    __slots__ = ("_cut", "_gaps", "_kept_from", "_overwritten", "_refused", "_ring", "_silence")

    def __init__(self, capacity: int) -> None:
        self._ring = Ring(capacity)
        self._gaps: deque[tuple[int, int]] = deque(maxlen=MAX_GAPS)
        self._kept_from: int | None = None
        self._silence = 0
        self._cut = 0
        self._refused = 0
        self._overwritten = 0

    @property
    def position(self) -> int:
        """The index of the next sample to be appended, also the total so far."""
        return self._ring.position

    @property
    def oldest(self) -> int:
        """The index of the oldest sample that can still be read."""
        return self._ring.oldest

    @property
    def gaps(self) -> tuple[tuple[int, int], ...]:
        """Extents [start, stop) that are filled silence, oldest first; only those still held."""
        oldest = self.oldest
        return tuple((max(start, oldest), stop) for start, stop in self._gaps if stop > oldest)

    def keep_from(self, start: int | None) -> None:
        """Keeps everything from `start` on (an uncommitted manual buffer) from being overwritten; None ends that."""
        self._kept_from = start

    def append(self, pcm: Pcm) -> None:
        """Appends sound at `position`. Raises `Overloaded`, and appends nothing, where kept sound would be lost."""
        self._make_room(len(pcm))
        self._overwritten += self._ring.write(pcm)

    def append_at(self, position: int, pcm: Pcm) -> None:
        """Appends sound that belongs at `position`: a gap before it becomes marked silence, an overlap with what is
        there already is cut off. Raises as `append` does."""
        behind = self.position - position
        if behind > 0:
            self._cut += min(behind, len(pcm))
            pcm = pcm[behind:]
        gap = max(0, -behind)
        if gap and len(pcm) == 0:
            return
        self._make_room(gap + len(pcm))
        if gap:
            self._mark(self.position, position)
            self._overwritten += self._ring.write_silence(gap)
            self._silence += gap
        self._overwritten += self._ring.write(pcm)

    def extent(self, start: int, stop: int) -> bytes:
        """Returns a copy of samples [start, stop) as little-endian int16.

        Raises `Overrun` (a LookupError) if `start` is older than `oldest`, `IndexError` (one too) if `stop` is to come.
        """
        return b"".join(view.astype("<i2", copy=False).tobytes() for view in self._ring.peek(start, stop))

    def peek(self, start: int, stop: int) -> tuple[Pcm, ...]:
        """Returns samples [start, stop) as at most two read-only views, valid until overwritten. Raises as `extent`."""
        return self._ring.peek(start, stop)

    def read_into(self, start: int, view: Pcm) -> None:
        """Copies samples from `start` on into `view`. Raises as `extent`."""
        self._ring.read_into(start, view)

    def statistics(self) -> SpeechStatistics:
        """Returns the counters."""
        return SpeechStatistics(self.position, self._silence, self._cut, self._refused, self._overwritten)

    def _make_room(self, size: int) -> None:
        if self._kept_from is None:
            return
        room = self._ring.capacity - (self.position - max(self._kept_from, self.oldest))
        if size > room:
            self._refused += size
            held_s = self._ring.capacity / SPEECH_RATE_HZ
            raise Overloaded(f"the audio buffer is full ({held_s:.0f} s): commit or clear it", _RETRY_AFTER_S)

    def _mark(self, start: int, stop: int) -> None:
        if self._gaps and self._gaps[-1][1] == start:
            start = self._gaps.pop()[0]
        self._gaps.append((start, stop))
