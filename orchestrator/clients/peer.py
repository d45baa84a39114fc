"""A peer connection of a client: made for one call, closed for good.

What is not public of aiortc is kept here and in `Earpiece.listen`; `tests/clients/test_peer.py` pins it.
"""

from typing import Any

from aiortc import RTCConfiguration, RTCPeerConnection

LOOPBACK = "127.0.0.1"


def new_peer() -> RTCPeerConnection:
    """Returns a peer that asks no STUN server."""
    return RTCPeerConnection(RTCConfiguration(iceServers=[]))


def use_loopback_if_alone(peer: RTCPeerConnection) -> None:
    """Lets a machine without any network call itself: aioice leaves loopback out, whatever else there is."""
    for transport in _ice_transports(peer):
        connection: Any = transport._connection
        usual = connection.get_component_candidates

        async def gather(component: int, addresses: list[str], usual: Any = usual) -> list[Any]:
            found: list[Any] = await usual(component, addresses or [LOOPBACK])
            return found

        connection.get_component_candidates = gather


def offering_resends(offer: str) -> str:
    """Returns an offer that says of aiortc what it does not say itself: it sends lost sound again if asked."""
    lines = []
    for line in offer.splitlines():
        lines.append(line)
        if line.startswith("a=rtpmap:") and " opus/" in line:
            lines.append(f"a=rtcp-fb:{line.removeprefix('a=rtpmap:').split()[0]} nack")
    return "\r\n".join(lines) + "\r\n"


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


def _ice_transports(peer: RTCPeerConnection) -> list[Any]:
    return list(peer._RTCPeerConnection__iceTransports)  # type: ignore[attr-defined]
