"""How long sound takes into the session's hands on a line that was bad and is clear again, ours beside aiortc's buffer.

On virtual time, so that a delay is a rule's and not a machine's; `chorale bench network` measures it on real calls.
"""

import asyncio
import statistics
from collections.abc import Iterator

import pytest
from aiortc.jitterbuffer import JitterBuffer
from aiortc.rtp import RtpPacket
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.network_delay import BAD
from benchmarks.network_faults import CLEAR, CUT, Conditions, Line
from modalities.ports import Pcm
from orchestrator.transports.receive import ReceiveSettings, SoundReceiver
from orchestrator.transports.rtp_order import Packet, SoundCodec
from orchestrator.transports.sound_codecs import OpusEncoder
from tests import virtual_time
from tests.fakes.session_port import RingIntake

FRAME_S = 0.02
CAPACITY, PREFETCH = 16, 4
"""What `aiortc.RTCRtpReceiver` gives its buffer for sound."""

Sent = tuple[int, float]
"""A frame's number and when it arrives."""


def sent(line: Line, stages: list[tuple[int, Conditions]]) -> Iterator[Sent]:
    """Yields what arrives of frames sent every 20 ms while stages of so many frames pass, in order of arrival."""
    arrivals: list[tuple[float, int]] = []
    number = 0
    for count, conditions in stages:
        line.conditions = conditions
        for _ in range(count):
            arrivals += [(at_s, number) for at_s in line.carry(80, number * FRAME_S)]
            number += 1
    for at_s, frame in sorted(arrivals):
        yield frame, at_s


class TimedIntake(RingIntake):
    """Notes when each frame was there: all of it but the millisecond that a resampler holds back."""

    def __init__(self) -> None:
        super().__init__()
        self.at_s: dict[int, float] = {}

    def append_at(self, position: int, pcm: Pcm) -> None:
        super().append_at(position, pcm)
        now_s = asyncio.get_running_loop().time()
        for frame in range(position // 320, (position + len(pcm) + 32) // 320):
            self.at_s.setdefault(frame, now_s)


def our_delays(arrivals: list[Sent]) -> dict[int, float]:
    """Returns each frame's delay in ms through our receiver."""

    async def main() -> TimedIntake:
        intake, encoder = TimedIntake(), OpusEncoder()
        receiver = SoundReceiver(intake, virtual_time.VirtualClock(), ReceiveSettings())
        loop, payload = asyncio.get_running_loop(), encoder.encode(None)
        for frame, at_s in arrivals:
            await asyncio.sleep(at_s - loop.time())
            number, stamp = (65_000 + frame) % (1 << 16), (frame * 960 + 4_294_000_000) % (1 << 32)
            receiver.receive(Packet(1, number, stamp, SoundCodec.OPUS, payload, round(at_s * 1e6)))
        await asyncio.sleep(1)
        receiver.close()
        return intake

    at_s = virtual_time.run(main()).at_s
    return {
        frame: (at_s[frame] - frame * FRAME_S) * 1_000
        for frame in {frame for frame, _ in arrivals}
        if frame in at_s
    }


def bare_delays(arrivals: list[Sent]) -> dict[int, float]:
    """The same through the buffer of aiortc's receiver, decoding free of charge."""
    buffer, delays_ms = JitterBuffer(capacity=CAPACITY, prefetch=PREFETCH), {}
    for number, at_s in arrivals:
        packet = RtpPacket(sequence_number=number % (1 << 16), timestamp=number * 960)
        packet._data = b"x"  # type: ignore[attr-defined]
        _, frame = buffer.add(packet)
        if frame is not None:
            delays_ms[frame.timestamp // 960] = (at_s - frame.timestamp // 960 * FRAME_S) * 1_000
    return delays_ms


def median(delays_ms: dict[int, float], start: int, stop: int) -> float:
    return statistics.median(delays_ms[frame] for frame in range(start, stop) if frame in delays_ms)


@pytest.mark.parametrize("seed", range(4))
def test_the_delay_returns_to_its_base_after_loss_and_a_jitter_buffers_does_not(seed: int) -> None:
    """4 s on a clear line, 20 s with 5 % loss, 60 ms of jitter, swaps and doubles, 8 s on a clear one: ours is what it
    was in the first second of the last stage already, at 20 ms at most; aiortc's stays over twice its base."""
    arrivals = list(sent(Line(seed), [(200, CLEAR), (1_000, BAD), (400, CLEAR)]))
    ours, theirs = our_delays(arrivals), bare_delays(arrivals)
    assert median(ours, 0, 200) <= 20
    assert median(ours, 1_210, 1_250) == pytest.approx(median(ours, 0, 200), abs=1)
    assert max(ours[frame] for frame in range(1_210, 1_595)) <= 21
    assert median(ours, 200, 1_200) < 100
    assert median(theirs, 1_250, 1_600) > 2 * median(theirs, 0, 200) > 100


def test_every_delay_on_a_bad_line_is_the_lines_and_the_hold() -> None:
    """Nothing that arrives in time for its turn is handed on later than the hold (60 ms) and a batch (40 ms) after."""
    arrivals = list(sent(Line(9), [(50, CLEAR), (3_000, BAD)]))
    at_ms = {frame: at_s * 1_000 - frame * 20 for frame, at_s in reversed(arrivals)}
    ours = our_delays(arrivals)
    assert max(ours[frame] - at_ms[frame] for frame in ours) <= 100 + 1


conditions = st.builds(
    Conditions,
    loss=st.floats(0, 0.4),
    burst=st.sampled_from([None, 3.0, 12.0]),
    delay_s=st.floats(0, 0.2),
    jitter_s=st.floats(0, 0.1),
    swapped=st.floats(0, 0.3),
    swap_s=st.floats(0, 0.4),
    doubled=st.floats(0, 0.3),
    double_s=st.floats(0, 1),
)


@settings(max_examples=15)
@given(
    st.lists(st.tuples(st.integers(1, 200), st.one_of(st.just(CUT), conditions)), max_size=5),
    st.integers(0, 99),
)
def test_after_any_line_sound_is_at_its_place_and_at_its_time(
    stages: list[tuple[int, Conditions]], seed: int
) -> None:
    """Whatever the line did (outages of up to 20 s among it): a second after it is clear, every frame is there at once,
    and the stream is as long as the time that has passed."""
    total = 50 + sum(count for count, _ in stages)
    arrivals = list(sent(Line(seed), [(50, CLEAR), *stages, (200, CLEAR)]))
    ours = our_delays(arrivals)
    assert max(ours) == total + 199
    assert max(ours[frame] for frame in range(total + 70, total + 195)) <= 21
