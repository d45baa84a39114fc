"""Reading SDP offers before anything is built on them, and what answers must contain (RFC 8866, RFC 9429)."""

from dataclasses import dataclass
from itertools import pairwise

from aiortc import sdp

from orchestrator.errors import WireError
from orchestrator.transports.rtp_order import SoundCodec

MAX_OFFER_BYTES = 64 * 1024
DEFAULT_MESSAGE_BYTES = 64 * 1024
"""What a peer takes on its data channel if it does not say (RFC 8841 §6.1)."""

MAX_MESSAGE_BYTES = 256 * 1024
"""What we send at most to a peer that takes anything."""

MAX_CANDIDATES = 32
"""Addresses of an offer that are tried. Browsers name a dozen; each one costs some 50 packets to wherever it points."""

# What aiortc raises, one or the other, on text that is not SDP, or SDP that does not fit together.
SDP_ERRORS = (
    AssertionError,
    AttributeError,
    IndexError,
    KeyError,
    OverflowError,
    StopIteration,
    TypeError,
    ValueError,
)
_FINGERPRINTS = {"sha-256", "sha-384", "sha-512"}
_MDNS = ".local"
_DIRECTIONS = ("a=sendrecv", "a=sendonly", "a=recvonly", "a=inactive")
_BUNDLE_ONLY = "a=bundle-only"
_OF_THE_TRANSPORT = (
    "a=ice-ufrag:",
    "a=ice-pwd:",
    "a=ice-options:",
    "a=fingerprint:",
    "a=setup:",
    "a=rtcp-mux",
)


@dataclass(frozen=True, slots=True)
class Offer:
    """An offer that can be answered. `sdp` is what the peer connection gets to see: candidates that only multicast
    DNS could resolve, those over `MAX_CANDIDATES`, and the end of candidates are left out, since the peer's own checks
    show where it is; the direction of the sound, which need not be said, is there.

    `listens`: the client wants sound. `speaks`: it sends sound. `max_message_bytes`: the longest event it takes; None
    without a data channel. `takes_pauses`: silence need not be sent to it, since it does not say that it wants it
    (``usedtx=0``, RFC 7587 §6.1).
    """

    sdp: str
    codec: SoundCodec
    listens: bool
    speaks: bool
    max_message_bytes: int | None
    takes_pauses: bool = True


def _refuse(message: str) -> WireError:
    return WireError("invalid_value", f"Invalid SDP offer: {message}", "sdp")


def read_offer(text: str) -> Offer:
    """Returns what matters of an offer. Raises `WireError` on ``sdp`` if it cannot be answered."""
    if not text.strip():
        raise WireError("missing_required_parameter", "Expected an SDP offer.", "sdp")
    if len(text) > MAX_OFFER_BYTES:
        raise _refuse(f"longer than {MAX_OFFER_BYTES} characters.")
    text = _without_unusable(text)
    try:
        parsed = sdp.SessionDescription.parse(text)
    except SDP_ERRORS as error:
        raise _refuse("it is not SDP as RFC 8866 describes it.") from error
    audio = _only(parsed, "audio")
    application = _only(parsed, "application")
    if audio is None:
        raise _refuse("it has no audio m-line; add an audio track or transceiver before createOffer().")
    if len(parsed.media) > 1 + (application is not None):
        raise _refuse("only one audio m-line and one data channel m-line are supported.")
    for media in parsed.media:
        _check_transport(media)
    _check_bundle(parsed)
    direction = audio.direction or "sendrecv"
    return Offer(
        sdp=text,
        codec=_first_codec(audio),
        listens=direction in ("sendrecv", "recvonly"),
        speaks=direction in ("sendrecv", "sendonly"),
        max_message_bytes=None if application is None else _message_bytes(application),
        takes_pauses=all(codec.parameters.get("usedtx") not in (0, "0") for codec in audio.rtp.codecs),
    )


def add_addresses(answer: str, addresses: tuple[str, ...]) -> str:
    """Returns an answer that names each host candidate under these addresses too: those under which a router in front
    of this machine (one-to-one NAT) is known outside."""
    lines = []
    for line in answer.splitlines():
        lines.append(line)
        fields = line.split(" ")
        if line.startswith("a=candidate:") and len(fields) >= 8 and fields[7] == "host" and "." in fields[4]:
            for number, address in enumerate(addresses):
                outside = [*fields]
                outside[0] = f"{fields[0]}{number}"
                outside[4] = address
                lines.append(" ".join(outside))
    return "\r\n".join(lines) + "\r\n"


def _without_unusable(text: str) -> str:
    """A peer that is to be waited for must not say that no candidates follow; multicast names would be resolved for a
    second, on a port that may be taken; names of streams are of no use here."""
    kept, candidates = [], 0
    for line in text.replace("\r\n", "\n").strip().split("\n"):
        candidates += line.startswith("a=candidate:")
        if not _is_unusable(line) and not (line.startswith("a=candidate:") and candidates > MAX_CANDIDATES):
            kept.append(line)
    return "\r\n".join(_with_direction(_with_ports(kept))) + "\r\n"


def _sections(lines: list[str]) -> tuple[list[str], list[list[str]]]:
    """Returns the lines before the first m-line, and those of each m-line."""
    starts = [number for number, line in enumerate(lines) if line.startswith("m=")]
    first = starts[0] if starts else len(lines)
    return lines[:first], [lines[start:stop] for start, stop in pairwise([*starts, len(lines)])]


def _with_ports(lines: list[str]) -> list[str]:
    """Writes m-lines that are there only as part of a bundle as the parser knows them: `max-bundle` offers them with
    port 0, which else means that they are refused, and may leave out what they share (RFC 9143 §6, RFC 9429 §5.2.1)."""
    result, sections = _sections(lines)
    shared: list[str] = []
    for section in sections:
        kind, _, rest = section[0].partition(" ")
        if _BUNDLE_ONLY in section and rest.startswith("0 "):
            said = {line.partition(":")[0] for line in section}
            section = [f"{kind} 9{rest[1:]}", *(line for line in section[1:] if line != _BUNDLE_ONLY)]
            section += [line for line in shared if line.partition(":")[0] not in said]
        shared = shared or [line for line in section if line.startswith(_OF_THE_TRANSPORT)]
        result += section
    return result


def _with_direction(lines: list[str]) -> list[str]:
    """Says for the sound what holds where nothing is said: the whole session's direction, else both (RFC 8866 §6.7)."""
    result, sections = _sections(lines)
    default = next((line for line in result if line in _DIRECTIONS), _DIRECTIONS[0])
    for section in sections:
        said = any(line in _DIRECTIONS for line in section)
        result += section if said or not section[0].startswith("m=audio") else [*section, default]
    return result


def _is_unusable(line: str) -> bool:
    if line.startswith("a=candidate:"):
        fields = line.split()
        return len(fields) > 4 and fields[4].endswith(_MDNS)
    return line.startswith(("a=end-of-candidates", "a=msid:"))


def _only(parsed: sdp.SessionDescription, kind: str) -> sdp.MediaDescription | None:
    found = [media for media in parsed.media if media.kind == kind and media.port != 0]
    if len(found) > 1:
        raise _refuse(f"it has {len(found)} m-lines of kind {kind}; one is supported.")
    return found[0] if found else None


def _check_transport(media: sdp.MediaDescription) -> None:
    if media.ice is None or not media.ice.usernameFragment or not media.ice.password:
        raise _refuse(f"the {media.kind} m-line has no ICE user name and password.")
    if media.dtls is None or not any(f.algorithm.lower() in _FINGERPRINTS for f in media.dtls.fingerprints):
        raise _refuse(f"the {media.kind} m-line has no DTLS set-up and fingerprint.")
    if media.kind == "audio" and not media.rtcp_mux:
        raise _refuse("the audio m-line does not multiplex RTCP (a=rtcp-mux).")
    if not media.rtp.muxId:
        raise _refuse(f"the {media.kind} m-line has no a=mid.")


def _check_bundle(parsed: sdp.SessionDescription) -> None:
    names = {media.rtp.muxId for media in parsed.media}
    bundled = {name for group in parsed.group if group.semantic == "BUNDLE" for name in group.items}
    if not bundled <= names:
        raise _refuse("a=group:BUNDLE names an m-line that is not there.")
    if len(names) != len(parsed.media) or (len(names) > 1 and not names <= bundled):
        raise _refuse("audio and data channel must be bundled (a=group:BUNDLE).")


def _first_codec(audio: sdp.MediaDescription) -> SoundCodec:
    for codec in SoundCodec:  # our order of preference
        for offered in audio.rtp.codecs:
            if offered.name.lower() == codec.value.lower() and offered.clockRate == codec.clock_hz:
                return codec
    raise _refuse("no common audio codec; supported are Opus, PCMU and PCMA.")


def _message_bytes(application: sdp.MediaDescription) -> int:
    capabilities = application.sctpCapabilities
    if capabilities is None:
        return DEFAULT_MESSAGE_BYTES
    return min(capabilities.maxMessageSize or MAX_MESSAGE_BYTES, MAX_MESSAGE_BYTES)
