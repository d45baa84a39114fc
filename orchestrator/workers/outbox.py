"""The way out of a worker process: one thread writes, engines only put down what they have.

While the pipe is free every delta goes out alone. While it is behind, deltas of one reply wait as one text: the reader
catches up with few large frames instead of many tiny ones. Overflow rule: BLOCK; the engine waits.
"""

import socket
import threading
from collections import deque
from dataclasses import dataclass

from orchestrator.scheduling.work import ReplyText, Report, SpeechPiece
from orchestrator.workers.frames import Beat, FromWorker, frame

BOUND_BYTES = 1 << 20
_OVERHEAD_BYTES = 64


@dataclass(slots=True, eq=False)
class _Waiting:
    message: FromWorker
    size: int


class Outbox:
    """Bounded at `BOUND_BYTES` of waiting messages, one larger message excepted."""

    def __init__(self, pipe: socket.socket, bound_bytes: int = BOUND_BYTES) -> None:
        self._pipe = pipe
        self._bound_bytes = bound_bytes
        self._waiting: deque[_Waiting] = deque()  # bounded by `put`, in bytes
        self._open_texts: dict[str, _Waiting] = {}
        self._bytes = 0
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._write, name="outbox", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, message: FromWorker) -> None:
        """Adds a message; waits while the outbox is full. After `close` it is thrown away."""
        size = _size(message)
        with self._changed:
            while self._bytes and self._bytes + size > self._bound_bytes and not self._closed:
                self._changed.wait()
            if self._closed or self._joins(message, size):
                return
            waiting = _Waiting(message, size)
            self._waiting.append(waiting)
            self._bytes += size
            if isinstance(message, ReplyText):
                self._open_texts[message.job_id] = waiting
            elif isinstance(message, Report):
                self._open_texts.pop(message.job_id, None)
            self._changed.notify_all()

    def close(self) -> None:
        """Writes what waits, then ends the thread. Idempotent."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join()

    def _joins(self, message: FromWorker, size: int) -> bool:
        """Adds a message to one that waits already, where the reader cannot tell the difference."""
        if isinstance(message, Beat):
            return bool(self._waiting)  # whatever waits says as well that we live
        if not isinstance(message, ReplyText):
            return False
        waiting = self._open_texts.get(message.job_id)
        if waiting is None or not isinstance(waiting.message, ReplyText):
            return False
        waiting.message = ReplyText(message.job_id, waiting.message.text + message.text)
        waiting.size += size
        self._bytes += size
        return True

    def _write(self) -> None:
        while (message := self._next()) is not None:
            try:
                self._pipe.sendall(frame(message))
            except OSError:  # the server is gone; the reader of our pipe sees that too and ends the process
                with self._changed:
                    self._closed = True
                    self._waiting.clear()
                    self._changed.notify_all()
                return

    def _next(self) -> FromWorker | None:
        with self._changed:
            while not self._waiting:
                if self._closed:
                    return None
                self._changed.wait()
            waiting = self._waiting.popleft()
            self._bytes -= waiting.size
            if isinstance(waiting.message, ReplyText):
                job_id = waiting.message.job_id
                if self._open_texts.get(job_id) is waiting:
                    del self._open_texts[job_id]
            self._changed.notify_all()
            return waiting.message


def _size(message: FromWorker) -> int:
    match message:
        case ReplyText():
            return _OVERHEAD_BYTES + len(message.text.encode())
        case SpeechPiece():
            return _OVERHEAD_BYTES + len(message.audio)
        case _:
            return _OVERHEAD_BYTES
