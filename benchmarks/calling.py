"""Plays one clip into a call of its own, as a person would speak it, and listens until the conversation has settled."""

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

import httpx

from benchmarks.hearing import Heard, Hearing
from orchestrator.clients.address import CallFailed, Event, ServerAway, ServerRefused
from orchestrator.clients.call import RealtimeCall
from orchestrator.clients.recording import Samples
from orchestrator.clients.text_socket import RealtimeSocket

LEAD_S = TAIL_S = 1.0
"""Silence around a clip."""

REPLY_TOKENS = 60
PROBE_S = 10.0
POLL_S = 0.1
RAW_CHUNK_BYTES = 4_800
RAW_TAIL = bytes(24_000 * 2)

_SETTINGS: Mapping[str, Any] = {
    "type": "session.update",
    "session": {
        "type": "realtime",
        "max_output_tokens": REPLY_TOKENS,
        "audio": {"input": {"transcription": {"model": "whisper-1", "language": "en"}}},
    },
}


class Line(Protocol):
    """A connection to the server that carries events."""

    async def send(self, event: Mapping[str, Any]) -> None:
        """Sends a client event. Raises `CallFailed`."""
        ...

    def events(self) -> AsyncIterator[Event]:
        """Yields server events until the connection ends."""
        ...


class Doors:
    """How a benchmark reaches a server: by call, by WebSocket, and by its health pages."""

    def __init__(self, url: str, key: str | None = None) -> None:
        self._url = url
        self._key = key

    async def play(self, sound: Samples, patience_s: float = 30.0) -> tuple[Heard, bool]:
        """Says 48 kHz sound in a call; returns what became of it and whether the session still answers."""
        hearing = Hearing(patience_s=patience_s)
        try:
            async with RealtimeCall.connect(self._url, self._key) as call, _listening(call, hearing) as talk:
                await talk.still_answers()
                hearing.clip_ended(await call.say(sound, LEAD_S, TAIL_S))
                return await talk.settle()
        except (CallFailed, ServerAway, ServerRefused) as error:
            return _failed(hearing, error)

    async def push(self, raw: bytes, patience_s: float = 30.0) -> tuple[Heard, bool]:
        """Sends bytes as if they were 24 kHz sound over a WebSocket, and a second of silence behind them."""
        hearing = Hearing(patience_s=patience_s)
        try:
            async with (
                RealtimeSocket.connect(self._url, self._key) as socket,
                _listening(socket, hearing) as talk,
            ):
                await talk.still_answers()
                for start in range(0, len(raw) + len(RAW_TAIL), RAW_CHUNK_BYTES):
                    chunk = (raw + RAW_TAIL)[start : start + RAW_CHUNK_BYTES]
                    await socket.send(
                        {"type": "input_audio_buffer.append", "audio": base64.b64encode(chunk).decode()}
                    )
                hearing.clip_ended(time.monotonic())
                return await talk.settle()
        except (CallFailed, ServerAway, ServerRefused) as error:
            return _failed(hearing, error)

    async def healthy(self) -> bool:
        """The server says that it lives and that all its workers are ready."""
        async with httpx.AsyncClient(base_url=self._url, trust_env=False) as client:
            try:
                pages = [await client.get(page) for page in ("/healthz", "/readyz")]
            except httpx.TransportError:
                return False
        return all(page.is_success for page in pages)


class _Talk:
    """One connection whose events a `Hearing` follows."""

    def __init__(self, line: Line, hearing: Hearing) -> None:
        self._line = line
        self._hearing = hearing
        self._updated = asyncio.Event()
        self._ended = asyncio.Event()

    async def listen(self) -> None:
        async for event in self._line.events():
            if event["type"] == "session.updated":
                self._updated.set()
            self._hearing.receive(event, time.monotonic())
        self._ended.set()

    async def still_answers(self) -> bool:
        """Updates the session (to what it is) and waits for the answer."""
        self._updated.clear()
        await self._line.send(_SETTINGS)
        try:
            async with asyncio.timeout(PROBE_S):
                await self._updated.wait()
        except TimeoutError:
            return False
        return True

    async def settle(self) -> tuple[Heard, bool]:
        """Waits until nothing more is to be expected."""
        while not self._hearing.settled(time.monotonic()):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), POLL_S)
                raise CallFailed("the connection ended")
        alive = await self.still_answers()
        return self._hearing.heard(), alive


@asynccontextmanager
async def _listening(line: Line, hearing: Hearing) -> AsyncIterator[_Talk]:
    talk = _Talk(line, hearing)
    listener = asyncio.create_task(talk.listen())
    try:
        yield talk
    finally:
        listener.cancel()
        await asyncio.wait({listener})


def _failed(hearing: Hearing, error: Exception) -> tuple[Heard, bool]:
    hearing.fail(f"connection failed: {error}")
    return hearing.heard(), False
