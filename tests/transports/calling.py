"""A WebRTC door around fake sessions, and callers made of real aiortc peers, in the event loop of the test."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from aiortc import (
    MediaStreamTrack,
    RTCDataChannel,
    RTCPeerConnection,
    RTCRtpSender,
    RTCSessionDescription,
)
from av import Packet
from av.stream import Stream

from modalities.ports import Pcm
from orchestrator.clients.earpiece import Earpiece
from orchestrator.clients.peer import new_peer
from orchestrator.peers import close_peer
from orchestrator.sessions.links import SessionRequest
from orchestrator.transports.call import CallSettings
from orchestrator.transports.rejoining import Back
from orchestrator.transports.rtp_order import SoundCodec
from orchestrator.transports.sound_codecs import SoundEncoder, new_encoder
from orchestrator.transports.tracks import FRAME_SAMPLES, RATE_HZ
from orchestrator.transports.webrtc import CallDoor
from tests.fakes.session_port import CallDirectory, CallSession
from tests.transports.fake_sessions import FakeSession

PATIENCE_S = 60.0
REQUEST = SessionRequest(tenant="tenant", tier=1)


async def until(is_so: Callable[[], object], what: str) -> None:
    """Returns once `is_so()`. Fails after a time that no working machine needs."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not is_so():  # noqa: ASYNC110 - what is waited for tells nobody
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"waited {PATIENCE_S:.0f} s in vain for {what}") from None


def tone(duration_s: float, hz: float = 440.0, level: int = 8_000, rate_hz: int = RATE_HZ) -> Pcm:
    """A sine wave."""
    at = np.arange(int(duration_s * rate_hz)) / rate_hz
    pcm: Pcm = (level * np.sin(2 * np.pi * hz * at)).astype(np.int16)
    return pcm


class Script(MediaStreamTrack):
    """A microphone that says, frame by frame, what it is told: sound, None for silence, ``"skip"`` for nothing at all
    while time passes. Then silence."""

    kind = "audio"

    def __init__(
        self, frames: Iterable[bytes | str | None] = (), codec: SoundCodec = SoundCodec.OPUS
    ) -> None:
        super().__init__()
        self._frames = list(frames)
        self._encoder: SoundEncoder = new_encoder(codec)
        self._began_s: float | None = None
        self.sent = 0

    async def recv(self) -> "Packet[Stream]":
        loop = asyncio.get_running_loop()
        while True:
            self._began_s = loop.time() if self._began_s is None else self._began_s
            await asyncio.sleep(self._began_s + self.sent * 0.02 - loop.time())
            frame = self._frames[self.sent] if self.sent < len(self._frames) else None
            self.sent += 1
            if not isinstance(frame, str):
                break
        packet = Packet(self._encoder.encode(frame))
        packet.pts = (self.sent - 1) * self._encoder.ticks
        packet.time_base = Fraction(1, self._encoder.clock_hz)
        return packet


def frames_of(pcm: Pcm) -> list[bytes]:
    """Cuts 24 kHz sound into frames of 20 ms."""
    return [pcm[start : start + FRAME_SAMPLES].tobytes() for start in range(0, len(pcm), FRAME_SAMPLES)]


@dataclass
class Caller:
    """A client of the door."""

    peer: RTCPeerConnection
    microphone: Script
    earpiece: Earpiece
    channel: RTCDataChannel | None
    call_id: str = ""
    answer: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)

    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    def send(self, event: object) -> None:
        assert self.channel is not None
        self.channel.send(event if isinstance(event, str | bytes) else json.dumps(event))

    async def connected(self) -> None:
        await until(lambda: self.peer.connectionState == "connected", "the connection")
        if self.channel is not None:
            await until(lambda: "session.created" in self.types(), "session.created")


def without_candidates(sdp: str) -> str:
    """What browsers post: no candidates, and no word that none follow."""
    lines = sdp.split("\r\n")
    return "\r\n".join(line for line in lines if not line.startswith(("a=candidate", "a=end-of-candidates")))


@dataclass
class Switchboard:
    """The door, what it opened, and the callers that are still there."""

    door: CallDoor
    directory: CallDirectory
    callers: list[Caller] = field(default_factory=list)

    @property
    def session(self) -> CallSession:
        return self.directory.session

    async def offer(
        self,
        microphone: Script | None = None,
        direction: str = "sendrecv",
        codecs: tuple[str, ...] = ("opus",),
        channel: bool = True,
        label: str = "oai-events",
    ) -> tuple[Caller, str]:
        """Makes a caller and its offer, as a browser would post it."""
        peer = new_peer()
        caller = Caller(peer, microphone or Script(), Earpiece(), None)
        self.callers.append(caller)
        transceiver = peer.addTransceiver(caller.microphone, direction)
        capabilities = RTCRtpSender.getCapabilities("audio")
        assert capabilities is not None
        transceiver.setCodecPreferences([codec for codec in capabilities.codecs if codec.name in codecs])
        caller.earpiece.listen(transceiver.receiver)
        if channel:
            caller.channel = peer.createDataChannel(label)
            caller.channel.on("message", lambda message: caller.events.append(json.loads(message)))
        await peer.setLocalDescription(await peer.createOffer())
        return caller, without_candidates(peer.localDescription.sdp)

    async def dial(
        self,
        microphone: Script | None = None,
        direction: str = "sendrecv",
        codecs: tuple[str, ...] = ("opus",),
        channel: bool = True,
        request: SessionRequest = REQUEST,
        back: Back | None = None,
    ) -> Caller:
        """Calls and waits until it is connected."""
        caller, sdp = await self.offer(microphone, direction, codecs, channel)
        caller.call_id, caller.answer = await self.door.answer(sdp, request, back)
        await caller.peer.setRemoteDescription(RTCSessionDescription(caller.answer, "answer"))
        await caller.connected()
        return caller


@contextlib.asynccontextmanager
async def switchboard(
    settings: CallSettings | None = None, capacity: int = 100
) -> AsyncIterator[Switchboard]:
    """Opens a door; afterwards every call must be gone, and with it every task and every socket."""
    before = open_files()
    directory = CallDirectory(capacity)
    board = Switchboard(CallDoor(directory, settings), directory)
    try:
        yield board
    finally:
        await board.door.close()
        for caller in board.callers:
            await close_peer(caller.peer)
    assert board.door.calls == 0
    await until(lambda: asyncio.all_tasks() == {asyncio.current_task()}, "every task to end")
    await until(lambda: open_files() <= before, "every socket to close")


def open_files() -> int:
    """How many files and sockets this process has open."""
    return len(os.listdir("/proc/self/fd"))


def loud_extents(session: FakeSession, level: int = 500) -> list[tuple[float, float]]:
    """Where the session heard something, in seconds; breaks under 15 ms are bridged."""
    assert isinstance(session, CallSession)
    buffer = session.ring.buffer
    heard = np.frombuffer(buffer.extent(buffer.oldest, buffer.position), np.int16)
    at = np.nonzero(np.abs(heard.astype(int)) > level)[0]
    if len(at) == 0:
        return []
    breaks = np.nonzero(np.diff(at) > 240)[0]
    starts, stops = np.concatenate([at[:1], at[breaks + 1]]), np.concatenate([at[breaks], at[-1:]])
    return [(float(start) / 16_000, float(stop) / 16_000) for start, stop in zip(starts, stops, strict=True)]
