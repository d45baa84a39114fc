"""A call's sound on its way out: a track that sends a session's queue at its own pace, coded on the loop.

Where nothing is to be heard for a while, next to nothing is sent, as an Opus encoder at rest does it (RFC 7587 §3.1.3):
an empty frame now and then, whose time stamp says how much silence lies before it.
"""

import asyncio
import contextlib
from collections.abc import Callable
from fractions import Fraction

from aiortc import MediaStreamTrack
from aiortc.mediastreams import MediaStreamError
from av import Packet
from av.stream import Stream

from orchestrator.clock import US_PER_S, Clock
from orchestrator.observability.faults import FAULTS
from orchestrator.transports.rtp_order import SoundCodec
from orchestrator.transports.sound_codecs import SoundEncoder, new_encoder
from orchestrator.transports.tracks import Pacer, PlayoutQueue

REST_AFTER = 100
"""Silent frames (2 s) in which nothing has happened in the session, before the track rests: pauses within a reply are
sent whole, and whatever a peer's jitter buffer holds of the sound before them is pushed out."""

REST_FRAMES = 20
"""Of a resting track one frame of so many (400 ms) is sent: the usual distance of Opus at rest."""


class PlayoutTrack(MediaStreamTrack):
    """Sends 20 ms every 20 ms: a response's sound (a `Playout`), or silence in between, with time stamps that are true.

    After `REST_AFTER` silent frames it rests, until there is sound again, which goes out at once, or something happens
    that may lead to sound: a player that gets silence by then has its buffer filled when the first word comes. aiortc
    sends packets that are coded already as they are: no audio level in Python, no thread hop per frame.
    """

    kind = "audio"

    def __init__(self, clock: Clock, limit_s: float, drained: Callable[[str], None]) -> None:
        super().__init__()
        self._clock = clock
        self._queue = PlayoutQueue(limit_s)
        self._pacer = Pacer()
        self._drained = drained
        self._guard = FAULTS.guard("call playout")
        self._encoder: SoundEncoder | None = None
        self._tick = Fraction(1, SoundCodec.OPUS.clock_hz)
        self._frames = 0
        self._silent_frames = 0
        self._may_rest = True
        self._awake = asyncio.Event()
        self._dry: asyncio.Task[None] | None = None

    def use(self, codec: SoundCodec, may_rest: bool = True) -> None:
        """Fixes what was negotiated. Before the first frame is due. `may_rest`: the peer takes silence that is not sent
        (G.711 has no word for it)."""
        self._may_rest = may_rest and codec is SoundCodec.OPUS
        self._encoder = new_encoder(codec)
        self._tick = Fraction(1, self._encoder.clock_hz)

    def expect_sound(self) -> None:
        """Something has happened in the session."""
        self._silent_frames = 0
        self._awake.set()

    def run_dry(self) -> None:
        """Plays to nobody: for a call that wants no sound, so that responses end all the same."""
        self._may_rest = True
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
        self._awake.set()

    def finish(self, response_id: str) -> None:
        """See `Playout`."""
        self._queue.finish(response_id)
        self._awake.set()

    def flush(self) -> None:
        """See `Playout`. The frame that is being sent is the last one with sound."""
        self._queue.flush()

    def unplay(self, since_us: int) -> None:
        """What was sent after this time has reached nobody, and counts as not played."""
        self._queue.unplay(since_us)

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
        pcm = await self._next_pcm()
        payload = self._encoder.rest() if self._rests else self._encoder.encode(pcm)
        packet = Packet(payload)
        packet.pts = (self._frames - 1) * self._encoder.ticks
        packet.time_base = self._tick
        return packet

    @property
    def _rests(self) -> bool:
        return self._may_rest and self._silent_frames > REST_AFTER

    async def _next_pcm(self) -> bytes | None:
        if self._rests and self._queue.is_idle:
            await self._rest()
        now_us = self._clock.now_us()
        due = self._pacer.due(now_us)
        if due.at_us > now_us:
            await asyncio.sleep((due.at_us - now_us) / US_PER_S)
        self._frames += 1 + due.skipped
        frame = self._queue.take(self._clock.now_us())
        self._silent_frames = self._silent_frames + 1 if frame.pcm is None else 0
        for response_id in frame.drained:
            with self._guard:  # what ends here is the frame's sender, and the call would be mute
                self._drained(response_id)
        return frame.pcm

    async def _rest(self) -> None:
        """Waits for sound, for a response that has ended, or for the next frame of a track at rest."""
        self._awake.clear()
        rest_s = self._pacer.rest_us(REST_FRAMES, self._clock.now_us()) / US_PER_S
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(rest_s):
                await self._awake.wait()
        self._frames += self._pacer.wake(self._clock.now_us())

    async def _play_to_nobody(self) -> None:
        while self.readyState == "live":
            await self._next_pcm()
