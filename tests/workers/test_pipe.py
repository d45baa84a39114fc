"""The server's end of a worker's pipe, with a transport that a test controls."""

import asyncio
import socket
from collections.abc import Callable

import pytest
import uvloop

from orchestrator.scheduling.work import ReplyText, SpeechPiece, Transcribe
from orchestrator.workers.frames import Beat, Cancel, FrameReader, FromWorker, Run, Task, frame, to_worker
from orchestrator.workers.pipe import CHUNK_BYTES, Pipe
from tests.workers.feeding import feed


class _Transport(asyncio.WriteTransport):
    """Keeps what is written; asks for a pause after every write while `slow`."""

    def __init__(self, pipe: Pipe, slow: bool = False) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.aborted = False
        self._pipe = pipe
        self._slow = slow

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))
        if self._slow:
            self._pipe.pause_writing()

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True


def _connected(slow: bool = False) -> tuple[Pipe, _Transport, list[FromWorker], list[str]]:
    received: list[FromWorker] = []
    ended: list[str] = []
    pipe = Pipe(received.append, ended.append)
    transport = _Transport(pipe, slow)
    pipe.connection_made(transport)
    return pipe, transport, received, ended


def come(pipe: Pipe, received: bytes) -> None:
    """Bytes come in, as a transport hands them in."""
    while received:
        room = pipe.get_buffer(-1)
        size = min(len(room), len(received))
        room[:size] = received[:size]
        pipe.buffer_updated(size)
        received = received[size:]


def test_pipe_gives_a_large_frame_away_in_chunks_as_it_is_asked_for_them() -> None:
    """No turn of the loop copies a whole clip; what follows it waits behind it, in order."""
    pipe, transport, _, _ = _connected(slow=True)
    clip = Run((Task("j", Transcribe(0, 0, audio=bytes(3 * CHUNK_BYTES))),))
    pipe.send(clip)
    pipe.send(Cancel("j"))
    assert len(transport.written) == 1
    while len(transport.written) < 5:
        pipe.resume_writing()
    assert max(len(chunk) for chunk in transport.written) <= CHUNK_BYTES
    pipe.resume_writing()
    assert len(transport.written) == 5, "nothing is written twice"
    payloads = feed(FrameReader(), b"".join(transport.written))
    assert [to_worker(payload) for payload in payloads] == [clip, Cancel("j")]


def test_pipe_small_messages_leave_at_once() -> None:
    """While the transport takes them nothing waits."""
    pipe, transport, _, _ = _connected()
    pipe.send(Cancel("a"))
    pipe.send(Cancel("b"))
    assert transport.written == [frame(Cancel("a")), frame(Cancel("b"))]


def test_pipe_hands_messages_on_in_order_until_it_is_closed() -> None:
    """A close from inside a message silences the rest of what came with it, and is not told as an end."""
    pipe, transport, received, ended = _connected()
    come(pipe, bytes(frame(ReplyText("j", "a")) + frame(Beat())))
    assert received == [ReplyText("j", "a"), Beat()]

    def close_at_once(message: FromWorker) -> None:
        received.append(message)
        pipe.close()

    pipe._received = close_at_once
    come(pipe, bytes(frame(ReplyText("j", "b")) + frame(ReplyText("j", "c"))))
    assert received[2:] == [ReplyText("j", "b")]
    assert transport.aborted
    pipe.connection_lost(None)
    assert ended == []


def test_pipe_tells_its_end_once() -> None:
    """The worker went away: one reason, and nothing is written to it any more."""
    pipe, transport, _, ended = _connected()
    pipe.connection_lost(None)
    pipe.connection_lost(None)
    pipe.send(Cancel("j"))
    assert ended == ["closed its pipe"]
    assert transport.written == []
    assert pipe._unread.held == 0


def test_pipe_noise_ends_it() -> None:
    """A worker that sends what is no frame cannot be trusted: cut off, with the reason."""
    pipe, transport, received, ended = _connected()
    come(pipe, b"garbage on the pipe")
    assert received == []
    assert transport.aborted
    assert len(ended) == 1
    assert "no frame" in ended[0]


@pytest.mark.parametrize("closed", [False, True])
def test_pipe_to_a_worker_that_does_not_read_ends(closed: bool) -> None:
    """What is sent waits for the worker within a bound; beyond it the worker is given up, with the reason. Whoever
    sends hears of it after what it is doing, once, and not at all if it closes the pipe meanwhile."""

    async def main() -> None:
        ended: list[str] = []
        pipe = Pipe(lambda message: None, ended.append, most_unread=5 * CHUNK_BYTES)
        transport = _Transport(pipe, slow=True)
        pipe.connection_made(transport)
        clip = Run((Task("j", Transcribe(0, 0, audio=bytes(3 * CHUNK_BYTES))),))
        pipe.send(clip)
        assert ended == []
        for _ in range(3):
            pipe.send(clip)
        assert transport.aborted
        assert ended == []
        if closed:
            pipe.close()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert ended == ([] if closed else ["does not read what it is sent"])
        assert pipe._unread.held == 0
        pipe.connection_lost(None)
        assert len(ended) == (not closed)

    asyncio.run(main())


@pytest.mark.parametrize("loops", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_pipe_receives_over_a_real_socket(loops: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """Small frames and one that is far larger than what is received at once, on both kinds of event loop: all come in
    order and equal; then the other side's end is told."""
    sent: list[FromWorker] = [
        Beat(),
        SpeechPiece("j", 0, 24_000, 500_000, bytes(range(250)) * 4_000),
        *[ReplyText("j", "x")] * 2_000,
    ]

    async def test() -> None:
        received: list[FromWorker] = []
        ended = asyncio.get_running_loop().create_future()
        pipe = Pipe(received.append, ended.set_result)
        ours, theirs = socket.socketpair()
        await asyncio.get_running_loop().create_unix_connection(lambda: pipe, sock=ours)
        with theirs:
            await asyncio.to_thread(theirs.sendall, b"".join(frame(message) for message in sent))
        assert await asyncio.wait_for(ended, 60) == "closed its pipe"
        assert received == sent

    with asyncio.Runner(loop_factory=loops) as runner:
        runner.run(test())
