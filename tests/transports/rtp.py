"""A sender of RTP made of numbers: 20 ms of Opus (CELT) per packet unless said otherwise."""

from dataclasses import dataclass

from orchestrator.transports.rtp_order import Packet, SoundCodec

FRAME_US = 20_000
CELT_20_MS = b"\xf8payload"
CELT_10_MS = b"\xf0payload"
SILK_20_MS = b"\x08payload"


@dataclass
class Sender:
    """Numbers its packets as RFC 3550 says; `skip_us` lets its clock run without a packet."""

    source: int = 1
    sequence: int = 100
    timestamp: int = 5_000
    codec: SoundCodec = SoundCodec.OPUS
    payload: bytes = CELT_20_MS
    at_us: int = 1_000_000

    def next(self, delay_us: int = 0) -> Packet:
        """Returns the next packet, arriving `delay_us` after its time."""
        packet = Packet(
            self.source,
            self.sequence % (1 << 16),
            self.timestamp % (1 << 32),
            self.codec,
            self.payload,
            self.at_us + delay_us,
        )
        self.sequence += 1
        self._pass(FRAME_US)
        return packet

    def many(self, count: int) -> list[Packet]:
        """Returns the next packets, each at its time."""
        return [self.next() for _ in range(count)]

    def lose(self, count: int = 1) -> None:
        """Sends packets that never arrive."""
        self.many(count)

    def pause(self, duration_us: int) -> None:
        """Sends nothing for a while; sequence numbers stay, time stamps go on (DTX, a muted client)."""
        self._pass(duration_us)

    def _pass(self, duration_us: int) -> None:
        self.at_us += duration_us
        self.timestamp += duration_us * self.codec.clock_hz // 1_000_000
