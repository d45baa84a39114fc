"""What leaves a worker process: in order, whole, and joined only while the pipe is behind."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.scheduling.work import Replied, ReplyCall, ReplyText, SpeechPiece
from orchestrator.workers.frames import Beat, FrameReader, FromWorker, from_worker
from orchestrator.workers.outbox import Outbox
from tests.workers.feeding import feed


@contextmanager
def _pipe() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(30)
        yield ours, theirs


def _received(pipe: socket.socket) -> list[FromWorker]:
    """Reads until the other side has ended."""
    reader = FrameReader()
    messages: list[FromWorker] = []
    while received := pipe.recv(65_536):
        messages += [from_worker(payload) for payload in feed(reader, received)]
    return messages


def _sent(*messages: FromWorker) -> list[FromWorker]:
    """Puts all messages before the first is written: the pipe is behind."""
    with _pipe() as (ours, theirs):
        outbox = Outbox(ours)
        for message in messages:
            outbox.put(message)
        outbox.start()
        outbox.close()
        ours.shutdown(socket.SHUT_WR)
        return _received(theirs)


def test_outbox_deltas_leave_one_by_one_while_the_pipe_is_free() -> None:
    """Each delta is a frame of its own when the reader keeps up."""
    with _pipe() as (ours, theirs):
        outbox = Outbox(ours)
        outbox.start()
        reader = FrameReader()
        for text in ("a", "b", "c"):
            outbox.put(ReplyText("j", text))
            assert [from_worker(one) for one in feed(reader, theirs.recv(1000))] == [ReplyText("j", text)]
        outbox.close()


def test_outbox_deltas_of_each_reply_are_joined_while_the_pipe_is_behind() -> None:
    """Texts of two replies, interleaved, come as one text each; ends stay behind their texts."""
    sent = _sent(
        ReplyText("a", "1"),
        ReplyText("b", "x"),
        ReplyText("a", "2"),
        ReplyText("b", "y"),
        ReplyText("a", "3"),
        Replied("a", "stop"),
        ReplyText("b", "z"),
    )
    assert sent == [ReplyText("a", "123"), ReplyText("b", "xyz"), Replied("a", "stop")]


def test_outbox_joins_no_text_over_a_tool_call() -> None:
    """The order of text and calls within a reply is kept."""
    messages: list[FromWorker] = [
        ReplyText("a", "1"),
        ReplyCall("a", 0, "{"),
        ReplyText("a", "2"),
        ReplyText("a", "3"),
    ]
    assert _sent(*messages) == [ReplyText("a", "1"), ReplyCall("a", 0, "{"), ReplyText("a", "23")]


def test_outbox_beats_do_not_pile_up() -> None:
    """While anything waits, a beat would say nothing new."""
    assert _sent(Beat(), Beat(), Beat()) == [Beat()]
    assert _sent(ReplyText("a", "1"), Beat()) == [ReplyText("a", "1")]


def test_outbox_engine_waits_while_it_is_full() -> None:
    """BLOCK at the bound; when the reader comes, everything arrives and the engine goes on."""
    piece = SpeechPiece("j", 0, 24_000, 4800, bytes(9600))
    with _pipe() as (ours, theirs):
        outbox = Outbox(ours, bound_bytes=50_000)
        outbox.start()
        done = threading.Event()

        def speak() -> None:
            for _ in range(300):
                outbox.put(piece)
            done.set()

        engine = threading.Thread(target=speak)
        engine.start()
        while outbox._bytes < 40_000:
            done.wait(0.001)
        assert not done.is_set(), "300 pieces do not fit into pipe and outbox"
        assert outbox._bytes <= 50_000
        reading = threading.Thread(target=lambda: received.extend(_received(theirs)))
        received: list[FromWorker] = []
        reading.start()
        engine.join(30)
        outbox.close()
        ours.shutdown(socket.SHUT_WR)
        reading.join(30)
        assert received == [piece] * 300


def test_outbox_whose_reader_is_gone_holds_nobody_up() -> None:
    """The server died: engines may put what they like, nothing waits."""
    with _pipe() as (ours, theirs):
        theirs.close()
        outbox = Outbox(ours, bound_bytes=1000)
        outbox.start()
        for _ in range(100):
            outbox.put(SpeechPiece("j", 0, 24_000, 480, bytes(960)))
        outbox.close()
