"""A peer connection of a client: made for one call, and closed by `orchestrator.peers.close_peer`."""

from aiortc import RTCConfiguration, RTCPeerConnection


def new_peer() -> RTCPeerConnection:
    """Returns a peer that asks no STUN server."""
    return RTCPeerConnection(RTCConfiguration(iceServers=[]))


def offering_resends(offer: str) -> str:
    """Returns an offer that says of aiortc what it does not say itself: it sends lost sound again if asked."""
    lines = []
    for line in offer.splitlines():
        lines.append(line)
        if line.startswith("a=rtpmap:") and " opus/" in line:
            lines.append(f"a=rtcp-fb:{line.removeprefix('a=rtpmap:').split()[0]} nack")
    return "\r\n".join(lines) + "\r\n"
