"""The one place, with `aiortc_guard` and `aiortc_moves`, that reaches into aiortc and aioice beyond what they document.

Two things are taken from aiortc 1.16 and aioice 0.13 here; `tests/transports/test_aiortc_inside.py` pins each and
says which one moved:

- A transceiver's receiver is replaced by `TrackReceiver`: the stock one holds 80 ms and more back in a jitter buffer
  made for playing, decodes in a thread of its own, and hands each frame over in a task through an unbounded queue.
- RTP is taken off where datagrams arrive (`aioice.Connection.data_received`), decrypted and handed on at once, instead
  of through another unbounded queue and a task per transport.

What a client of ours needs of their inside, too, is one floor below, in `orchestrator.peers`.
"""

import asyncio
import logging
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import pylibsrtp
from aiortc import RTCDataChannel, RTCRtpTransceiver, RTCStatsReport
from aiortc.rtcdtlstransport import RTCDtlsTransport
from aiortc.rtcrtpparameters import RTCRtpReceiveParameters
from aiortc.rtp import (
    RTCP_RTPFB_NACK,
    RtcpReceiverInfo,
    RtcpRrPacket,
    RtcpRtpfbPacket,
    RtcpSrPacket,
    RtpPacket,
)

from orchestrator.clock import US_PER_S, Clock
from orchestrator.observability.faults import FAULTS
from orchestrator.transports.aiortc_moves import Whereabouts
from orchestrator.transports.resends import Missing
from orchestrator.transports.rtp_order import Packet, SoundCodec
from orchestrator.transports.rtp_reception import ReceptionCounter

_log = logging.getLogger(__name__)

_HEADER = struct.Struct("!BBHLL")
_RTCP_TYPES = range(192, 224)
_REPORT_EVERY_S = (0.5, 1.5)
_NTP_FRACTION = 65_536


class PacketSink(Protocol):
    """Where received packets go."""

    def receive(self, packet: Packet) -> None:
        """Takes a packet that just arrived. Does not wait."""
        ...

    def close(self) -> None:
        """No more packets come."""
        ...


def parse_rtp(data: bytes, codecs: Mapping[int, SoundCodec], now_us: int) -> Packet | None:
    """Reads an RTP packet (RFC 3550 §5.1); None if it is broken or of a payload type that was not agreed on."""
    if len(data) < _HEADER.size:
        return None
    first, second, sequence, timestamp, source = _HEADER.unpack_from(data)
    codec = codecs.get(second & 0x7F)
    if codec is None or first >> 6 != 2:
        return None
    start = _HEADER.size + 4 * (first & 0x0F)
    if first & 0x10:
        if len(data) < start + 4:
            return None
        start += 4 + 4 * int.from_bytes(data[start + 2 : start + 4], "big")
    stop = len(data)
    if first & 0x20:
        stop -= data[-1]
    if start > stop:
        return None
    return Packet(source, sequence, timestamp, codec, data[start:stop], now_us)


class TrackReceiver:
    """Stands in for aiortc's `RTCRtpReceiver` on a call's one audio track: RTP goes straight to `sink`.

    Reports loss and jitter to the sender about once a second, in one task per call.
    """

    def __init__(self, transport: RTCDtlsTransport, sink: PacketSink, clock: Clock) -> None:
        self._transport = transport
        self._sink = sink
        self._clock = clock
        self._codecs: dict[int, SoundCodec] = {}
        self._counter = ReceptionCounter()
        self._enabled = True
        self._reports: asyncio.Task[None] | None = None
        self._rtcp_source: int | None = None
        self._sender_report: tuple[int, int, int] | None = None
        self._stopped = False
        self._track: object = None
        self._untap: Callable[[], None] | None = None
        self._guard = FAULTS.guard("call reports")
        self._whereabouts: Whereabouts | None = None
        self._missing: Missing | None = None
        self._asking: asyncio.Task[bool] | None = None

    @property
    def track(self) -> Any:
        """What aiortc notes as the remote track; never read from."""
        return self._track

    @property
    def transport(self) -> RTCDtlsTransport:
        """The transport whose packets are taken."""
        return self._transport

    def setTransport(self, transport: RTCDtlsTransport) -> None:
        """Bundling: another transport carries the track."""
        self._transport = transport

    def follow_client(self) -> None:
        """Lets the call follow its client wherever its packets come from. Once candidates are gathered."""
        self._whereabouts = Whereabouts(self._transport.transport._connection, self._clock)

    def ask_for_lost(self) -> None:
        """Asks the client to send lost packets again; it says that it does."""
        self._missing = Missing()

    async def receive(self, parameters: RTCRtpReceiveParameters) -> None:
        """Begins to take packets; aiortc calls this once DTLS is done, and again after each negotiation."""
        if self._reports is not None or self._stopped:
            return
        names = {codec.value.lower(): codec for codec in SoundCodec}
        for agreed in parameters.codecs:
            known = names.get(agreed.name.lower())
            if known is not None and agreed.payloadType is not None:
                self._codecs[agreed.payloadType] = known
        self._transport._register_rtp_receiver(self, parameters)
        self._untap = tap_rtp(self._transport, self._take)
        self._reports = asyncio.create_task(self._report(), name="rtcp-reports")

    async def stop(self) -> None:
        """Takes no more packets. Idempotent."""
        self._stopped = True
        if self._untap is not None:
            self._untap()
            self._untap = None
            self._transport._unregister_rtp_receiver(self)
        under_way: list[asyncio.Task[Any]] = [
            task for task in (self._reports, self._asking) if task is not None and not task.done()
        ]
        for task in under_way:
            task.cancel()
        if under_way:
            await asyncio.wait(under_way)
        self._sink.close()

    async def getStats(self) -> RTCStatsReport:
        """aiortc's statistics know nothing of this receiver."""
        return RTCStatsReport()

    def _set_rtcp_ssrc(self, ssrc: int) -> None:
        self._rtcp_source = ssrc

    def _handle_disconnect(self) -> None:
        self._sink.close()

    async def _handle_rtp_packet(self, packet: RtpPacket, arrival_time_ms: int) -> None:
        """RTP that came before the tap was in place. There is none to speak of, but none is to be lost."""
        self._take(packet.serialize())

    async def _handle_rtcp_packet(self, packet: object) -> None:
        if isinstance(packet, RtcpSrPacket):
            middle = (packet.sender_info.ntp_timestamp >> 16) & 0xFFFFFFFF
            self._sender_report = (packet.ssrc, middle, self._clock.now_us())

    def _take(self, data: bytes) -> None:
        if self._whereabouts is not None:
            self._whereabouts.authentic()
        packet = parse_rtp(data, self._codecs, self._clock.now_us())
        if packet is not None and self._enabled:
            self._counter.add(packet)
            self._sink.receive(packet)
            if self._missing is not None and (wanted := self._missing.add(packet)):
                self._ask(packet.source, wanted)

    def _ask(self, source: int, wanted: Sequence[int]) -> None:
        if (
            self._rtcp_source is None
            or self._stopped
            or (self._asking is not None and not self._asking.done())
        ):
            return
        question = RtcpRtpfbPacket(RTCP_RTPFB_NACK, self._rtcp_source, source, sorted(wanted))
        self._asking = asyncio.create_task(self._send(bytes(question)), name="ask for lost packets")

    async def _send(self, report: bytes) -> bool:
        """Sends a report; tells whether there is still a line to do so."""
        try:
            await self._transport._send_rtp(report)
        except ConnectionError:
            return False
        return True

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(random.uniform(*_REPORT_EVERY_S))
            with self._guard:
                if not await self._report_once():
                    return

    async def _report_once(self) -> bool:
        """Tells the sender how it is received; returns whether there is still a line to do so."""
        reception = self._counter.report()
        if reception is None or self._rtcp_source is None:
            return True
        last, delay = 0, 0
        if self._sender_report is not None and self._sender_report[0] == reception.source:
            last = self._sender_report[1]
            delay = (self._clock.now_us() - self._sender_report[2]) * _NTP_FRACTION // US_PER_S
        info = RtcpReceiverInfo(
            ssrc=reception.source,
            fraction_lost=reception.fraction_lost,
            packets_lost=reception.packets_lost,
            highest_sequence=reception.highest_sequence,
            jitter=reception.jitter,
            lsr=last,
            dlsr=delay & 0xFFFFFFFF,
        )
        return await self._send(bytes(RtcpRrPacket(ssrc=self._rtcp_source, reports=[info])))


def replace_receiver(transceiver: RTCRtpTransceiver, sink: PacketSink, clock: Clock) -> TrackReceiver:
    """Puts a `TrackReceiver` in place of a transceiver's receiver. Before the descriptions are exchanged."""
    receiver = TrackReceiver(transceiver.receiver.transport, sink, clock)
    receiver._set_rtcp_ssrc(transceiver.sender._ssrc)
    transceiver._RTCRtpTransceiver__receiver = receiver  # type: ignore[attr-defined]
    return receiver


def tap_rtp(transport: RTCDtlsTransport, take: Callable[[bytes], None]) -> Callable[[], None]:
    """Hands each RTP packet of a connected transport to `take`, decrypted, as its datagram arrives; everything else
    goes its usual way. Returns what undoes this."""
    connection: Any = transport.transport._connection
    usual: Callable[[bytes, int], None] = connection.data_received

    def data_received(data: bytes, component: int) -> None:
        session = transport._rx_srtp
        if session is None or len(data) < 2 or not 127 < data[0] < 192 or data[1] in _RTCP_TYPES:
            usual(data, component)
            return
        try:
            plain = session.unprotect(data)
        except pylibsrtp.Error as error:
            _log.debug("an RTP packet could not be decrypted: %s", error)
            return
        take(plain)

    connection.data_received = data_received

    def untap() -> None:
        connection.data_received = usual

    return untap


def round_trip_us(channel: RTCDataChannel) -> int:
    """Returns the smoothed round trip that SCTP measures on its own messages; 0 before the first."""
    measured_s: float | None = channel.transport._srtt
    return 0 if measured_s is None else int(measured_s * US_PER_S)
