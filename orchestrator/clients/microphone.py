"""A microphone made of recordings: an audio track that sends silence until it is given something to say."""

import asyncio
import time
from collections import deque
from fractions import Fraction

import numpy as np
from aiortc import MediaStreamTrack
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame, CodecContext, Packet
from av.audio.codeccontext import AudioCodecContext
from av.stream import Stream

from orchestrator.clients.recording import CALL_RATE_HZ, Samples

FRAME_S = 0.02
FRAME_SAMPLES = CALL_RATE_HZ // 50
MAX_RECORDINGS = 256

_TICK = Fraction(1, CALL_RATE_HZ)


class Microphone(MediaStreamTrack):
    """Sends 20 ms of Opus every 20 ms, coded here (as a browser would: voice, 32 kbit/s). At rest it repeats one packet
    of silence, so that many of them cost little."""

    kind = "audio"

    def __init__(self) -> None:
        super().__init__()
        context = CodecContext.create("libopus", "w")
        assert isinstance(context, AudioCodecContext)
        context.format = "s16"
        context.layout = "mono"
        context.sample_rate = CALL_RATE_HZ
        context.bit_rate = 32_000
        context.options = {"application": "voip", "compression_level": "5"}
        context.time_base = _TICK
        self._context = context
        self._frames = 0
        self._next_s: float | None = None
        self._queue: deque[tuple[Samples, asyncio.Future[float]]] = deque(maxlen=MAX_RECORDINGS)
        self._offset = 0
        self._silence = self._encode(np.zeros(FRAME_SAMPLES, np.int16))
        self.muted = False

    def say(self, samples: Samples) -> "asyncio.Future[float]":
        """Queues sound; the future is done with the time (`time.monotonic`) at which its last frame was sent."""
        if len(self._queue) == MAX_RECORDINGS:
            raise ValueError(f"at most {MAX_RECORDINGS} recordings may wait to be said")
        said: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._queue.append((samples, said))
        return said

    async def recv(self) -> "Packet[Stream]":
        """Returns the next coded frame when it is due; nothing while `muted`, and time passes all the same."""
        while True:
            await self._wait_for_frame()
            payload = self._next_payload()
            if not self.muted:
                break
        packet = Packet(payload)
        packet.pts = (self._frames - 1) * FRAME_SAMPLES
        packet.time_base = _TICK
        return packet

    async def _wait_for_frame(self) -> None:
        if self.readyState != "live":
            raise MediaStreamError
        now_s = time.monotonic()
        self._next_s = now_s if self._next_s is None else self._next_s + FRAME_S
        if self._next_s > now_s:
            await asyncio.sleep(self._next_s - now_s)
        self._frames += 1

    def _next_payload(self) -> bytes:
        if not self._queue:
            return self._silence
        samples, said = self._queue[0]
        frame = samples[self._offset : self._offset + FRAME_SAMPLES]
        self._offset += FRAME_SAMPLES
        if self._offset >= len(samples):
            self._queue.popleft()
            self._offset = 0
            if not said.done():
                said.set_result(time.monotonic())
        return self._encode(np.pad(frame, (0, FRAME_SAMPLES - len(frame))))

    def _encode(self, samples: Samples) -> bytes:
        frame = AudioFrame.from_ndarray(samples[None, :], format="s16", layout="mono")
        frame.sample_rate = CALL_RATE_HZ
        return b"".join(bytes(packet) for packet in self._context.encode(frame))
