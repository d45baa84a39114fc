"""One WebRTC call: a peer connection with a track each way and the client's data channel, bound to one session."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from aiortc import (
    RTCConfiguration,
    RTCDataChannel,
    RTCIceServer,
    RTCPeerConnection,
    RTCRtpSender,
    RTCSessionDescription,
)
from aiortc.exceptions import InvalidStateError, OperationError

from orchestrator.clock import US_PER_MS, Clock
from orchestrator.errors import ChoraleError, Overloaded, SessionClosed, WireError
from orchestrator.peers import choose_addresses, close_peer
from orchestrator.sessions.links import SessionPort
from orchestrator.transports.aiortc_guard import guard
from orchestrator.transports.aiortc_inside import replace_receiver, round_trip_us
from orchestrator.transports.call_link import CallLink
from orchestrator.transports.offers import SDP_ERRORS, Offer, add_addresses
from orchestrator.transports.outbox import TOO_MANY_TOLD, Closing
from orchestrator.transports.pace import Pace, Rate
from orchestrator.transports.playing import PlayoutTrack
from orchestrator.transports.receive import ReceiveSettings, ReceiveStatistics, SoundReceiver
from orchestrator.transports.rejoining import Back
from orchestrator.transports.resends import HOLD_MS, can_be_asked, with_resends
from orchestrator.transports.rtp_order import SoundCodec
from orchestrator.wire.client import AppendAudio
from orchestrator.wire.codec import client_event_id, decode_client

_log = logging.getLogger(__name__)

CHANNEL = "oai-events"
MAX_FURTHER_CHANNELS = 8
"""Data channels beside the one for events that a client may open, to have them closed again."""

MAX_UNREAD = 256
MAX_UNREAD_BYTES = 4 * 2**20
"""Client events that wait while the session's inbox is full; a client that sends more is closed (1008), since SCTP as
it is here cannot be told to wait."""

CLOSE_WITHIN_S = 5.0

LOST_AFTER_US = 500 * US_PER_MS
"""A client that has sent sound, and then none for so long, is taken for gone when its call ends."""

_CODEC_NAMES = [codec.value.lower() for codec in SoundCodec]


@dataclass(frozen=True, slots=True)
class IceServer:
    """A STUN or TURN server that this machine asks for its outside address."""

    urls: tuple[str, ...]
    username: str | None = None
    credential: str | None = None


@dataclass(frozen=True, slots=True)
class CallSettings:
    """How calls are made.

    `ice_timeout_s`: a call that is not connected by then is given up. `host_addresses`: which of this machine's
    addresses to offer; None is all. `public_addresses`: under which they are reached from outside, where a router maps
    them one to one. `playout_s`: sound of the session that may wait to be played. `max_connecting`: calls that are not
    connected yet, at one time; None is any number. `rate`: of events; over it they are read more slowly, and what is
    unread is bounded.
    """

    ice_servers: tuple[IceServer, ...] = ()
    ice_timeout_s: float = 30.0
    host_addresses: tuple[str, ...] | None = None
    public_addresses: tuple[str, ...] = ()
    playout_s: float = 120.0
    max_connecting: int | None = None
    receive: ReceiveSettings = field(default_factory=ReceiveSettings)
    rate: Rate = field(default_factory=Rate)


class Call:
    """Ends exactly once, whoever ends it: the client, the session, a lost connection, the ICE time-out.

    `gone` is told then, when everything is released. `back`: its client returns to a session that it had before;
    `take_over` is told when the call takes the place of those that may still be there.
    """

    def __init__(
        self,
        call_id: str,
        session: SessionPort,
        offer: Offer,
        settings: CallSettings,
        clock: Clock,
        gone: Callable[["Call"], None],
        back: Back | None = None,
        take_over: Callable[[SessionPort], None] = lambda session: None,
    ) -> None:
        self.id = call_id
        self.session = session
        self.was_connected = False
        self.opened_session = back is None
        self._after = None if back is None else back.after
        self._take_over = take_over
        self._offer = offer
        self._settings = settings
        self._gone = gone
        self._track = PlayoutTrack(clock, settings.playout_s, self._drained)
        self._resends = can_be_asked(offer.sdp, offer.codec)
        receive = settings.receive
        if self._resends:
            receive = replace(receive, hold_ms=max(receive.hold_ms, HOLD_MS))
        self._sound = SoundReceiver(session.intake, clock, receive)
        self._link = CallLink(session, self._track, offer.max_message_bytes, self._sound.drop)
        self._clock = clock
        self._peer: RTCPeerConnection | None = None
        self._channel: RTCDataChannel | None = None
        self._further_channels = 0
        self._inbox: asyncio.Queue[str | bytes] = asyncio.Queue(MAX_UNREAD)
        self._inbox_bytes = 0
        self._reader: asyncio.Task[None] | None = None
        self._ice_timer: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def unread(self) -> tuple[int, int]:
        """Events of its client that nobody has read yet: how many, and their bytes."""
        return self._inbox.qsize(), self._inbox_bytes

    async def answer(self) -> str:
        """Returns the SDP answer, with every candidate, and attaches to the session. Raises `WireError` on an offer
        that cannot be used after all. On any failure, and when cancelled, `close` is to be called."""
        peer = RTCPeerConnection(RTCConfiguration(iceServers=_ice_servers(self._settings)))
        self._peer = peer
        transceiver = peer.addTransceiver(self._track, direction="sendrecv")
        capabilities = RTCRtpSender.getCapabilities("audio")
        assert capabilities is not None
        known = {codec.name.lower(): codec for codec in capabilities.codecs}
        transceiver.setCodecPreferences([known[name] for name in _CODEC_NAMES])
        receiver = replace_receiver(transceiver, self._sound, self._clock)
        peer.on("datachannel", self._channel_opened)
        peer.on("connectionstatechange", self._state_changed)
        try:
            await peer.setRemoteDescription(RTCSessionDescription(self._offer.sdp, "offer"))
            guard(peer)
            choose_addresses(peer, self._settings.host_addresses)
            await peer.setLocalDescription(await peer.createAnswer())
            receiver.follow_client()
            if self._resends:
                receiver.ask_for_lost()
        except (OperationError, InvalidStateError, *SDP_ERRORS) as error:
            _log.warning("call %s: aiortc cannot answer the offer (%s)", self.id, type(error).__name__)
            raise WireError("invalid_value", "Invalid SDP offer: it does not fit together.", "sdp") from error
        self._track.use(self._offer.codec, self._offer.takes_pauses)
        if not self._offer.listens:
            self._track.run_dry()
        answer = with_resends(peer.localDescription.sdp, self._offer.sdp)
        answer = add_addresses(answer, self._settings.public_addresses)
        if "a=candidate:" not in answer:
            raise ChoraleError("this machine has no address at which a call could reach it")
        self._begin()
        return answer

    def statistics(self) -> ReceiveStatistics:
        """Returns what became of the received packets."""
        return self._sound.statistics()

    def settle(self) -> None:
        """The call is about to end: what was sent to a client that is gone has not been heard."""
        heard_us = self._sound.heard_us
        if heard_us is not None and self._clock.now_us() - heard_us > LOST_AFTER_US:
            self._track.unplay(heard_us)

    def end(self, reason: str) -> None:
        """Ends the call soon. Only the first call counts."""
        if self._closing is None:
            _log.info("call %s ends: %s", self.id, reason)
            self._closing = asyncio.create_task(self._close(), name=f"close {self.id}")

    async def close(self, reason: str) -> None:
        """Ends the call and returns when all of it is released. Cancelling does not stop that."""
        self.end(reason)
        assert self._closing is not None
        await asyncio.shield(self._closing)

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._reader = asyncio.create_task(self._read(), name=f"events of {self.id}")
        self._reader.add_done_callback(self._reader_ended)
        self._ice_timer = loop.call_later(self._settings.ice_timeout_s, self.end, "not connected in time")
        self._link.ended.add_done_callback(self._link_ended)
        self._take_over(self.session)
        self._link.start(self.session.attach(self._link, self._after))

    def _link_ended(self, ended: "asyncio.Future[Closing]") -> None:
        if not ended.cancelled():
            self.end(ended.result().reason)

    def _state_changed(self) -> None:
        state = self._peer.connectionState if self._peer is not None else "closed"
        if state == "connected":
            self._maybe_established()
        elif state in ("failed", "closed"):
            self.end(f"the connection is {state}")

    def _maybe_established(self) -> None:
        """A call counts as connected when its data channel, if it is to have one, is open too."""
        if self._channel is None and self._offer.max_message_bytes is not None:
            return
        self.was_connected = True
        if self._ice_timer is not None:
            self._ice_timer.cancel()

    def _channel_opened(self, channel: RTCDataChannel) -> None:
        if channel.label != CHANNEL or self._channel is not None:
            channel.close()
            self._further_channels += 1
            if self._further_channels > MAX_FURTHER_CHANNELS:
                self.end("its client opens one data channel after another")
            return
        self._channel = channel
        channel.on("message", self._message)
        self._link.open(channel)
        self._maybe_established()

    def _message(self, message: str | bytes) -> None:
        if self._inbox.full() or self._inbox_bytes + len(message) > MAX_UNREAD_BYTES:
            self._link.close(TOO_MANY_TOLD.code, "Too many events are waiting to be read.")
            return
        self._inbox_bytes += len(message)
        self._inbox.put_nowait(message)

    async def _read(self) -> None:
        pace = Pace(self._settings.rate)
        try:
            while True:
                message = await self._inbox.get()
                self._inbox_bytes -= len(message)
                await self._take(message)
                if wait_s := pace.take(len(message), self._clock.now_us()):
                    await asyncio.sleep(wait_s)
        except SessionClosed:
            self._link.close(1000, "The session has ended.")
        except Overloaded as error:
            self._link.close(1013, str(error))

    def _reader_ended(self, reader: "asyncio.Task[None]") -> None:
        """A border of ours: what is not known here is a fault, which ends this call and no other."""
        if not reader.cancelled() and (fault := reader.exception()) is not None:
            _log.error("the events of call %s could not be taken", self.id, exc_info=fault)
            self.end("a fault of ours")

    def _drained(self, response_id: str) -> None:
        try:
            self.session.playout_drained(response_id)
        except Overloaded as error:
            self.end(str(error))

    async def _take(self, message: str | bytes) -> None:
        try:
            event = decode_client(message)
            if isinstance(event, AppendAudio):
                raise WireError(
                    "invalid_event",
                    "The sound of a call comes by its audio track; input_audio_buffer.append is for WebSockets.",
                    "type",
                )
        except WireError as error:
            self.session.refuse(self._link.id, error, client_event_id(message))
            return
        age_us = round_trip_us(self._channel) // 2 if self._channel is not None else 0
        await self.session.submit(self._link.id, event, age_us)

    async def _close(self) -> None:
        if self._ice_timer is not None:
            self._ice_timer.cancel()
        self._sound.close()
        self.settle()
        with contextlib.suppress(Overloaded):  # it will miss the link soon enough
            self.session.detach(self._link.id)
        self._link.drop()
        self._track.stop()
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait([self._reader])
        try:
            if self._peer is not None:
                async with asyncio.timeout(CLOSE_WITHIN_S):
                    await close_peer(self._peer)
        except TimeoutError:
            _log.warning(
                "the peer connection of call %s did not close within %.0f s", self.id, CLOSE_WITHIN_S
            )
        finally:
            self._gone(self)


def _ice_servers(settings: CallSettings) -> list[RTCIceServer]:
    return [
        RTCIceServer(urls=list(server.urls), username=server.username, credential=server.credential)
        for server in settings.ice_servers
    ]
