"""What aiortc and aioice take from the network without a look, looked at before they see it.

As they are in aiortc 1.16 and aioice 0.13, pinned by `tests/transports/test_aiortc_guard.py`:

- An empty datagram ends a call, and a STUN attribute that is too short raises in the event loop: both from anybody who
  finds the port, without a key.
- An SCTP parameter of length 0 is read for ever, into a list; a SACK of a kilobyte is unfolded to 18 million numbers;
  what a peer sends beyond the window it was given is kept all the same. One packet of a caller would stop the server.
- What is wrong in a caller's packets comes out as an exception, with a trace. A report of the line that is longer than
  1,500 bytes, from anybody, or one that makes no sense, from a caller, ends the call in this way; sound of such a
  length leaves a trace in the log for each packet.
- One report can have thousands of packets sent again; each source of sound is remembered for ever, in a list that
  every packet goes through; a client that insists on the other role of ICE is asked again without a pause, in a
  recursion without an end; what a timer of SCTP cannot send, since the call is over, is an exception nobody awaits.
"""

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pylibsrtp
from aioice import ice, stun
from aiortc import RTCPeerConnection, RTCRtpSender, RTCSctpTransport
from aiortc.rtcdtlstransport import RTCDtlsTransport

from orchestrator.peers import ice_connections

_log = logging.getLogger(__name__)

MAX_WAITING = 512
"""Datagrams that wait for DTLS. It is lossy by nature; a flood before the handshake would else be kept whole."""

MAX_ACKNOWLEDGED = 8_192
"""Chunks that one SACK may name beyond its first gap: more than are ever under way."""

MAX_MISORDERED = 1_024
MAX_FRAGMENTS = 2_048
"""Chunks of a call that wait for one before them, and for the end of their message. aiortc goes through all of them for
each that comes."""

WINDOW_SLACK_BYTES = 128 * 1024
"""What may come over the window that was announced: what was on its way."""

MAX_STREAMS = 64
"""Streams of one data channel's transport that a caller may use; ours are two or three."""

MAX_SOURCES = 8
"""Sources of sound and of reports whose state is kept with a call's keys; beyond, the one unused for longest goes."""

MAX_NEW_SOURCES_PER_S = 8
"""Sources of a call that may begin in one second; what further ones send is dropped before it costs anything."""

MAX_SENT_AGAIN_PER_S = 100
"""Packets of a call that are sent again when its client asks for them: twice as many as are sent at all."""

MAX_ROLE_CONFLICTS = 4
"""Checks of one address that may be answered by a claim to our role of ICE. In good faith one is."""

_COMMON_HEADER, _CHUNK_HEADER = 12, 4
_SACK, _SACK_HEADER = 3, 12
_PARAMETERS_AT = {1: 16, 2: 16, 4: 0, 5: 0, 6: 0, 9: 0, 130: 0}
"""Where the parameters of a chunk begin: INIT, INIT ACK, HEARTBEAT, HEARTBEAT ACK, ABORT, ERROR, RE-CONFIG."""

_ERRORS = (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError, struct.error)

_parse_stun = stun.parse_message


def guard(peer: RTCPeerConnection) -> None:
    """Guards a peer connection that has taken in its offer, before it opens a socket."""
    stun.parse_message = parse_stun
    for connection in ice_connections(peer):
        _guard_datagrams(connection)
        _guard_checks(connection)
    for sender in peer.getSenders():
        _guard_sender(sender)
    for transport in {transceiver.sender.transport for transceiver in peer.getTransceivers()}:
        _guard_keys(transport)
    if peer.sctp is not None:
        _guard_packets(peer.sctp)
        _guard_reassembly(peer.sctp)
        _guard_sending(peer.sctp)


def parse_stun(data: bytes) -> stun.Message:
    """As aioice's. Raises nothing but `ValueError`, which is what aioice expects of it."""
    try:
        return _parse_stun(data)
    except struct.error as error:
        raise ValueError(str(error)) from None


class BoundedKeys:
    """The keys for what a call receives (`pylibsrtp.Session`), for at most `MAX_SOURCES` sources at once."""

    def __init__(self, session: pylibsrtp.Session) -> None:
        self._session = session
        self._sources: dict[bytes, None] = {}
        self._latest = b""
        self._second = self._begun = 0

    @property
    def sources(self) -> int:
        """How many sources there is state of."""
        return len(self._sources)

    def unprotect(self, data: bytes) -> bytes:
        """Returns a packet decrypted. Raises `pylibsrtp.Error`, and nothing else, of what these keys did not make."""
        return self._open(data, 8, self._session.unprotect)

    def unprotect_rtcp(self, data: bytes) -> bytes:
        """The same of a report."""
        return self._open(data, 4, self._session.unprotect_rtcp)

    def _open(self, data: bytes, source_at: int, unprotect: Callable[[bytes], bytes]) -> bytes:
        source = data[source_at : source_at + 4]
        if source != self._latest and source not in self._sources and self._too_many_began():
            raise pylibsrtp.Error("more sources than anybody has")
        try:
            plain = unprotect(data)
        except ValueError as error:
            raise pylibsrtp.Error(str(error)) from None
        if source != self._latest:
            self._note(source)
        return plain

    def _too_many_began(self) -> bool:
        now = int(asyncio.get_running_loop().time())
        if now != self._second:
            self._second, self._begun = now, 0
        return self._begun >= MAX_NEW_SOURCES_PER_S

    def _note(self, source: bytes) -> None:
        self._latest = source
        if source in self._sources:
            del self._sources[source]
        else:
            self._begun += 1
        self._sources[source] = None
        if len(self._sources) > MAX_SOURCES:
            oldest = next(iter(self._sources))
            del self._sources[oldest]
            self._session.remove_stream(int.from_bytes(oldest, "big"))


def is_bearable(packet: bytes) -> bool:
    """Tells whether an SCTP packet (RFC 9260 §3) takes no more time and memory than is in keeping with its size."""
    position = _COMMON_HEADER
    while position + _CHUNK_HEADER <= len(packet):
        kind, length = packet[position], int.from_bytes(packet[position + 2 : position + 4], "big")
        if length < _CHUNK_HEADER or position + length > len(packet):
            return True  # aiortc refuses it by itself
        body = packet[position + _CHUNK_HEADER : position + length]
        if kind in _PARAMETERS_AT and not _has_an_end(body[_PARAMETERS_AT[kind] :]):
            return False
        if kind == _SACK and _acknowledged(body) > MAX_ACKNOWLEDGED:
            return False
        position += length + -length % 4
    return True


def _has_an_end(parameters: bytes) -> bool:
    position = 0
    while position + 4 <= len(parameters):
        length = int.from_bytes(parameters[position + 2 : position + 4], "big")
        if length < 4:
            return False
        position += length + -length % 4
    return True


def _acknowledged(body: bytes) -> int:
    """Returns how many chunks the gap blocks of a SACK name together."""
    count = int.from_bytes(body[8:10], "big")
    blocks = body[_SACK_HEADER : _SACK_HEADER + 4 * count]
    pairs = struct.iter_unpack("!HH", blocks[: len(blocks) // 4 * 4])
    return sum(max(0, stop - start + 1) for start, stop in pairs)


def _guard_datagrams(connection: Any) -> None:
    usual = connection.data_received

    def data_received(data: bytes, component: int) -> None:
        if data and connection._queue.qsize() < MAX_WAITING:
            usual(data, component)

    connection.data_received = data_received


def _guard_checks(connection: Any) -> None:
    usual: Callable[[ice.CandidatePair], Awaitable[None]] = connection.check_start
    depth: dict[int, int] = {}

    async def check_start(pair: ice.CandidatePair) -> None:
        """Calls itself, through aioice, once for each role conflict."""
        depth[id(pair)] = depth.get(id(pair), 0) + 1
        try:
            if depth[id(pair)] <= MAX_ROLE_CONFLICTS:
                await usual(pair)
            else:
                connection.check_state(pair, ice.CandidatePair.State.FAILED)
                connection.check_complete(pair)
        finally:
            depth[id(pair)] -= 1
            if not depth[id(pair)]:
                del depth[id(pair)]

    connection.check_start = check_start


def _guard_keys(transport: RTCDtlsTransport) -> None:
    usual, reports, packets = transport._setup_srtp, transport._handle_rtcp_data, transport._handle_rtp_data

    def setup_srtp() -> None:
        usual()
        if transport._rx_srtp is not None:
            keys: Any = BoundedKeys(transport._rx_srtp)
            transport._rx_srtp = keys

    async def handle_rtcp_data(data: bytes) -> None:
        await _sensibly(reports(data))

    async def handle_rtp_data(data: bytes, arrival_time_ms: int) -> None:
        await _sensibly(packets(data, arrival_time_ms))

    transport._setup_srtp = setup_srtp  # type: ignore[method-assign]
    transport._handle_rtcp_data = handle_rtcp_data  # type: ignore[method-assign]
    transport._handle_rtp_data = handle_rtp_data  # type: ignore[method-assign]


async def _sensibly(handling: Awaitable[None]) -> None:
    try:
        await handling
    except _ERRORS as error:
        _log.debug("a caller's packet makes no sense: %s", error)


def _guard_sender(sender: RTCRtpSender) -> None:
    usual = sender._retransmit
    second = left = 0

    async def retransmit(sequence_number: int) -> None:
        nonlocal second, left
        now = int(asyncio.get_running_loop().time())
        if now != second:
            second, left = now, MAX_SENT_AGAIN_PER_S
        if left:
            left -= 1
            await usual(sequence_number)

    sender._retransmit = retransmit  # type: ignore[method-assign]


def _guard_packets(sctp: RTCSctpTransport) -> None:
    usual = sctp._handle_data

    async def handle_data(data: bytes) -> None:
        if not is_bearable(data):
            _log.warning("an SCTP packet that nobody sends in good faith was dropped")
            return
        try:
            await usual(data)
        except _ERRORS as error:
            _log.warning("a caller's SCTP packet makes no sense (%s)", type(error).__name__)
            raise ConnectionError("the data channel's transport is broken") from error

    sctp._handle_data = handle_data  # type: ignore[method-assign]


def _guard_reassembly(sctp: RTCSctpTransport) -> None:
    """Drops what a peer sends beyond its window: a peer in good faith has it acknowledged later."""
    usual = sctp._receive_data_chunk

    async def receive_data_chunk(chunk: Any) -> None:
        stream = sctp._inbound_streams.get(chunk.stream_id)
        follows = sctp._last_received_tsn is not None and chunk.tsn == (sctp._last_received_tsn + 1) % 2**32
        if (
            len(chunk.user_data) > sctp._advertised_rwnd + WINDOW_SLACK_BYTES
            or (len(sctp._sack_misordered) >= MAX_MISORDERED and not follows)
            or (stream is not None and len(stream.reassembly) >= MAX_FRAGMENTS)
        ):
            sctp._sack_needed = True
            return
        await usual(chunk)

    sctp._receive_data_chunk = receive_data_chunk  # type: ignore[method-assign]


def _guard_sending(sctp: RTCSctpTransport) -> None:
    """Timers send, too; what they cannot send is nobody's fault and nobody's news: the call is over then anyway."""
    usual, stream = sctp._send_chunk, sctp._get_inbound_stream

    async def send_chunk(chunk: Any) -> None:
        try:
            await usual(chunk)
        except ConnectionError as error:
            _log.debug("a chunk could not be sent: %s", error)

    def get_inbound_stream(stream_id: int) -> Any:
        if stream_id not in sctp._inbound_streams and len(sctp._inbound_streams) >= MAX_STREAMS:
            raise ValueError(f"more than {MAX_STREAMS} streams")
        return stream(stream_id)

    sctp._send_chunk = send_chunk  # type: ignore[method-assign]
    sctp._get_inbound_stream = get_inbound_stream  # type: ignore[method-assign]
