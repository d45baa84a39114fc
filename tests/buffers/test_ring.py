"""A ring equals a list of all that was ever written, of which only the end can be read."""

import threading
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from modalities.ports import Pcm
from orchestrator.buffers.ring import Overrun, Ring

CAPACITY = 37


def _numbered(start: int, size: int) -> Pcm:
    """Samples that say where they belong."""
    return (np.arange(start, start + size) % 30_011).astype(np.int16)


class RingMachine(RuleBasedStateMachine):
    """The ring equals a list of everything ever written, of which the last CAPACITY samples may be read."""

    def __init__(self) -> None:
        super().__init__()
        self.ring = Ring(CAPACITY)
        self.everything: list[int] = []
        self.taken: list[tuple[int, int, tuple[Pcm, ...]]] = []

    @property
    def oldest(self) -> int:
        return max(0, len(self.everything) - CAPACITY)

    @rule(size=st.integers(0, 3 * CAPACITY), silent=st.booleans())
    def write(self, size: int, silent: bool) -> None:
        before = self.oldest
        held = len(self.everything) - before
        if silent:
            lost = self.ring.write_silence(size)
            self.everything += [0] * size
        else:
            pcm = _numbered(len(self.everything) + 1, size)
            lost = self.ring.write(pcm)
            self.everything += pcm.tolist()
        assert lost == min(held, self.oldest - before)

    @rule(offset=st.integers(-3, CAPACITY + 3), size=st.integers(0, CAPACITY + 3))
    def peek(self, offset: int, size: int) -> None:
        start = max(0, self.oldest + offset)
        stop = start + size
        if stop > len(self.everything):
            with pytest.raises(IndexError):
                self.ring.peek(start, stop)
        elif start < self.oldest:
            with pytest.raises(Overrun) as caught:
                self.ring.peek(start, stop)
            assert caught.value.oldest == self.oldest
        else:
            pieces = self.ring.peek(start, stop)
            assert len(pieces) <= 2
            assert [sample for piece in pieces for sample in piece.tolist()] == self.everything[start:stop]
            self.taken = [*self.taken[-3:], (start, stop, pieces)]

    @rule(start=st.integers(0, 10 * CAPACITY))
    def holds(self, start: int) -> None:
        assert self.ring.holds(start) == (start >= self.oldest)

    @invariant()
    def what_is_held_still_shows_what_was_taken(self) -> None:
        """Views of before, after any number of writes: whole as long as their first sample is held."""
        for start, stop, pieces in self.taken:
            if self.ring.holds(start):
                assert [sample for piece in pieces for sample in piece.tolist()] == self.everything[
                    start:stop
                ]

    @invariant()
    def positions_are_absolute(self) -> None:
        assert self.ring.position == len(self.everything)
        assert self.ring.oldest == self.oldest


TestRing = RingMachine.TestCase


def test_ring_peek_copies_nothing_and_cannot_be_written_through() -> None:
    """What is peeked is the block itself, read-only: sound cannot be changed by one who looks at it."""
    ring = Ring(8)
    ring.write(_numbered(1, 6))
    (view,) = ring.peek(1, 4)
    assert view.base is not None
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 5
    ring.write(_numbered(7, 8))
    assert view.tolist() != [2, 3, 4]


def test_ring_around_its_end_gives_two_pieces() -> None:
    """An extent that crosses the block's end comes in two views, in order."""
    ring = Ring(8)
    ring.write(_numbered(0, 6))
    ring.write(_numbered(6, 4))
    assert [piece.tolist() for piece in ring.peek(5, 10)] == [[5, 6, 7], [8, 9]]


@given(st.integers(1, 50), st.integers(0, 120), st.integers(0, 49))
def test_ring_read_into_equals_peek(capacity: int, written: int, size: int) -> None:
    """Copying into the caller's block gives what peek shows."""
    ring = Ring(capacity)
    ring.write(_numbered(0, written))
    size = min(size, ring.position - ring.oldest)
    out = np.full(size, -1, dtype=np.int16)
    ring.read_into(ring.position - size, out)
    assert out.tolist() == _numbered(written - size, size).tolist()


def test_ring_refuses_an_extent_that_ends_before_it_begins() -> None:
    """A reversed extent is a caller's mistake, not an empty answer."""
    ring = Ring(8)
    ring.write(_numbered(0, 8))
    with pytest.raises(IndexError):
        ring.peek(5, 4)


def test_ring_of_no_capacity_is_refused() -> None:
    """A ring that could hold nothing raises when it is made."""
    with pytest.raises(ValueError, match="at least one"):
        Ring(0)


class Watched:
    """Sound that lets a test look at the ring while it is being copied into it."""

    def __init__(self, ring: Ring, size: int, seen: list[tuple[int, int]]) -> None:
        self._ring, self._size, self._seen = ring, size, seen

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> "Watched":
        return Watched(self._ring, len(range(*part.indices(self._size))), self._seen)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Pcm:
        self._seen.append((self._ring.oldest, self._ring.position))
        return np.zeros(self._size, dtype=np.int16)


@pytest.mark.parametrize(("held", "size"), [(8, 3), (6, 5), (8, 8), (3, 5), (8, 30)])
def test_ring_gives_samples_up_before_it_overwrites_them(held: int, size: int) -> None:
    """While new samples are being copied in, what they overwrite is held no more and they themselves cannot be read:
    a reader in another thread, who asks after its copy, never takes a mixture for sound."""
    ring, seen = Ring(8), list[tuple[int, int]]()
    ring.write(_numbered(0, held))
    ring.write(Watched(ring, size, seen))  # type: ignore[arg-type]
    assert seen
    for oldest, position in seen:
        assert oldest == max(0, held + size - 8)
        assert position == max(held, held + size - 8), "nothing is shown that is not there yet"


def test_ring_a_reader_beside_the_writer_takes_nothing_that_was_overwritten() -> None:
    """A writer laps a reader in another thread all the time, with writes so large that numpy copies them without the
    interpreter's lock: whatever `holds` confirms is right to the sample, and what was lapped is told."""
    ring, enough = Ring(4_096), threading.Event()
    whole, lapped = 0, 0

    def write() -> None:
        for position in _until(enough):
            ring.write(_numbered(position, 2_048))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        out = np.zeros(2_000, dtype=np.int16)
        for _ in range(300_000):
            start = max(ring.oldest, ring.position - 3_000)
            if ring.position < start + len(out):
                continue
            try:
                ring.read_into(start, out)
            except Overrun:
                lapped += 1
            else:
                whole += 1
                assert np.array_equal(out, _numbered(start, len(out)))
            if whole >= 300 and lapped >= 5:
                break
    finally:
        enough.set()
        writer.join()
    assert whole >= 300


def test_ring_read_into_tells_where_it_was_lapped_during_the_copy() -> None:
    """Every time: a write that falls between the look and its confirmation makes the copy worthless, and is told."""

    class Lapping(Ring):
        def peek(self, start: int, stop: int) -> tuple[Pcm, ...]:
            pieces = super().peek(start, stop)
            self.write(_numbered(stop, 5))
            return pieces

    ring = Lapping(8)
    ring.write(_numbered(0, 8))
    with pytest.raises(Overrun):
        ring.read_into(2, np.zeros(6, dtype=np.int16))
    ring.read_into(10, np.zeros(3, dtype=np.int16))


def _until(enough: threading.Event) -> Iterator[int]:
    position = 0
    while not enough.is_set():
        yield position
        position += 2_048
