"""A call's sound on its way out: a track that sends a session's queue at its own pace, coded on the loop."""

import asyncio
from collections.abc import Callable
from fractions import Fraction

from aiortc import MediaStreamTrack
from aiortc.mediastreams import MediaStreamError
from av import Packet
from av.stream import Stream

from orchestrator.clock import US_PER_S, Clock
from orchestrator.transports.rtp_order import SoundCodec
from orchestrator.transports.sound_codecs import SoundEncoder, new_encoder
from orchestrator.transports.tracks import Pacer, PlayoutQueue


class PlayoutTrack(MediaStreamTrack):
    """Sends 20 ms every 20 ms: a response's sound (a `Playout`), or silence in between, with unbroken time stamps.

    Players keep their clocks and their buffers steady on continuous silence, which costs us no coding. aiortc sends
    packets that are coded already as they are: no audio level in Python, no thread hop per frame.
    """

    kind = "audio"

    def __init__(self, clock: Clock, limit_s: float, drained: Callable[[str], None]) -> None:
        super().__init__()
        self._clock = clock
        self._queue = PlayoutQueue(limit_s)
        self._pacer = Pacer()
        self._drained = drained
        self._encoder: SoundEncoder | None = None
        self._tick = Fraction(1, SoundCodec.OPUS.clock_hz)
        self._frames = 0
        self._dry: asyncio.Task[None] | None = None

    def use(self, codec: SoundCodec) -> None:
        """Fixes what was negotiated. Before the first frame is due."""
        self._encoder = new_encoder(codec)
        self._tick = Fraction(1, self._encoder.clock_hz)

    def run_dry(self) -> None:
        """Plays to nobody: for a call that wants no sound, so that responses end all the same."""
        if self._dry is None:
            self._dry = asyncio.create_task(self._play_to_nobody(), name="playout-to-nobody")

    def stop(self) -> None:
        """Ends the track; what waits is dropped. Idempotent."""
        if self._dry is not None:
            self._dry.cancel()
        super().stop()

    @property
    def queued_s(self) -> float:
        """Seconds of sound waiting."""
        return self._queue.queued_s

    def play(self, response_id: str, pcm: bytes) -> None:
        """See `Playout`."""
        self._queue.play(response_id, pcm)

    def finish(self, response_id: str) -> None:
        """See `Playout`."""
        self._queue.finish(response_id)

    def flush(self) -> None:
        """See `Playout`. The frame that is being sent is the last one with sound."""
        self._queue.flush()

    def played_samples(self, response_id: str) -> int:
        """See `Playout`."""
        return self._queue.played_samples(response_id)

    async def recv(self) -> "Packet[Stream]":
        """Returns the next coded frame when it is due. Cancelling loses nothing."""
        if self.readyState != "live":
            raise MediaStreamError
        if self._encoder is None:
            self.use(SoundCodec.OPUS)
        assert self._encoder is not None
        payload = self._encoder.encode(await self._next_pcm())
        packet = Packet(payload)
        packet.pts = (self._frames - 1) * self._encoder.ticks
        packet.time_base = self._tick
        return packet

    async def _next_pcm(self) -> bytes | None:
        now_us = self._clock.now_us()
        due = self._pacer.due(now_us)
        if due.at_us > now_us:
            await asyncio.sleep((due.at_us - now_us) / US_PER_S)
        self._frames += 1 + due.skipped
        frame = self._queue.take()
        for response_id in frame.drained:
            self._drained(response_id)
        return frame.pcm

    async def _play_to_nobody(self) -> None:
        while self.readyState == "live":
            await self._next_pcm()
