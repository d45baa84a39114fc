"""The server's end of the pipe to one worker process: frames in and out on the event loop."""

import asyncio
from collections.abc import Callable
from typing import cast

from orchestrator.buffers.handover import Handover
from orchestrator.errors import Overloaded
from orchestrator.workers.frames import (
    LARGEST_FRAME_BYTES,
    BrokenFrame,
    FrameReader,
    FromWorker,
    ToWorker,
    frame,
    from_worker,
)

CHUNK_BYTES = 256 * 1024
"""What is given to the transport at once, so that no turn of the loop copies a whole clip."""

MOST_UNREAD_BYTES = 2 * LARGEST_FRAME_BYTES
"""A worker that leaves more than this unread does not read."""


class Pipe(asyncio.BufferedProtocol):
    """Calls `received` for every message, then `ended` once, with why. Closing it from here does not call `ended`.

    Neither is ever called out of `send`: whoever sends is in the middle of something (planning), and is not told that
    its worker is gone before it is done with that.

    What comes is decoded where it was received; sound is copied once, into the piece that everybody then shares. What
    the worker has not read yet waits here as views: at most what its slots hold.
    """

    def __init__(
        self,
        received: Callable[[FromWorker], None],
        ended: Callable[[str], None],
        most_unread: int = MOST_UNREAD_BYTES,
    ) -> None:
        self._received = received
        self._ended = ended
        self._reader = FrameReader()
        self._transport: asyncio.WriteTransport | None = None
        self._unread = Handover(most_unread)
        self._is_full = False
        self._ending: asyncio.Handle | None = None

    def send(self, message: ToWorker) -> None:
        """Never waits; does nothing once the pipe has ended. A worker that does not read ends it: on the loop's next
        turn."""
        if self._ending is not None:
            return
        try:
            self._unread.put_nowait(frame(message))
        except Overloaded:
            self.close()
            self._ending = asyncio.get_running_loop().call_soon(self._ended, "does not read what it is sent")
        else:
            self._write()

    def close(self) -> None:
        """Ends the pipe at once; nothing is received after this. Idempotent."""
        if self._ending is not None:
            self._ending.cancel()
        self._unread.clear()
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    # --- asyncio.BufferedProtocol -------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do all that a WriteTransport does, without deriving from it.
        self._transport = cast(asyncio.WriteTransport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            for payload in self._reader.received(nbytes):
                if self._transport is None:
                    return  # closed by what it received
                self._received(from_worker(payload))
        except BrokenFrame as fault:
            self._break_off(f"sent what is no frame: {fault}")

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._write()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._transport = None
            self._ended("closed its pipe")

    def _break_off(self, why: str) -> None:
        self.close()
        self._ended(why)

    def _write(self) -> None:
        """Gives the transport what it takes now; the rest follows when it asks for more."""
        if self._transport is None or self._transport.is_closing():
            self._unread.clear()
            return
        while not self._is_full and (chunk := self._unread.take_nowait(CHUNK_BYTES)):
            self._transport.write(chunk)
            self._unread.done(chunk)
