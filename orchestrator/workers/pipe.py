"""The server's end of the pipe to one worker process: frames in and out on the event loop."""

import asyncio
from collections.abc import Callable
from typing import cast

from orchestrator.workers.frames import BrokenFrame, FrameReader, FromWorker, ToWorker, frame, from_worker

CHUNK_BYTES = 256 * 1024
"""What is given to the transport at once, so that no turn of the loop copies a whole clip."""


class Pipe(asyncio.Protocol):
    """Calls `received` for every message, then `ended` once, with why. Closing it from here does not call `ended`.

    What the worker has not read yet waits here: at most what its slots hold.
    """

    def __init__(self, received: Callable[[FromWorker], None], ended: Callable[[str], None]) -> None:
        self._received = received
        self._ended = ended
        self._reader = FrameReader()
        self._transport: asyncio.WriteTransport | None = None
        self._unwritten: list[memoryview] = []
        self._is_full = False

    def send(self, message: ToWorker) -> None:
        """Never waits; does nothing once the pipe has ended."""
        self._unwritten.append(memoryview(frame(message)))
        self._write()

    def close(self) -> None:
        """Ends the pipe at once; nothing is received after this. Idempotent."""
        self._unwritten.clear()
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    # --- asyncio.Protocol ---------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do all that a WriteTransport does, without deriving from it.
        self._transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            for payload in self._reader.feed(data):
                if self._transport is None:
                    return  # closed by what it received
                self._received(from_worker(payload))
        except BrokenFrame as fault:
            self.close()
            self._ended(f"sent what is no frame: {fault}")

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._write()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._transport = None
            self._ended("closed its pipe")

    def _write(self) -> None:
        """Gives the transport what it takes now; the rest follows when it asks for more."""
        if self._transport is None or self._transport.is_closing():
            self._unwritten.clear()
            return
        while self._unwritten and not self._is_full:
            first = self._unwritten[0]
            self._transport.write(first[:CHUNK_BYTES])
            if len(first) > CHUNK_BYTES:
                self._unwritten[0] = first[CHUNK_BYTES:]
            else:
                del self._unwritten[0]
