"""Ways to speak to a server in real time: a WebRTC call or a WebSocket, to Chorale or to a peer."""

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Protocol

import av
import numpy as np
from aiortc.rtp import RtpPacket
from av import CodecContext, Packet
from av.audio.codeccontext import AudioCodecContext
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from benchmarks.voice_clips import Clip
from benchmarks.voice_turn import TurnWatch
from modalities.audio.resample import Resampler
from orchestrator.clients.address import CallFailed
from orchestrator.clients.call import RealtimeCall
from orchestrator.clients.recording import CALL_RATE_HZ, Samples
from orchestrator.clients.text_socket import RealtimeSocket

FRAME_S = 0.02
LOUD = 300
"""A sample above is sound (-41 dBFS); what a codec makes of silence stays far below."""

_TICK_S = 0.05


class Line(Protocol):
    """An open conversation, in which one thing is said after the other."""

    call_id: str
    watch: TurnWatch
    """What follows the present turn; the caller puts a new one here for each."""

    async def say(self, clip: Clip) -> None:
        """Says a clip in real time and tells the watch when its speech ended."""
        ...


class Doors(Protocol):
    """How lines to one server are opened."""

    def open(self, session: Mapping[str, Any]) -> AbstractAsyncContextManager[Line]:
        """Opens a conversation with these settings, as far as the server knows them."""
        ...


async def settle(line: Line) -> None:
    """Waits until the present turn is over."""
    while not line.watch.settled(time.monotonic()):  # noqa: ASYNC110 — it also settles by time passing
        await asyncio.sleep(_TICK_S)


class CallLine:
    """A line over WebRTC. Sound is judged packet by packet as it arrives, before any jitter buffer."""

    def __init__(self, call: RealtimeCall) -> None:
        self.watch = TurnWatch()
        self.call_id = call.call_id
        self._call = call
        context = CodecContext.create("libopus", "r")
        assert isinstance(context, AudioCodecContext)
        context.format, context.layout, context.sample_rate = "s16", "mono", CALL_RATE_HZ
        self._context = context

        async def take(packet: RtpPacket, arrival_time_ms: int) -> None:
            now_s = time.monotonic()
            if self._loudest(packet.payload) > LOUD:
                self.watch.heard(now_s, FRAME_S)

        # aiortc has no public way to have a packet before its jitter buffer does (see `Earpiece.listen`).
        for receiver in call._peer.getReceivers():
            receiver._handle_rtp_packet = take  # type: ignore[method-assign]

    async def say(self, clip: Clip) -> None:
        self.watch.speech_ended(await self._call.say(clip.samples))

    def _loudest(self, payload: bytes) -> int:
        try:
            frames = self._context.decode(Packet(payload))
        except av.FFmpegError:
            return 0
        return max((int(np.abs(frame.to_ndarray().astype(np.int32)).max()) for frame in frames), default=0)


class CallDoors:
    """Opens calls to Chorale."""

    def __init__(self, url: str) -> None:
        self._url = url

    @asynccontextmanager
    async def open(self, session: Mapping[str, Any]) -> AsyncIterator[Line]:
        async with RealtimeCall.connect(self._url, session={"type": "realtime", **session}) as call:
            line = CallLine(call)
            async with _following(line, call.events()):
                yield line


class PeerCallDoors:
    """Opens calls to a peer, whose steps come from `subscribe`."""

    def __init__(self, url: str, subscribe: "Subscribe") -> None:
        self._url = url
        self._subscribe = subscribe

    @asynccontextmanager
    async def open(self, session: Mapping[str, Any]) -> AsyncIterator[Line]:
        async with RealtimeCall.connect(self._url) as call:
            line = CallLine(call)
            self._subscribe(call.call_id, lambda event: line.watch.receive(event, event["at"]))
            yield line


Subscribe = Callable[[str, Callable[[Mapping[str, Any]], None]], None]


class _PacedSpeaker:
    """Sends sound in real time, silence where nothing is said, 20 ms at a time."""

    def __init__(self, rate_hz: int, send: Callable[[bytes], Any]) -> None:
        self._rate_hz = rate_hz
        self._send = send
        self._frame = int(rate_hz * FRAME_S)
        self._waiting: tuple[Samples, asyncio.Future[float]] | None = None

    async def say(self, clip: Clip) -> float:
        resampler = Resampler(CALL_RATE_HZ, self._rate_hz)
        samples = np.concatenate((resampler.feed(clip.samples), resampler.flush()))
        said: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting = (samples, said)
        return await said

    async def run(self) -> None:
        """Speaks until cancelled or the connection breaks."""
        due_s = time.monotonic()
        silence = bytes(2 * self._frame)
        while True:
            due_s += FRAME_S
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            if self._waiting is None:
                await self._send(silence)
                continue
            samples, said = self._waiting
            piece = samples[: self._frame]
            self._waiting = (samples[self._frame :], said) if len(samples) > self._frame else None
            # A clip's last frame is rarely a whole one; its speech ends where it ends.
            await self._send(np.pad(piece, (0, self._frame - len(piece))).astype("<i2").tobytes())
            if self._waiting is None and not said.done():
                said.set_result(time.monotonic() - (self._frame - len(piece)) / self._rate_hz)


class SocketLine:
    """A line over a WebSocket."""

    def __init__(self, call_id: str, rate_hz: int, send: Callable[[bytes], Any]) -> None:
        self.watch = TurnWatch()
        self.call_id = call_id
        self.speaker = _PacedSpeaker(rate_hz, send)

    async def say(self, clip: Clip) -> None:
        self.watch.speech_ended(await self.speaker.say(clip))


class SocketDoors:
    """Opens WebSocket sessions of Chorale, which take and give 24 kHz."""

    def __init__(self, url: str) -> None:
        self._url = url

    @asynccontextmanager
    async def open(self, session: Mapping[str, Any]) -> AsyncIterator[Line]:
        async with RealtimeSocket.connect(self._url) as socket:
            await socket.send({"type": "session.update", "session": {"type": "realtime", **session}})

            async def send(pcm: bytes) -> None:
                await socket.send(
                    {"type": "input_audio_buffer.append", "audio": base64.b64encode(pcm).decode()}
                )

            line = SocketLine("", 24_000, send)

            async def events() -> AsyncIterator[Mapping[str, Any]]:
                async for event in socket.events():
                    if event["type"] == "response.output_audio.delta":
                        now_s = time.monotonic()
                        _hear(line.watch, base64.b64decode(event["delta"]), 24_000, now_s)
                    yield event

            async with _following(line, events()), _speaking(line):
                yield line


class PeerSocketDoors:
    """Opens WebSockets of a peer: 16 kHz PCM in, 24 kHz out, as bytes."""

    def __init__(self, url: str, subscribe: Subscribe) -> None:
        self._url = url.replace("http", "ws")
        self._subscribe = subscribe
        self._count = 0

    @asynccontextmanager
    async def open(self, session: Mapping[str, Any]) -> AsyncIterator[Line]:
        self._count += 1
        name = f"socket-{self._count}"
        async with connect(f"{self._url}/socket/{name}", proxy=None, ping_interval=None) as socket:
            line = SocketLine(name, 16_000, socket.send)
            self._subscribe(name, lambda event: line.watch.receive(event, event["at"]))

            async def sound() -> AsyncIterator[Mapping[str, Any]]:
                with suppress(ConnectionClosed):
                    while True:
                        message = await socket.recv()
                        if isinstance(message, bytes):
                            _hear(line.watch, message, 24_000, time.monotonic())
                yield {"type": "nothing"}

            async with _following(line, sound()), _speaking(line):
                yield line


def _hear(watch: TurnWatch, pcm: bytes, rate_hz: int, at_s: float) -> None:
    samples = np.frombuffer(pcm, "<i2")
    if np.abs(samples.astype(np.int32)).max(initial=0) > LOUD:
        watch.heard(at_s, len(samples) / rate_hz)


@asynccontextmanager
async def _following(line: Line, events: AsyncIterator[Mapping[str, Any]]) -> AsyncIterator[None]:
    async def follow() -> None:
        async for event in events:
            line.watch.receive(event, time.monotonic())
        line.watch.fail("the connection ended")

    async with _running(follow()):
        yield


def _speaking(line: SocketLine) -> AbstractAsyncContextManager[None]:
    async def speak() -> None:
        try:
            await line.speaker.run()
        except (ConnectionClosed, CallFailed, OSError):
            line.watch.fail("the connection ended")

    return _running(speak())


@asynccontextmanager
async def _running(work: Any) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and (fault := task.exception()) is not None:
            raise fault
