"""One order for numbered entries and private messages."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.sessions.links import LinkKind, LoggedEvent, SessionRequest
from orchestrator.transports.outbox import MAX_TOLD, MAX_TOLD_BYTES, TOO_MANY_TOLD, Closing, Outbox, Told
from tests.transports.fake_sessions import FakeSession


def session() -> FakeSession:
    async def make() -> FakeSession:
        return FakeSession(SessionRequest("t", 2), LinkKind.WEBSOCKET)

    return asyncio.run(make())


def shown(entries: list[Any]) -> list[str]:
    """Entries as short words: event names, private texts, closing codes."""
    words = []
    for entry in entries:
        if isinstance(entry, Told):
            words.append(entry.data.decode())
        elif isinstance(entry, Closing):
            words.append(f"close {entry.code}")
        else:
            assert isinstance(entry, LoggedEvent)
            words.append(entry.data.decode().split('"')[-2])
    return words


def everything(box: Outbox, limit: int) -> list[str]:
    words: list[str] = []
    while taken := box.take(limit):
        words += shown(taken)
    return words


def test_outbox_sends_what_was_told_before_it_started_first() -> None:
    """`session.created` precedes everything that the log holds."""
    logged = session()
    logged.emit("old")
    box = Outbox(logged)
    box.tell(b"created")
    logged.emit("new")
    assert box.take(10) == []
    box.start(1)
    assert everything(box, 10) == ["created", "new"]


@given(st.lists(st.sampled_from(["emit", "tell", "take"]), max_size=80), st.integers(1, 5))
def test_outbox_keeps_the_order_in_which_things_were_said(steps: list[str], limit: int) -> None:
    """However emitting, telling and sending interleave, what is sent is what was said, in that order."""
    logged = session()
    box = Outbox(logged)
    box.start(0)
    said: list[str] = []
    sent: list[str] = []
    for count, step in enumerate(steps):
        if step == "emit":
            logged.emit(f"e{count}")
            said.append(f"e{count}")
        elif step == "tell":
            box.tell(f"t{count}".encode())
            said.append(f"t{count}")
        else:
            sent += shown(box.take(limit))
            assert sent == said[: len(sent)]
    assert sent + everything(box, limit) == said


def test_outbox_ends_after_what_was_said_before_the_close() -> None:
    """A link says everything up to its end, and nothing after it."""
    logged = session()
    box = Outbox(logged)
    box.start(0)
    logged.emit("a")
    box.tell(b"b")
    box.close(Closing(1001, "bye"))
    box.close(Closing(1000, "never mind"))
    logged.emit("c")
    box.tell(b"d")
    assert everything(box, 1)[:3] == ["a", "b", "close 1001"]


def test_outbox_says_that_the_log_has_dropped_what_comes_next() -> None:
    """Falling behind retention is an error of the link, told by the log."""
    logged = session()
    box = Outbox(logged)
    box.start(0)
    for _ in range(5):
        logged.emit("e")
    assert not box.is_behind()
    logged.drop_before(3)
    assert box.is_behind()
    with pytest.raises(LookupError):
        box.take(10)


@pytest.mark.parametrize(("size", "room"), [(1, MAX_TOLD), (MAX_TOLD_BYTES // 4, 4)])
def test_outbox_closes_a_link_whose_private_messages_pile_up(size: int, room: int) -> None:
    """Answers to invalid messages are bounded in number and bytes: over either the client is told goodbye."""
    box = Outbox(session())
    box.start(0)
    for _ in range(room):
        box.tell(b"x" * size)
        assert box.closing is None
    box.tell(b"x")
    assert box.closing == TOO_MANY_TOLD
    taken = box.take(1)
    assert len(taken) == room + 1
    assert taken[-1] == TOO_MANY_TOLD


def test_outbox_has_room_again_once_messages_were_sent() -> None:
    """The bound is on what waits, not on what was ever told."""
    box = Outbox(session())
    box.start(0)
    for _ in range(3 * MAX_TOLD):
        box.tell(b"x" * 50_000)
        box.take(1)
    assert box.closing is None
