"""Bytes change hands without a copy, in order, within their bound, and nothing is lost by who gives up waiting."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from orchestrator.buffers.handover import Handover
from orchestrator.buffers.views import MAX_VIEWS, Views
from orchestrator.errors import InvalidState, Overloaded, SessionClosed

BOUND = 40


class ViewsMachine(RuleBasedStateMachine):
    """Views that wait equal one string of bytes that is cut at its front, and show what was put in, not a copy."""

    def __init__(self) -> None:
        super().__init__()
        self.views = Views()
        self.waiting = b""
        self.next = 0

    @rule(size=st.integers(0, 9), kind=st.sampled_from([bytes, bytearray, memoryview]))
    def put(self, size: int, kind: type) -> None:
        piece = bytes((self.next + at) % 256 for at in range(size))
        self.next += size
        self.views.put(kind(piece))
        self.waiting += piece

    @rule(size=st.none() | st.integers(1, 30))
    def take(self, size: int | None) -> None:
        taken = self.views.take(size)
        assert bool(taken) == bool(self.waiting)
        assert size is None or len(taken) <= size
        assert self.waiting.startswith(bytes(taken))
        self.waiting = self.waiting[len(taken) :]

    @rule()
    def clear(self) -> None:
        self.views.clear()
        self.waiting = b""

    @invariant()
    def counts(self) -> None:
        assert len(self.views) == len(self.waiting)


TestViews = ViewsMachine.TestCase


class HandoverMachine(RuleBasedStateMachine):
    """A hand-over equals a queue of pieces, a list of what is lent, and a bound over both."""

    def __init__(self) -> None:
        super().__init__()
        self.handover = Handover(BOUND)
        self.waiting: list[bytes] = []
        self.lent: list[memoryview] = []
        self.given: list[bytes] = []
        self.passed = self.refused = 0
        self.closed = False

    @property
    def held(self) -> int:
        return sum(map(len, self.waiting)) + sum(map(len, self.lent))

    @rule(piece=st.binary(max_size=2 * BOUND))
    def put(self, piece: bytes) -> None:
        if self.closed:
            with pytest.raises(SessionClosed):
                self.handover.put_nowait(piece)
        elif self.held and self.held + len(piece) > BOUND:
            with pytest.raises(Overloaded):
                self.handover.put_nowait(piece)
            self.refused += len(piece)
        else:
            self.handover.put_nowait(piece)
            self.waiting += [piece] if piece else []
            self.given.append(piece)

    @rule(size=st.none() | st.integers(1, BOUND))
    def take(self, size: int | None) -> None:
        view = self.handover.take_nowait(size)
        if not self.waiting:
            assert not view
            return
        first = self.waiting.pop(0)
        expected = first if size is None else first[:size]
        assert any(view.obj is piece for piece in self.given), "a view of what was put in"
        assert bytes(view) == expected
        if len(expected) < len(first):
            self.waiting.insert(0, first[len(expected) :])
        self.lent.append(view)

    @rule(at=st.integers(0, 5))
    def done(self, at: int) -> None:
        if at < len(self.lent):
            view = self.lent.pop(at)
            self.handover.done(view)
            self.passed += len(view)

    @rule()
    def overdone(self) -> None:
        lent = sum(map(len, self.lent))
        with pytest.raises(InvalidState):
            self.handover.done(memoryview(bytes(lent + 1)))

    @rule()
    def clear(self) -> None:
        self.handover.clear()
        self.waiting = []

    @rule()
    def close(self) -> None:
        self.handover.close()
        self.closed = True

    @invariant()
    def counts(self) -> None:
        told = self.handover.statistics()
        assert told.held == self.held
        assert told.lent == sum(map(len, self.lent))
        assert told.most >= told.held
        assert (told.passed, told.refused) == (self.passed, self.refused)


TestHandover = HandoverMachine.TestCase


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 60))


async def settled() -> None:
    """Lets everybody run who can."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_views_are_of_the_very_bytes() -> None:
    """What is taken is where it was: a change of it shows, so nothing was copied."""
    bytes_of_mine, views = bytearray(b"abcdef"), Views()
    views.put(memoryview(bytes_of_mine)[1:])
    first, rest = views.take(2), views.take()
    bytes_of_mine[:] = b"ABCDEF"
    assert (bytes(first), bytes(rest)) == (b"BC", b"DEF")


def test_views_are_refused_beyond_their_number() -> None:
    """However small the pieces are, memory is bounded; nothing of the refused one is kept."""
    views = Views()
    for _ in range(MAX_VIEWS):
        views.put(b"x")
    with pytest.raises(Overloaded):
        views.put(b"y")
    assert len(views) == MAX_VIEWS
    views.take()
    views.put(b"y")


@given(
    st.lists(st.binary(min_size=1, max_size=60), max_size=30),
    st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=60),
)
def test_handover_gives_up_waiting_and_loses_nothing(
    pieces: list[bytes], orders: list[tuple[bool, int]]
) -> None:
    """Whoever waits is cancelled at any moment and tries again: every byte arrives once, in order, and no more than
    the bound (or one larger piece) is held at any time."""

    async def test() -> None:
        handover, came = Handover(BOUND), bytearray()
        left = list(pieces)

        async def send() -> None:
            while left:
                await handover.put(left[0])
                del left[0]
                await asyncio.sleep(0)
            handover.close()

        async def receive() -> None:
            try:
                while view := await handover.take():
                    came.extend(view)
                    handover.done(view)
            except SessionClosed:
                return

        for sends, turns in orders:
            waiting = asyncio.create_task(send() if sends else receive())
            for _ in range(turns):
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait({waiting})
            assert handover.held <= max(BOUND, max(map(len, pieces), default=0))
        await asyncio.gather(send(), receive())
        assert bytes(came) == b"".join(pieces)
        assert handover.held == 0

    run(test())


def test_handover_holds_the_sender_back_until_the_receiver_is_done() -> None:
    """Taken is not done: the sender's bytes are in use, and count."""

    async def test() -> None:
        handover = Handover(BOUND)
        await handover.put(bytes(BOUND))
        waiting = asyncio.create_task(handover.put(b"more"))
        view = await handover.take()
        await settled()
        assert not waiting.done()
        handover.done(view)
        await waiting
        assert bytes(await handover.take()) == b"more"
        assert handover.statistics().waits == 1

    run(test())


def test_handover_passes_a_view_that_is_larger_than_all_of_it() -> None:
    """Alone, and only when everything before it is done: else it would wait for ever."""

    async def test() -> None:
        handover = Handover(BOUND)
        await handover.put(b"before")
        waiting = asyncio.create_task(handover.put(bytes(10 * BOUND)))
        await settled()
        assert not waiting.done()
        handover.done(await handover.take())
        await waiting
        assert len(await handover.take()) == 10 * BOUND

    run(test())


def test_handover_closes_for_both_sides() -> None:
    """What was put in before is still taken; who waits for room or for more is told, at once."""

    async def test() -> None:
        handover = Handover(BOUND)
        await handover.put(bytes(BOUND))
        held_back = asyncio.create_task(handover.put(b"late"))
        await settled()
        handover.close()
        with pytest.raises(SessionClosed):
            await held_back
        assert len(await handover.take()) == BOUND
        with pytest.raises(SessionClosed):
            await handover.take()
        empty = Handover(BOUND)
        waiting = asyncio.create_task(empty.take())
        await settled()
        empty.close()
        empty.close()
        with pytest.raises(SessionClosed):
            await waiting

    run(test())
