"""What a receiver reports to the sender of RTP: loss and jitter (RFC 3550 §6.4.1, appendix A.3 and A.8)."""

from dataclasses import dataclass

from orchestrator.clock import US_PER_S
from orchestrator.transports.rtp_order import SEQUENCES, Packet
from orchestrator.transports.rtp_placement import TICKS


@dataclass(frozen=True, slots=True)
class Reception:
    """One report. `fraction_lost` in 1/256 since the last report, `jitter` in ticks of the codec's clock."""

    source: int
    fraction_lost: int
    packets_lost: int
    highest_sequence: int
    jitter: int


class ReceptionCounter:
    """Counts the packets of the source that was heard last."""

    def __init__(self) -> None:
        self._source: int | None = None
        self._begin(0)

    def _begin(self, sequence: int) -> None:
        self._base = self._highest = sequence
        self._received = 0
        self._expected_before = self._received_before = 0
        self._jitter_16 = 0
        self._transit: int | None = None

    def add(self, packet: Packet) -> None:
        """Counts a packet as it arrives, in whatever order."""
        if packet.source != self._source:
            self._source = packet.source
            self._begin(packet.sequence)
        ahead = (packet.sequence - self._highest) % SEQUENCES
        if ahead < SEQUENCES // 2:
            self._highest += ahead
        self._received += 1
        transit = packet.arrived_us * packet.codec.clock_hz // US_PER_S - packet.timestamp
        if self._transit is not None:
            moved = abs((transit - self._transit + TICKS // 2) % TICKS - TICKS // 2)
            if moved < packet.codec.clock_hz:  # more is a pause or a new numbering, not jitter
                self._jitter_16 += moved - ((self._jitter_16 + 8) >> 4)
        self._transit = transit

    def report(self) -> Reception | None:
        """Returns the report since the last one; None before the first packet."""
        if self._source is None:
            return None
        expected = self._highest - self._base + 1
        expected_now, received_now = expected - self._expected_before, self._received - self._received_before
        self._expected_before, self._received_before = expected, self._received
        lost_now = expected_now - received_now
        fraction = (lost_now << 8) // expected_now if expected_now > 0 and lost_now > 0 else 0
        lost = max(-(1 << 23), min((1 << 23) - 1, expected - self._received))
        highest = self._highest % TICKS
        return Reception(self._source, min(fraction, 255), lost, highest, self._jitter_16 >> 4)
