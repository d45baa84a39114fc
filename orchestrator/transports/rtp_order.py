"""RTP packets back in the order of their sequence numbers, waiting a little for stragglers (RFC 3550 appendix A.1).

There is no play-out deadline on the listening side: sound is placed by its time stamps. So a packet in order leaves at
once, and only a hole makes its followers wait, at most `hold_us`. After that the delay is zero again.
"""

from dataclasses import dataclass
from enum import Enum

MAX_MISORDER = 100
MAX_DROPOUT = 3_000
"""Sequence numbers further back or ahead than these belong to a sender that began anew, if its next packet agrees."""

LEFT_SOURCE_REST_US = 500_000
"""For so long packets of a source that was left are stragglers, not a way back to it."""

SEQUENCES = 1 << 16


class SoundCodec(Enum):
    """How the payload is coded; the value is the name in SDP."""

    OPUS = "opus"
    PCMU = "PCMU"
    PCMA = "PCMA"

    @property
    def clock_hz(self) -> int:
        """Ticks of the RTP time stamp per second (RFC 7587: always 48 kHz for Opus)."""
        return 48_000 if self is SoundCodec.OPUS else 8_000


@dataclass(frozen=True, slots=True)
class Packet:
    """One RTP packet. `sequence` has 16 bits, `timestamp` 32 bits in ticks of the codec; both wrap around."""

    source: int
    sequence: int
    timestamp: int
    codec: SoundCodec
    payload: bytes
    arrived_us: int


@dataclass(frozen=True, slots=True)
class Ordered:
    """A packet whose turn it is. `missing` packets before it are lost; `fresh`: the sender began anew."""

    packet: Packet
    missing: int = 0
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class OrderStatistics:
    """Packets counted since the call began. `late`: after their turn, or a second time."""

    received: int
    lost: int
    late: int
    restarts: int


class PacketOrder:
    """Holds packets behind a hole for `hold_us` at most, and `capacity` packets at most (then the hole is lost)."""

    def __init__(self, hold_us: int = 60_000, capacity: int = 128) -> None:
        self._hold_us = hold_us
        self._capacity = capacity
        self._held: dict[int, Packet] = {}
        self._source: int | None = None
        self._left: tuple[int, int] | None = None
        self._next = 0
        self._suspect: int | None = None
        self._received = self._lost = self._late = self._restarts = 0

    @property
    def due_us(self) -> int | None:
        """When `release` has something to do; None while nothing is held."""
        if not self._held:
            return None
        return min(packet.arrived_us for packet in self._held.values()) + self._hold_us

    def receive(self, packet: Packet) -> tuple[Ordered, ...]:
        """Takes a packet in; returns those whose turn it is now."""
        if self._left is not None and packet.source == self._left[0] and packet.arrived_us < self._left[1]:
            self._late += 1
            return ()
        self._received += 1
        if packet.source != self._source:
            return self._begin(packet)
        ahead = (packet.sequence - self._next) % SEQUENCES
        if ahead >= SEQUENCES // 2:
            ahead -= SEQUENCES
        if ahead < -MAX_MISORDER or ahead > MAX_DROPOUT:
            return self._doubt(packet)
        self._suspect = None
        if ahead < 0 or self._next + ahead in self._held:
            self._late += 1
            return ()
        self._held[self._next + ahead] = packet
        if ahead == 0:
            return tuple(self._run(missing=0))
        return self.release(packet.arrived_us) if len(self._held) <= self._capacity else self._give_up()

    def release(self, now_us: int) -> tuple[Ordered, ...]:
        """Gives up on what has been waited for long enough; returns what that lets go."""
        out: tuple[Ordered, ...] = ()
        while (due := self.due_us) is not None and due <= now_us:
            out += self._give_up()
        return out

    def statistics(self) -> OrderStatistics:
        """Returns the counters."""
        return OrderStatistics(self._received, self._lost, self._late, self._restarts)

    def _begin(self, packet: Packet) -> tuple[Ordered, ...]:
        """Starts with a new source or numbering; what was held of the old one goes first."""
        out: tuple[Ordered, ...] = ()
        while self._held:
            out += self._give_up()
        if self._source is not None:
            self._restarts += 1
            if packet.source != self._source:
                self._left = (self._source, packet.arrived_us + LEFT_SOURCE_REST_US)
        self._source = packet.source
        self._suspect = None
        self._next = packet.sequence + 1
        return (*out, Ordered(packet, fresh=True))

    def _doubt(self, packet: Packet) -> tuple[Ordered, ...]:
        """Drops a packet from far away, unless it follows one like it."""
        if packet.sequence == self._suspect:
            return self._begin(packet)
        self._suspect = (packet.sequence + 1) % SEQUENCES
        self._late += 1
        return ()

    def _give_up(self) -> tuple[Ordered, ...]:
        first = min(self._held)
        missing = first - self._next
        self._lost += missing
        self._next = first
        return tuple(self._run(missing))

    def _run(self, missing: int) -> list[Ordered]:
        out = []
        while (packet := self._held.pop(self._next, None)) is not None:
            out.append(Ordered(packet, missing))
            self._next += 1
            missing = 0
        return out
