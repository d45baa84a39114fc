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
