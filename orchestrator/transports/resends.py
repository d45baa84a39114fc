"""Asking a client for lost packets again (RFC 4585 §6.2.1): which clients are asked, and for which packets (heart).

A client is asked where its offer says that it can be (``a=rtcp-fb:… nack`` for the codec). Browsers say so of pictures,
and of sound where a program asks them to.
"""

from dataclasses import dataclass

from orchestrator.clock import US_PER_MS
from orchestrator.transports.rtp_order import SEQUENCES, Packet, SoundCodec

HOLD_MS = 200
"""How long the sound of such a client waits behind a hole: two round trips of a usual line."""

ASK_AGAIN_US = 80 * US_PER_MS
MAX_ASKED = 3
MAX_MISSING = 32
"""A longer hole is an outage, or a sender that began anew, and nothing is asked for."""


def resends(offer: str) -> frozenset[str]:
    """Returns the payload types (``*`` is all) of which an offer says that lost packets are sent again."""
    return frozenset(
        line.removeprefix("a=rtcp-fb:").split()[0]
        for line in _audio_lines(offer)
        if line.startswith("a=rtcp-fb:") and line.split()[1:] == ["nack"]
    )


def can_be_asked(offer: str, codec: SoundCodec) -> bool:
    """Tells whether an offer says that what is lost of this codec is sent again."""
    kinds = resends(offer)
    ours = {
        line.removeprefix("a=rtpmap:").split()[0]
        for line in _audio_lines(offer)
        if line.startswith("a=rtpmap:") and f" {codec.value}/".lower() in line.lower()
    }
    return "*" in kinds or not kinds.isdisjoint(ours)


def with_resends(answer: str, offer: str) -> str:
    """Returns an answer that takes up what the offer says of lost packets."""
    offered, lines = resends(offer), []
    audio = set(_audio_lines(answer))
    for line in answer.splitlines():
        lines.append(line)
        kind = line.removeprefix("a=rtpmap:").split()[0] if line.startswith("a=rtpmap:") else ""
        if line in audio and kind and (kind in offered or "*" in offered):
            lines.append(f"a=rtcp-fb:{kind} nack")
    return "\r\n".join(lines) + "\r\n"


def _audio_lines(sdp: str) -> list[str]:
    found, inside = [], False
    for line in sdp.splitlines():
        if line.startswith("m="):
            inside = line.startswith("m=audio")
        if inside:
            found.append(line)
    return found


@dataclass(slots=True)
class _Asked:
    since_us: int
    last_us: int
    times: int = 1


class Missing:
    """Remembers what is missing of one sender, at most `MAX_MISSING` packets, for as long as it is waited for."""

    def __init__(self, hold_us: int = HOLD_MS * US_PER_MS) -> None:
        self._hold_us = hold_us
        self._source: int | None = None
        self._next = 0
        self._asked: dict[int, _Asked] = {}

    def add(self, packet: Packet) -> list[int]:
        """Takes a packet as it arrives; returns the numbers to ask for now, in order."""
        now_us = packet.arrived_us
        ahead = (packet.sequence - self._next) % SEQUENCES
        if packet.source != self._source or MAX_MISSING < ahead < SEQUENCES - MAX_MISSING:
            self._source, self._next = packet.source, (packet.sequence + 1) % SEQUENCES
            self._asked.clear()
            return []
        if ahead >= SEQUENCES // 2:
            self._asked.pop(packet.sequence, None)
            ahead = -1
        new = [(self._next + number) % SEQUENCES for number in range(ahead)] if ahead > 0 else []
        self._next = (self._next + ahead + 1) % SEQUENCES
        wanted = self._again(now_us) + new[: max(0, MAX_MISSING - len(self._asked))]
        self._asked |= {number: _Asked(now_us, now_us) for number in wanted if number not in self._asked}
        return wanted

    def _again(self, now_us: int) -> list[int]:
        for number in [n for n, one in self._asked.items() if now_us - one.since_us >= self._hold_us]:
            del self._asked[number]
        due = [
            (number, one)
            for number, one in self._asked.items()
            if now_us - one.last_us >= ASK_AGAIN_US and one.times < MAX_ASKED
        ]
        for _, one in due:
            one.last_us, one.times = now_us, one.times + 1
        return [number for number, _ in due]
