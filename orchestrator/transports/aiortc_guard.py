"""What aiortc and aioice take from the network without a look, looked at before they see it.

As they are in aiortc 1.16 and aioice 0.13, pinned by `tests/transports/test_aiortc_guard.py`:

- An empty datagram ends a call, and a STUN attribute that is too short raises in the event loop: both from anybody who
  finds the port, without a key.
- An SCTP parameter of length 0 is read for ever, into a list; a SACK of a kilobyte is unfolded to 18 million numbers;
  what a peer sends beyond the window it was given is kept all the same. One packet of a caller would stop the server.
- What is wrong in a caller's packets comes out as an exception, with a trace.
"""

import logging
import struct
from typing import Any

from aioice import stun
from aiortc import RTCPeerConnection, RTCSctpTransport

from orchestrator.transports.aiortc_inside import ice_connections

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
    if peer.sctp is not None:
        _guard_packets(peer.sctp)
        _guard_reassembly(peer.sctp)


def parse_stun(data: bytes) -> stun.Message:
    """As aioice's. Raises nothing but `ValueError`, which is what aioice expects of it."""
    try:
        return _parse_stun(data)
    except struct.error as error:
        raise ValueError(str(error)) from None


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
