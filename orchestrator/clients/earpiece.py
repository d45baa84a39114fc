"""What a call's client received: packets as they arrived, and the sound in them."""

import time
from collections import deque
from dataclasses import dataclass

import av
import numpy as np
from aiortc import RTCRtpReceiver
from aiortc.rtp import RtpPacket
from av import CodecContext, Packet
from av.audio.codeccontext import AudioCodecContext
from numpy.typing import NDArray

from orchestrator.clients.recording import CALL_RATE_HZ, Samples

MAX_PACKETS = 90_000
"""Half an hour; older ones are forgotten."""

_TICKS = 1 << 32


@dataclass(frozen=True, slots=True)
class ReceivedSound:
    """48 kHz mono int16 from the first packet on. Packet i arrived at `arrived_s[i]` (`time.monotonic`) and its sound
    begins at sample `positions[i]`."""

    samples: Samples
    positions: NDArray[np.int64]
    arrived_s: NDArray[np.float64]

    def first_above(self, level: int, after_s: float = 0.0) -> float | None:
        """Returns when the first packet later than `after_s` arrived that holds a sample over `level`; None if none."""
        return self._find(level, after_s, first=True)

    def last_above(self, level: int, after_s: float = 0.0) -> float | None:
        """Returns when the last packet later than `after_s` arrived that holds a sample over `level`; None if none."""
        return self._find(level, after_s, first=False)

    def _find(self, level: int, after_s: float, first: bool) -> float | None:
        found = None
        for start, stop, at_s in zip(
            self.positions, [*self.positions[1:], len(self.samples)], self.arrived_s, strict=True
        ):
            if at_s > after_s and np.abs(self.samples[start:stop].astype(np.int32)).max(initial=0) > level:
                found = float(at_s)
                if first:
                    break
        return found


class Earpiece:
    """Notes packets as they arrive, without a jitter buffer, and decodes them only when asked."""

    def __init__(self) -> None:
        context = CodecContext.create("libopus", "r")
        assert isinstance(context, AudioCodecContext)
        context.format = "s16"
        context.layout = "mono"
        context.sample_rate = CALL_RATE_HZ
        self._context = context
        self._packets: deque[tuple[float, int, bytes]] = deque(maxlen=MAX_PACKETS)
        self._pieces: list[Samples] = []
        self._positions: list[int] = []
        self._arrived_s: list[float] = []
        self._end = 0
        self._origin: int | None = None
        self.count = 0

    def listen(self, receiver: RTCRtpReceiver) -> None:
        """Takes the packets of a receiver before its jitter buffer does (aiortc has no public way)."""

        async def take(packet: RtpPacket, arrival_time_ms: int) -> None:
            self.count += 1
            self._packets.append((time.monotonic(), packet.timestamp, packet.payload))

        receiver._handle_rtp_packet = take  # type: ignore[method-assign]

    def sound(self) -> ReceivedSound:
        """Returns everything received so far."""
        while self._packets:
            self._decode(*self._packets.popleft())
        samples = np.concatenate(self._pieces) if self._pieces else np.zeros(0, np.int16)
        self._pieces = [samples]
        return ReceivedSound(samples, np.array(self._positions, np.int64), np.array(self._arrived_s))

    def _decode(self, arrived_s: float, timestamp: int, payload: bytes) -> None:
        if self._origin is None:
            self._origin = timestamp
        position = (timestamp - self._origin) % _TICKS
        if position < self._end:
            return  # late or twice
        if position > self._end:
            self._pieces.append(np.zeros(position - self._end, np.int16))
        try:
            frames = self._context.decode(Packet(payload))
        except av.FFmpegError:
            return
        self._positions.append(position)
        self._arrived_s.append(arrived_s)
        self._end = position
        for frame in frames:
            self._pieces.append(frame.to_ndarray()[0])
            self._end += frame.samples
