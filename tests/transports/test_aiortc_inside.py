"""What is taken from inside aiortc and aioice, pinned: a failure here says which part of them moved."""

import asyncio
import inspect
from typing import Any

import aioice
import pytest
from aiortc import RTCDataChannel, RTCRtpReceiver, RTCSctpTransport
from aiortc.rtcdtlstransport import RTCDtlsTransport
from aiortc.rtp import RtpPacket
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.clients.peer import new_peer
from orchestrator.clock import MonotonicClock
from orchestrator.observability.faults import FAULTS
from orchestrator.peers import close_peer
from orchestrator.transports.aiortc_inside import (
    TrackReceiver,
    parse_rtp,
    replace_receiver,
    round_trip_us,
    tap_rtp,
)
from orchestrator.transports.rtp_order import Packet, SoundCodec
from tests import virtual_time
from tests.transports.calling import switchboard, until

CODECS = {96: SoundCodec.OPUS, 0: SoundCodec.PCMU}


class Sink:
    """Keeps packets."""

    def __init__(self) -> None:
        self.packets: list[Packet] = []
        self.closed = 0

    def receive(self, packet: Packet) -> None:
        self.packets.append(packet)

    def close(self) -> None:
        self.closed += 1


def test_a_transceiver_keeps_its_receiver_under_the_name_that_is_replaced() -> None:
    """`RTCRtpTransceiver.receiver` is what `replace_receiver` puts there."""

    async def main() -> None:
        peer = new_peer()
        transceiver = peer.addTransceiver("audio")
        assert isinstance(transceiver.receiver, RTCRtpReceiver)
        receiver: Any = replace_receiver(transceiver, Sink(), MonotonicClock())
        assert transceiver.receiver is receiver
        await close_peer(peer)

    asyncio.run(main())


def test_our_receiver_has_everything_that_aiortc_calls_on_one() -> None:
    """Every method that the stock receiver shows to its neighbours exists with the same arguments."""
    called = ("receive", "stop", "setTransport", "getStats", "_handle_rtp_packet", "_handle_rtcp_packet")
    for name in (*called, "_handle_disconnect", "_set_rtcp_ssrc"):
        stock = list(inspect.signature(getattr(RTCRtpReceiver, name)).parameters)
        assert list(inspect.signature(getattr(TrackReceiver, name)).parameters) == stock, name
    for name in ("track", "transport"):
        assert isinstance(inspect.getattr_static(RTCRtpReceiver, name), property)
        assert isinstance(inspect.getattr_static(TrackReceiver, name), property)


def test_datagrams_arrive_where_they_are_tapped() -> None:
    """aioice hands what is no STUN to `Connection.data_received(data, component)`, looked up at each datagram."""
    assert list(inspect.signature(aioice.Connection.data_received).parameters) == [
        "self",
        "data",
        "component",
    ]
    source = inspect.getsource(aioice.ice.StunProtocol.datagram_received)
    assert "self.receiver.data_received(data, self.local_candidate.component)" in source


def test_a_transport_has_the_parts_that_are_used() -> None:
    """SRTP session, router, sending; the ICE connection behind it; the round trip of SCTP."""

    async def main() -> None:
        peer = new_peer()
        transport: Any = peer.addTransceiver("audio").receiver.transport
        channel: RTCDataChannel = peer.createDataChannel("x")
        assert transport._rx_srtp is None
        for name in ("_register_rtp_receiver", "_unregister_rtp_receiver", "_send_rtp"):
            assert callable(getattr(RTCDtlsTransport, name))
        assert transport.transport.iceGatherer._connection is transport.transport._connection
        assert isinstance(peer._RTCPeerConnection__iceTransports, set)  # type: ignore[attr-defined]
        assert isinstance(peer._RTCPeerConnection__remoteIce, dict)  # type: ignore[attr-defined]
        assert isinstance(channel.transport, RTCSctpTransport)
        assert channel.transport._srtt is None
        assert round_trip_us(channel) == 0
        channel.transport._srtt = 0.25
        assert round_trip_us(channel) == 250_000
        await close_peer(peer)

    asyncio.run(main())


def test_a_call_receives_by_the_tap_and_not_by_the_stock_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over real peers: packets come although the slow way is cut, and no decoder thread runs."""

    async def main() -> None:
        async with switchboard() as board:
            taken = 0

            async def cut(self: TrackReceiver, packet: RtpPacket, arrival_time_ms: int) -> None:
                nonlocal taken
                taken += 1

            monkeypatch.setattr(TrackReceiver, "_handle_rtp_packet", cut)
            await board.dial()
            await until(lambda: board.session.intake.position > 16_000, "a second of sound")
            assert taken <= 1, "the tap is in place before the second packet"

    asyncio.run(main())


def test_the_sender_is_told_what_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Receiver reports arrive at the peer, and carry its own source."""

    async def main() -> None:
        async with switchboard() as board:
            caller = await board.dial()
            stats: dict[str, Any] = {}

            async def reported() -> bool:
                stats.update(await caller.peer.getSenders()[0].getStats())
                return any(entry.type == "remote-inbound-rtp" for entry in stats.values())

            for _ in range(1_000):
                if await reported():
                    break
                await asyncio.sleep(0.01)
            (report,) = [entry for entry in stats.values() if entry.type == "remote-inbound-rtp"]
            assert report.packetsLost <= 1  # the very first may come before the keys

    asyncio.run(main())


def test_a_tap_passes_on_what_is_no_rtp_and_can_be_taken_off() -> None:
    """DTLS, RTCP and everything before the keys go the usual way; so does everything after `untap`."""

    class Connection:
        def __init__(self) -> None:
            self.usual: list[bytes] = []

        def data_received(self, data: bytes, component: int) -> None:
            self.usual.append(data)

    class Keys:
        def unprotect(self, data: bytes) -> bytes:
            return data[:-1]

    class Ice:
        _connection = Connection()

    class Transport:
        transport = Ice()
        _rx_srtp: Keys | None = None

    transport: Any = Transport()
    connection = transport.transport._connection
    taken: list[bytes] = []
    untap = tap_rtp(transport, taken.append)
    rtp, rtcp, dtls = bytes([0x80, 96, 1, 2]), bytes([0x80, 200, 1]), bytes([22, 254])
    connection.data_received(rtp, 1)
    transport._rx_srtp = Keys()
    for datagram in (rtp, rtcp, dtls, b"\x80"):
        connection.data_received(datagram, 1)
    untap()
    connection.data_received(rtp, 1)
    assert taken == [rtp[:-1]]
    assert connection.usual == [rtp, rtcp, dtls, b"\x80", rtp]


@given(
    marker=st.booleans(),
    sequence=st.integers(0, 65_535),
    timestamp=st.integers(0, 2**32 - 1),
    source=st.integers(0, 2**32 - 1),
    sources=st.lists(st.integers(0, 2**32 - 1), max_size=3),
    payload=st.binary(max_size=50),
    padding=st.integers(0, 9),
)
def test_a_packet_is_read_as_aiortc_writes_it(
    marker: bool, sequence: int, timestamp: int, source: int, sources: list[int], payload: bytes, padding: int
) -> None:
    """Every field comes back, whatever stands around the payload."""
    written = RtpPacket(96, int(marker), sequence, timestamp, source, payload)
    written.csrc, written.padding_size = sources, padding
    assert parse_rtp(written.serialize(), CODECS, 7) == Packet(
        source, sequence, timestamp, SoundCodec.OPUS, payload, 7
    )


def test_header_extensions_are_passed_over() -> None:
    """The payload begins behind them."""
    head = bytes([0x90, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3])
    extension = bytes([0xBE, 0xDE, 0, 1, 0x10, 0x31, 0, 0])
    packet = parse_rtp(head + extension + b"sound", CODECS, 0)
    assert packet is not None
    assert (packet.codec, packet.payload) == (SoundCodec.PCMU, b"sound")


@given(st.binary(max_size=40))
def test_any_bytes_are_a_packet_or_nothing(data: bytes) -> None:
    """Broken and unknown packets are dropped, never raised on."""
    packet = parse_rtp(data, CODECS, 0)
    assert packet is None or packet.codec in CODECS.values()


def test_a_receiver_goes_on_reporting_after_a_report_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that hears nothing more of how it is received would believe that its line is dead."""

    async def main() -> None:
        before = FAULTS.counts().get("call reports", 0)
        transport: Any = object()
        receiver, reports = TrackReceiver(transport, Sink(), virtual_time.VirtualClock()), 0

        def report() -> None:
            nonlocal reports
            reports += 1
            if reports <= 2:
                raise ZeroDivisionError

        monkeypatch.setattr(receiver._counter, "report", report)
        reporting = asyncio.create_task(receiver._report())
        await asyncio.sleep(20)
        assert reports >= 10
        assert FAULTS.counts()["call reports"] == before + 2
        reporting.cancel()
        await asyncio.gather(reporting, return_exceptions=True)

    virtual_time.run(main())
