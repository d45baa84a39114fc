"""The server's end of the pipe to one worker process: frames in and out on the event loop."""

import asyncio
from collections.abc import Callable
from typing import cast

from orchestrator.workers.frames import BrokenFrame, FrameReader, FromWorker, ToWorker, frame, from_worker


class Pipe(asyncio.Protocol):
    """Calls `received` for every message, then `ended` once, with why. Closing it from here does not call `ended`.

    What is written waits in the transport: at most what the worker's slots hold.
    """

    def __init__(self, received: Callable[[FromWorker], None], ended: Callable[[str], None]) -> None:
        self._received = received
        self._ended = ended
        self._reader = FrameReader()
        self._transport: asyncio.WriteTransport | None = None

    def send(self, message: ToWorker) -> None:
        """Never waits; does nothing once the pipe has ended."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame(message))

    def close(self) -> None:
        """Ends the pipe at once; nothing is received after this. Idempotent."""
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

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._transport = None
            self._ended("closed its pipe")
