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

    Nothing is allocated after construction; `peek` copies nothing.
    """

    __slots__ = ("_block", "_capacity", "_oldest", "_position")

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"a ring holds at least one sample, not {capacity}")
        self._block: Pcm = np.zeros(capacity, dtype=np.int16)
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

    def write(self, view: Pcm) -> int:
        """Appends samples and returns how many held ones were overwritten by them."""
        size = len(view)
        if size > self._capacity:
            skipped = size - self._capacity
            lost = self._position - self._oldest
            self._position += skipped
            self._oldest = self._position
            self.write(view[skipped:])
            return lost
        first, second = self._places(self._position, size)
        self._block[first] = view[: first.stop - first.start]
        if second is not None:
            self._block[second] = view[first.stop - first.start :]
        return self._advance(size)

    def write_silence(self, size: int) -> int:
        """Appends `size` zeros, in time bounded by the capacity; returns how many held samples were overwritten."""
        if size > self._capacity:
            skipped = size - self._capacity
            lost = self._position - self._oldest
            self._position += skipped
            self._oldest = self._position
            self.write_silence(self._capacity)
            return lost
        first, second = self._places(self._position, size)
        self._block[first] = 0
        if second is not None:
            self._block[second] = 0
        return self._advance(size)

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
        first, second = self._places(start, stop - start)
        places = (first,) if second is None else (first, second)
        views = tuple(self._block[place] for place in places)
        for view in views:
            view.flags.writeable = False
        return views

    def read_into(self, start: int, view: Pcm) -> None:
        """Copies samples [start, start + len(view)) into `view`. Raises as `peek` does."""
        filled = 0
        for piece in self.peek(start, start + len(view)):
            view[filled : filled + len(piece)] = piece
            filled += len(piece)

    def _advance(self, size: int) -> int:
        self._position += size
        oldest = max(self._oldest, self._position - self._capacity)
        lost = oldest - self._oldest
        self._oldest = oldest
        return lost

    def _places(self, position: int, size: int) -> tuple[slice, slice | None]:
        """Where `size` samples from `position` on lie in the block: one stretch, or two around its end."""
        start = position % self._capacity
        stop = start + size
        if stop <= self._capacity:
            return slice(start, stop), None
        return slice(start, self._capacity), slice(0, stop - self._capacity)
