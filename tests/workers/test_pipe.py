"""The server's end of a worker's pipe, with a transport that a test controls."""

import asyncio

from orchestrator.scheduling.work import ReplyText, Transcribe
from orchestrator.workers.frames import Beat, Cancel, FrameReader, FromWorker, Run, Task, frame, to_worker
from orchestrator.workers.pipe import CHUNK_BYTES, Pipe


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
    payloads = FrameReader().feed(b"".join(transport.written))
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
    pipe.data_received(bytes(frame(ReplyText("j", "a")) + frame(Beat())))
    assert received == [ReplyText("j", "a"), Beat()]

    def close_at_once(message: FromWorker) -> None:
        received.append(message)
        pipe.close()

    pipe._received = close_at_once
    pipe.data_received(bytes(frame(ReplyText("j", "b")) + frame(ReplyText("j", "c"))))
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
    assert pipe._unwritten == []


def test_pipe_noise_ends_it() -> None:
    """A worker that sends what is no frame cannot be trusted: cut off, with the reason."""
    pipe, transport, received, ended = _connected()
    pipe.data_received(b"garbage on the pipe")
    assert received == []
    assert transport.aborted
    assert len(ended) == 1
    assert "no frame" in ended[0]
