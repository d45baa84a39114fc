"""Offers that can be answered, and clear words for those that cannot."""

import asyncio
import contextlib

import pytest
from aiortc import RTCConfiguration, RTCPeerConnection, RTCRtpSender
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import WireError
from orchestrator.transports.offers import (
    DEFAULT_MESSAGE_BYTES,
    MAX_CANDIDATES,
    MAX_MESSAGE_BYTES,
    MAX_OFFER_BYTES,
    add_addresses,
    read_offer,
)
from orchestrator.transports.rtp_order import SoundCodec

SHARED = ("a=ice-ufrag:", "a=ice-pwd:", "a=fingerprint:", "a=setup:")


async def _offer(
    direction: str = "sendrecv", channel: bool = True, audio: int = 1, video: bool = False
) -> str:
    peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    for _ in range(audio):
        peer.addTransceiver("audio", direction)
    if video:
        peer.addTransceiver("video")
    if channel:
        peer.createDataChannel("oai-events")
    await peer.setLocalDescription(await peer.createOffer())
    sdp = peer.localDescription.sdp
    await peer.close()
    return sdp


@pytest.fixture(scope="module")
def sdp() -> str:
    """An offer as clients make it."""
    return asyncio.run(_offer())


def refused(text: str) -> str:
    with pytest.raises(WireError) as caught:
        read_offer(text)
    assert caught.value.param == "sdp"
    return str(caught.value)


def test_a_usual_offer_says_what_matters(sdp: str) -> None:
    """Opus is preferred, sound goes both ways, and the peer's own limit of messages holds."""
    offer = read_offer(sdp)
    assert (offer.codec, offer.listens, offer.speaks) == (SoundCodec.OPUS, True, True)
    assert offer.max_message_bytes == MAX_MESSAGE_BYTES == 262_144


def test_line_ends_may_be_either(sdp: str) -> None:
    """Multipart bodies lose carriage returns now and then."""
    assert read_offer(sdp.replace("\r\n", "\n")) == read_offer(sdp)


def test_the_limit_of_messages_is_the_peers(sdp: str) -> None:
    """Not said means 64 KiB, 0 means anything, which we do not use."""
    line = "a=max-message-size:262144"
    assert read_offer(sdp.replace(line, "a=max-message-size:1000")).max_message_bytes == 1_000
    assert read_offer(sdp.replace(line, "a=max-message-size:0")).max_message_bytes == MAX_MESSAGE_BYTES
    assert read_offer(sdp.replace(line + "\r\n", "")).max_message_bytes == DEFAULT_MESSAGE_BYTES


def test_direction_that_is_not_said_is_both_or_the_sessions(sdp: str) -> None:
    """RFC 8866 lets an offer be silent about it; what the peer connection sees is not."""
    silent = sdp.replace("a=sendrecv\r\n", "")
    offer = read_offer(silent)
    assert (offer.listens, offer.speaks) == (True, True)
    assert offer.sdp.count("a=sendrecv") == 1
    assert offer.sdp.index("m=audio") < offer.sdp.index("a=sendrecv") < offer.sdp.index("m=application")
    whole = read_offer(silent.replace("t=0 0\r\n", "t=0 0\r\na=recvonly\r\n"))
    assert (whole.listens, whole.speaks) == (True, False)
    assert read_offer(sdp.replace("t=0 0\r\n", "t=0 0\r\na=recvonly\r\n")).speaks


def test_only_some_addresses_of_an_offer_are_tried(sdp: str) -> None:
    """An offer cannot have this server send packets to a list of other people's machines."""
    many = "".join(f"a=candidate:{n} 1 udp 2130706431 192.0.2.{n} 9 typ host\r\n" for n in range(200))
    offer = read_offer(sdp.replace("a=ice-ufrag", many + "a=ice-ufrag", 1))
    assert offer.sdp.count("a=candidate:") == MAX_CANDIDATES


@pytest.mark.parametrize(
    ("direction", "listens", "speaks"),
    [("recvonly", True, False), ("sendonly", False, True), ("inactive", False, False)],
)
def test_one_sided_offers_are_understood(direction: str, listens: bool, speaks: bool) -> None:
    """Who only listens, or only speaks, is told from its offer."""
    offer = read_offer(asyncio.run(_offer(direction)))
    assert (offer.listens, offer.speaks) == (listens, speaks)


def test_an_offer_without_a_data_channel_is_a_call_without_events() -> None:
    """It is answered all the same."""
    assert read_offer(asyncio.run(_offer(channel=False))).max_message_bytes is None


@pytest.mark.parametrize("bare", [False, True])
def test_a_data_channel_that_is_there_only_in_the_bundle_is_there(sdp: str, bare: bool) -> None:
    """`max-bundle` offers it with port 0, with or without what it shares with the sound (RFC 9143, RFC 9429)."""
    head, channel = sdp.split("m=application")
    kept = [line for line in channel.split("\r\n") if not (bare and line.startswith(SHARED))]
    bundled = head + "m=application" + "\r\n".join(kept).replace("a=mid", "a=bundle-only\r\na=mid")
    port = bundled.split("m=application ")[1].split(" ")[0]
    offer = read_offer(bundled.replace(f"m=application {port} ", "m=application 0 "))
    assert offer.max_message_bytes == MAX_MESSAGE_BYTES
    assert "m=application 9 " in offer.sdp
    assert [offer.sdp.count(line) for line in SHARED] == [read_offer(sdp).sdp.count(line) for line in SHARED]


def test_a_peer_that_wants_all_silence_is_understood(sdp: str) -> None:
    """Only who says ``usedtx=0`` has to be sent every frame of it."""
    assert read_offer(sdp).takes_pauses
    number = next(line for line in sdp.splitlines() if "opus" in line).split(":")[1].split(" ")[0]
    lines = [line for line in sdp.splitlines() if not line.startswith(f"a=fmtp:{number} ")]
    at = next(i for i, line in enumerate(lines) if "opus" in line) + 1
    for says, takes in (("usedtx=0", False), ("usedtx=1", True), ("minptime=10;useinbandfec=1", True)):
        offer = [*lines[:at], f"a=fmtp:{number} {says}", *lines[at:]]
        assert read_offer("\r\n".join(offer) + "\r\n").takes_pauses is takes


def test_g711_is_taken_where_opus_is_not_offered(sdp: str) -> None:
    """PCMU before PCMA; nothing in common is said so."""
    names = {codec.name for codec in RTCRtpSender.getCapabilities("audio").codecs}
    assert {"opus", "PCMU", "PCMA"} <= names
    assert read_offer(sdp.replace("opus/48000", "red/48000")).codec is SoundCodec.PCMU
    other = (
        sdp.replace("opus/48000", "red/48000")
        .replace("PCMU/8000", "L16/8000")
        .replace("PCMA/8000", "CN/8000")
    )
    assert "Opus, PCMU and PCMA" in refused(other)


def test_multicast_names_and_the_end_of_candidates_are_left_out(sdp: str) -> None:
    """Both would make ICE give up, or wait, for nothing; other candidates stay."""
    foundation = "a=candidate:1 1 udp 2113937151"
    odd = sdp + f"{foundation} 1f0d.local 50000 typ host\r\n{foundation} 192.0.2.7 50001 typ host\r\n"
    kept = read_offer(odd).sdp
    assert "a=end-of-candidates" in odd
    assert "a=end-of-candidates" not in kept
    assert ".local" not in kept
    assert "192.0.2.7" in kept


@pytest.mark.parametrize(
    ("broken", "word"),
    [
        (lambda sdp: "", "Expected an SDP offer"),
        (lambda sdp: "hello", "no audio m-line"),
        (lambda sdp: "v=x", "RFC 8866"),
        (lambda sdp: sdp.replace("UDP/TLS/RTP/SAVPF 96", "UDP/TLS/RTP/SAVPF opus"), "RFC 8866"),
        (lambda sdp: sdp.replace("a=rtpmap:96 opus/48000/2", "a=rtpmap:96"), "RFC 8866"),
        (lambda sdp: sdp + "a=fmtp:77 x=1\r\n", "RFC 8866"),
        (lambda sdp: "v=0\r\n" + sdp[sdp.index("m=application") :], "no audio m-line"),
        (lambda sdp: sdp.replace("m=audio", "m=video"), "no audio m-line"),
        (lambda sdp: sdp.replace("a=rtcp-mux\r\n", ""), "rtcp-mux"),
        (lambda sdp: sdp.replace("a=ice-pwd", "a=x"), "ICE"),
        (lambda sdp: sdp.replace("a=fingerprint", "a=x"), "DTLS"),
        (lambda sdp: sdp.replace("a=setup", "a=x"), "DTLS"),
        (lambda sdp: sdp.replace("a=group:BUNDLE 0 1\r\n", ""), "BUNDLE"),
        (lambda sdp: sdp.replace("a=mid:1", "a=mid:0"), "BUNDLE"),
        (lambda sdp: sdp.replace("m=application", "x=application"), "BUNDLE"),
        (lambda sdp: sdp.replace("a=mid:0\r\n", ""), "a=mid"),
        (lambda sdp: sdp + "x" * MAX_OFFER_BYTES, "longer"),
    ],
)
def test_an_offer_that_cannot_be_answered_is_refused_in_words(sdp: str, broken: object, word: str) -> None:
    """Each names the field `sdp` and what is missing."""
    assert callable(broken)
    assert word in refused(broken(sdp))


def test_pictures_and_second_tracks_are_refused() -> None:
    """One audio m-line and one data channel: what could not be served is not accepted."""
    assert "one" in refused(asyncio.run(_offer(audio=2)))
    assert "one" in refused(asyncio.run(_offer(video=True)))


@given(st.data())
def test_a_mangled_offer_is_read_or_refused(sdp: str, data: st.DataObject) -> None:
    """Whatever lines are lost, doubled or cut, nothing but `WireError` comes out."""
    lines = sdp.split("\r\n")
    for _ in range(data.draw(st.integers(1, 4))):
        index = data.draw(st.integers(0, len(lines) - 1))
        cut = data.draw(st.integers(0, 12))
        match data.draw(st.sampled_from(["drop", "double", "cut", "swap"])):
            case "drop" if len(lines) > 1:
                del lines[index]
            case "double":
                lines.insert(index, lines[index])
            case "cut":
                lines[index] = lines[index][:cut]
            case _:
                lines[index], lines[0] = lines[0], lines[index]
    with contextlib.suppress(WireError):
        read_offer("\r\n".join(lines))


def test_addresses_outside_are_added_to_host_candidates() -> None:
    """A router that maps one to one keeps the port; other candidates and everything else stay as they were."""
    host = "a=candidate:9a 1 udp 2130706431 10.0.0.5 40000 typ host"
    six = "a=candidate:9b 1 udp 2130706431 fd00::2 40000 typ host"
    reflexive = "a=candidate:9c 1 udp 1694498815 203.0.113.1 40000 typ srflx raddr 10.0.0.5 rport 40000"
    answer = "\r\n".join(["v=0", host, six, reflexive, "a=end-of-candidates"]) + "\r\n"
    added = add_addresses(answer, ("203.0.113.9",)).splitlines()
    assert added == [
        "v=0",
        host,
        "a=candidate:9a0 1 udp 2130706431 203.0.113.9 40000 typ host",
        six,
        reflexive,
        "a=end-of-candidates",
    ]
    assert add_addresses(answer, ()) == answer
