"""A fixed block of samples that the newest sound overwrites. Positions are absolute: a position is a time."""

import numpy as np

from modalities.ports import Pcm


class Overrun(LookupError):
    """The samples asked for were overwritten; `oldest` is the first position still held."""

    def __init__(self, start: int, oldest: int) -> None:
        super().__init__(f"sample {start} is gone, the oldest one held is {oldest}")
        self.oldest = oldest


class Ring:
    """Holds the last `capacity` int16 samples written. Full means: the oldest are overwritten, and counted.

    Nothing is allocated after construction; `peek` copies nothing. One thread writes; others may read beside it without
    a lock: who has copied what `peek` shows asks `holds` of its first sample. Samples are given up before they are
    overwritten, and new ones are named after they are there, so what is held then was whole.
    """

    __slots__ = ("_block", "_capacity", "_oldest", "_position", "_shown")

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"a ring holds at least one sample, not {capacity}")
        self._block: Pcm = np.zeros(capacity, dtype=np.int16)
        self._shown = self._block[:]
        self._shown.flags.writeable = False  # views of it are read-only too
        self._capacity = capacity
        self._position = 0
        self._oldest = 0

    @property
    def capacity(self) -> int:
        """How many samples are held at most."""
        return self._capacity

    @property
    def position(self) -> int:
        """The index of the next sample to be written."""
        return self._position

    @property
    def oldest(self) -> int:
        """The index of the oldest sample still held."""
        return self._oldest

    def holds(self, start: int) -> bool:
        """Says whether sample `start` was not overwritten, nor is just now, and so no later one."""
        return start >= self._oldest

    def write(self, view: Pcm) -> int:
        """Appends samples and returns how many held ones were overwritten by them."""
        size = len(view)
        if size > self._capacity:
            return self._pass(size - self._capacity) + self.write(view[size - self._capacity :])
        lost = self._give_up(size)
        at = self._position % self._capacity
        stop = at + size
        if stop <= self._capacity:
            self._block[at:stop] = view
        else:
            self._block[at:] = view[: self._capacity - at]
            self._block[: stop - self._capacity] = view[self._capacity - at :]
        self._position += size
        return lost

    def write_silence(self, size: int) -> int:
        """Appends `size` zeros, in time bounded by the capacity; returns how many held samples were overwritten."""
        if size > self._capacity:
            return self._pass(size - self._capacity) + self.write_silence(self._capacity)
        lost = self._give_up(size)
        at = self._position % self._capacity
        stop = at + size
        self._block[at:stop] = 0
        if stop > self._capacity:
            self._block[: stop - self._capacity] = 0
        self._position += size
        return lost

    def peek(self, start: int, stop: int) -> tuple[Pcm, ...]:
        """Returns samples [start, stop) as one or two read-only views (none if empty), valid until overwritten.

        Raises `Overrun` if `start` was overwritten, `IndexError` if `stop` was not written yet or lies before `start`.
        """
        if stop > self._position or stop < start:
            raise IndexError(
                f"samples [{start}, {stop}) are not there; the next one to be written is {self._position}"
            )
        if start < self._oldest:
            raise Overrun(start, self._oldest)
        if start == stop:
            return ()
        at = start % self._capacity
        end = at + stop - start
        if end <= self._capacity:
            return (self._shown[at:end],)
        return self._shown[at:], self._shown[: end - self._capacity]

    def read_into(self, start: int, view: Pcm) -> None:
        """Copies samples [start, start + len(view)) into `view`. Raises as `peek` does, and `Overrun` as well where
        another thread overwrote them meanwhile: what is in `view` then is nothing."""
        filled = 0
        for piece in self.peek(start, start + len(view)):
            view[filled : filled + len(piece)] = piece
            filled += len(piece)
        if not self.holds(start):
            raise Overrun(start, self._oldest)

    def _give_up(self, size: int) -> int:
        """Lets go of what the next `size` samples overwrite, before they do; returns how many that are."""
        lost = self._position + size - self._capacity - self._oldest
        if lost <= 0:
            return 0
        self._oldest += lost
        return lost

    def _pass(self, size: int) -> int:
        """Goes on by `size` samples that would be overwritten at once; returns how many held ones are given up."""
        lost = self._position - self._oldest
        # In this order: no moment at which a sample that was never written seems to be held.
        self._oldest = self._position + size
        self._position += size
        return lost
