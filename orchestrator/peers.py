"""What the server's calls and those of its own clients need of aiortc's peer connections beyond what it documents:
choosing addresses, and closing for good. `tests/test_peers.py` pins aiortc 1.16 and aioice 0.13, and says what moved.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from aiortc import RTCPeerConnection

LOOPBACK = "127.0.0.1"


def choose_addresses(peer: RTCPeerConnection, addresses: Sequence[str] | None) -> None:
    """Makes a peer offer these host addresses; None: all of this machine's, or loopback where there is no other (which
    aioice leaves out, so that a machine without a network could not even call itself). Before candidates are gathered.
    """
    for connection in ice_connections(peer):
        _restrict(connection, addresses)


def ice_connections(peer: RTCPeerConnection) -> Sequence[Any]:
    """Returns the `aioice.Connection` of each of a peer's transports."""
    return [transport.iceGatherer._connection for transport in _ice_transports(peer)]


def _restrict(connection: Any, wanted: Sequence[str] | None) -> None:
    usual: Callable[[int, list[str]], Awaitable[list[Any]]] = connection.get_component_candidates

    async def gather(component: int, addresses: list[str]) -> list[Any]:
        return await usual(component, list(wanted) if wanted is not None else addresses or [LOOPBACK])

    connection.get_component_candidates = gather


async def close_peer(peer: RTCPeerConnection) -> None:
    """Closes a peer so that nothing of it is left, also one that was just about to connect.

    aiortc then goes on connecting in a task of its own: it would start what was stopped before it began, find the data
    channel's transport closed (an exception that nobody awaits), and check consent for ever. So there is nothing left
    to go on with.
    """
    if peer.sctp is not None:
        peer.sctp.start = _nothing  # type: ignore[assignment]
    for transceiver in peer.getTransceivers():
        transceiver.sender.send = _nothing  # type: ignore[assignment]
        transceiver.receiver.receive = _nothing  # type: ignore[assignment]
    for transport in _ice_transports(peer):
        transport._connection.query_consent = _nothing
    peer._RTCPeerConnection__remoteIce.clear()  # type: ignore[attr-defined]
    await peer.close()


async def _nothing(*_: object) -> None:
    """Stands in for what is not to begin any more."""


def _ice_transports(peer: RTCPeerConnection) -> Sequence[Any]:
    transports: set[Any] = peer._RTCPeerConnection__iceTransports  # type: ignore[attr-defined]
    return tuple(transports)
