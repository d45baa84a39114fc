"""A WebRTC call to a Realtime server, as a browser would make it."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, BinaryIO, Self

import httpx
import numpy as np
from aiortc import RTCRtpSender, RTCSessionDescription

from orchestrator.clients.address import Address, CallFailed, Event, refusal, unreachable
from orchestrator.clients.earpiece import Earpiece, ReceivedSound
from orchestrator.clients.microphone import Microphone
from orchestrator.clients.peer import new_peer, offering_resends
from orchestrator.clients.recording import CALL_RATE_HZ, Samples, read_recording
from orchestrator.clients.returning import SECRET_HEADER, Cursor
from orchestrator.peers import choose_addresses, close_peer

CHANNEL = "oai-events"
MAX_EVENTS = 16_384
CONNECT_WITHIN_S = 20.0


class RealtimeCall:
    """Use as ``async with RealtimeCall.connect(url) as call``: sound goes out by `microphone` (silence until something
    is said), events both ways, and everything received is kept for `received_pcm`."""

    def __init__(self, microphone: Microphone | None = None, cursor: Cursor | None = None) -> None:
        self.cursor = cursor or Cursor()
        """Where it stands in its session: another call may go on from there."""

        self._peer = new_peer()
        self.microphone = microphone or Microphone()
        self._earpiece = Earpiece()
        self._events: asyncio.Queue[Event | None] = asyncio.Queue(MAX_EVENTS)
        self._open: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.call_id = ""
        self.failure: str | None = None
        """Why the call ended, once it has."""

        transceiver = self._peer.addTransceiver(self.microphone, direction="sendrecv")
        capabilities = RTCRtpSender.getCapabilities("audio")
        assert capabilities is not None
        transceiver.setCodecPreferences([codec for codec in capabilities.codecs if codec.name == "opus"])
        self._channel = self._peer.createDataChannel(CHANNEL)
        self._channel.on("open", self._opened)
        self._channel.on("message", self._message)
        self._channel.on("close", lambda: self._fail("the server closed the data channel"))
        self._peer.on("connectionstatechange", self._state_changed)
        self._earpiece.listen(transceiver.receiver)

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        url: str,
        key: str | None = None,
        session: Mapping[str, Any] | None = None,
        connect_within_s: float = CONNECT_WITHIN_S,
        microphone: Microphone | None = None,
        cursor: Cursor | None = None,
    ) -> AsyncIterator[Self]:
        """Calls, waits until events can be sent, and hangs up at the end. `cursor`: comes back to where that stands.

        Raises `ServerAway`, `ServerUntrusted`, `ServerRefused`, `CallFailed`.
        """
        call = cls(microphone, cursor)
        try:
            try:
                async with asyncio.timeout(connect_within_s):
                    await call._dial(Address(url, key), session)
            except TimeoutError:
                raise CallFailed(f"the call did not connect within {connect_within_s:.0f} s") from None
            yield call
        finally:
            await close_peer(call._peer)

    async def send(self, event: Mapping[str, Any]) -> None:
        """Sends an event. Raises `CallFailed` if the call has ended."""
        if self._channel.readyState != "open":
            raise CallFailed(self.failure or "the call has ended")
        self._channel.send(json.dumps(event))

    async def events(self) -> AsyncIterator[Event]:
        """Yields what the server says, in order, until the call ends (`failure` says why)."""
        while (event := await self._events.get()) is not None:
            yield event

    async def send_wav(
        self, source: str | Path | BinaryIO, lead_s: float = 0.0, tail_s: float = 0.0
    ) -> float:
        """Says a recording in real time, with silence around; returns when its last sample before the `tail_s` was
        sent (`time.monotonic`)."""
        return await self.say(await asyncio.to_thread(read_recording, source), lead_s, tail_s)

    async def say(self, samples: Samples, lead_s: float = 0.0, tail_s: float = 0.0) -> float:
        """As `send_wav`, for 48 kHz samples."""
        self.microphone.say(np.zeros(int(lead_s * CALL_RATE_HZ), np.int16))
        said = self.microphone.say(samples)
        rest = self.microphone.say(np.zeros(int(tail_s * CALL_RATE_HZ), np.int16))
        said_at_s = await said
        await rest
        return said_at_s

    def received_pcm(self) -> ReceivedSound:
        """Returns the server's sound so far, with the times at which it arrived."""
        return self._earpiece.sound()

    @property
    def received_packets(self) -> int:
        """How many packets of sound came."""
        return self._earpiece.count

    async def _dial(self, address: Address, session: Mapping[str, Any] | None) -> None:
        choose_addresses(self._peer, None)
        await self._peer.setLocalDescription(await self._peer.createOffer())
        offer = offering_resends(self._peer.localDescription.sdp)
        try:
            async with httpx.AsyncClient(
                headers=address.headers, verify=address.trust, trust_env=False
            ) as client:
                place, headers = {}, {}
                if self.cursor.may_return:
                    place, headers = self.cursor.place, {SECRET_HEADER: self.cursor.secret}
                body = _body(offer, session)
                headers |= body.pop("headers", {})
                response = await client.post(
                    address.calls, **body, params=place, headers=headers, timeout=None
                )
        except httpx.ConnectError as error:
            raise unreachable(address.url, error, "no connection") from error
        except httpx.TransportError as error:
            raise unreachable(address.url, error) from error
        if not response.is_success:
            raise refusal(response)
        self.cursor.given(response.headers)
        self.call_id = response.headers.get("location", "").rpartition("/")[2]
        await self._peer.setRemoteDescription(RTCSessionDescription(response.text, "answer"))
        await self._open

    def _opened(self) -> None:
        if not self._open.done():
            self._open.set_result(None)

    def _message(self, message: str | bytes) -> None:
        event = json.loads(message)
        if not self.cursor.receive(event):
            return
        try:
            self._events.put_nowait(event)
        except asyncio.QueueFull:
            self._fail(f"{MAX_EVENTS} events are waiting to be read")

    def _state_changed(self) -> None:
        if self._peer.connectionState in ("failed", "closed"):
            self._fail(f"the connection is {self._peer.connectionState}")

    def _fail(self, why: str) -> None:
        if self.failure is not None:
            return
        self.failure = why
        if not self._open.done():
            self._open.set_exception(CallFailed(why))
            self._open.exception()  # nobody may be waiting any more
        if self._events.full():
            self._events.get_nowait()
        self._events.put_nowait(None)


def _body(offer: str, session: Mapping[str, Any] | None) -> dict[str, Any]:
    """The two forms in which an offer is posted (`dict` of httpx arguments)."""
    if session is None:
        return {"content": offer, "headers": {"Content-Type": "application/sdp"}}
    parts = {
        "sdp": (None, offer, "application/sdp"),
        "session": (None, json.dumps(session), "application/json"),
    }
    return {"files": parts}
