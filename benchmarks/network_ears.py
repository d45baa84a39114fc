"""Two ways in which a server may hear a call, over the same bad network: through our door, and by aiortc's own track.

A `Mouth` is the client of either. It notes when it sent each frame of 20 ms, an `Ear` when it had which sound; both
know frames by number, so that a delay is a subtraction.
"""

import asyncio
import time
from dataclasses import dataclass, field

import numpy as np
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame, Packet
from av.stream import Stream
from numpy.typing import NDArray

from benchmarks.network_relay import Relay, reroute, without_candidates
from benchmarks.stand_ins import HeardBy, QuietDirectory, QuietSession
from modalities.ports import SPEECH_RATE_HZ, Pcm
from orchestrator.clients.microphone import Microphone
from orchestrator.clients.peer import new_peer, offering_resends
from orchestrator.clients.recording import CALL_RATE_HZ
from orchestrator.peers import choose_addresses, close_peer
from orchestrator.sessions.links import SessionRequest
from orchestrator.transports.webrtc import CallDoor

FRAME = SPEECH_RATE_HZ // 50
HELD_BACK = SPEECH_RATE_HZ // 500
LOUD = 1_500
QUIET = SPEECH_RATE_HZ // 10
"""Sound after so many quiet samples is a new onset."""


@dataclass(frozen=True, slots=True)
class Piece:
    """16 kHz sound that the server had in hand at `at_s` (`time.monotonic`). `start` is its place in the stream."""

    start: int
    pcm: Pcm
    at_s: float


@dataclass
class Hearing:
    """Everything that was heard, in the order in which it came."""

    pieces: list[Piece] = field(default_factory=list)

    def add(self, start: int, pcm: Pcm) -> None:
        """Notes sound that is there now."""
        self.pieces.append(Piece(start, pcm, time.monotonic()))

    def sound(self, strung: bool = False) -> Pcm:
        """Returns the stream, silence where nothing was heard; `strung`: pieces one behind the other, as programs do
        that do not look at stamps."""
        if strung or not self.pieces:
            return np.concatenate([np.zeros(0, np.int16), *(piece.pcm for piece in self.pieces)])
        sound = np.zeros(max(piece.start + len(piece.pcm) for piece in self.pieces), np.int16)
        for piece in self.pieces:
            sound[piece.start : piece.start + len(piece.pcm)] = piece.pcm
        return sound

    def frames_at(self) -> dict[int, float]:
        """Returns when each frame of the stream was there, but for what a resampler holds back."""
        at_s: dict[int, float] = {}
        for piece in self.pieces:
            for frame in range(piece.start // FRAME, (piece.start + len(piece.pcm) + HELD_BACK) // FRAME):
                at_s.setdefault(frame, piece.at_s)
        return at_s


def onsets(sound: Pcm, rate_hz: int = SPEECH_RATE_HZ) -> list[float]:
    """Returns when loud sound begins after quiet, in seconds."""
    at = np.nonzero(np.abs(sound.astype(np.int32)) > LOUD)[0]
    if len(at) == 0:
        return []
    quiet = QUIET * rate_hz // SPEECH_RATE_HZ
    starts = np.concatenate([at[:1], at[1:][np.diff(at) > quiet]])
    return [float(start) / rate_hz for start in starts]


def beeps(duration_s: float, rate_hz: int = CALL_RATE_HZ) -> NDArray[np.int16]:
    """Returns a beep of 200 ms at the beginning of each second."""
    at = np.arange(int(duration_s * rate_hz)) / rate_hz
    sound: NDArray[np.int16] = (8_000 * np.sin(2 * np.pi * 440 * at) * (at % 1 < 0.2)).astype(np.int16)
    return sound


class _TimedMicrophone(Microphone):
    def __init__(self) -> None:
        super().__init__()
        self.sent_s: list[float] = []

    async def recv(self) -> "Packet[Stream]":
        packet = await super().recv()
        self.sent_s.append(time.monotonic())
        return packet


class Mouth:
    """A client that speaks into one ear through a relay. `sent_s[i]` is when frame i left. `resends`: it offers to send
    lost packets again."""

    def __init__(self, resends: bool = False) -> None:
        self._resends = resends
        self.microphone = _TimedMicrophone()
        self._peer = new_peer()
        self._peer.addTransceiver(self.microphone, direction="sendrecv")
        self.relay: Relay | None = None

    @property
    def sent_s(self) -> list[float]:
        return self.microphone.sent_s

    async def call(self, ear: "Ear", seed: int) -> Relay:
        """Calls through a new relay; returns it once the line stands."""
        choose_addresses(self._peer, None)
        connected = asyncio.Event()

        def state_changed() -> None:
            if self._peer.connectionState == "connected":
                connected.set()

        self._peer.on("connectionstatechange", state_changed)
        await self._peer.setLocalDescription(await self._peer.createOffer())
        offer = without_candidates(self._peer.localDescription.sdp)
        answer = await ear.answer(offering_resends(offer) if self._resends else offer)
        answer, self.relay = await reroute(answer, seed)
        await self._peer.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        await connected.wait()
        return self.relay

    async def close(self) -> None:
        """Hangs up."""
        self.microphone.stop()
        await close_peer(self._peer)
        if self.relay is not None:
            self.relay.close()


class OurEar:
    """The server's WebRTC door."""

    name = "chorale"
    strings = False

    def __init__(self) -> None:
        self.hearing = Hearing()
        hearing = self.hearing
        self._door = CallDoor(QuietDirectory(lambda: QuietSession(HeardBy(hearing.add))))
        self._call_id = ""

    @property
    def never_heard(self) -> int:
        """Frames that were given up so far."""
        call = self._door.find(self._call_id)
        return 0 if call is None else call.statistics().order.lost

    async def answer(self, offer: str) -> str:
        self._call_id, answer = await self._door.answer(offer, SessionRequest("bench", 1))
        return answer

    async def close(self) -> None:
        await self._door.close()


class BareEar:
    """aiortc alone, its track read by `recv()` as its examples do."""

    name = "aiortc"
    strings = True

    def __init__(self) -> None:
        self.hearing = Hearing()
        self._peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._reader: asyncio.Task[None] | None = None
        self._peer.on("track", self._found)

    @property
    def never_heard(self) -> int:
        """Frames that are missing before the last one."""
        last = max((piece.start for piece in self.hearing.pieces), default=-FRAME)
        return last // FRAME + 1 - len(self.hearing.pieces)

    async def answer(self, offer: str) -> str:
        choose_addresses(self._peer, None)
        await self._peer.setRemoteDescription(RTCSessionDescription(offer, "offer"))
        await self._peer.setLocalDescription(await self._peer.createAnswer())
        return self._peer.localDescription.sdp

    async def close(self) -> None:
        await close_peer(self._peer)
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait([self._reader])

    def _found(self, track: MediaStreamTrack) -> None:
        self._reader = asyncio.create_task(self._listen(track))

    async def _listen(self, track: MediaStreamTrack) -> None:
        origin: int | None = None
        while True:
            try:
                frame = await track.recv()
            except MediaStreamError:
                return
            assert isinstance(frame, AudioFrame)
            assert frame.pts is not None
            origin = frame.pts if origin is None else origin
            mono = frame.to_ndarray()[0][:: frame.sample_rate // SPEECH_RATE_HZ * len(frame.layout.channels)]
            self.hearing.add((frame.pts - origin) * SPEECH_RATE_HZ // frame.sample_rate, mono)


Ear = OurEar | BareEar
