"""From packets to the session's stream, on virtual time: places, batches, holes, stalls and faults."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from modalities.ports import Pcm
from orchestrator.observability.faults import FAULTS
from orchestrator.transports.receive import STALL_MARGIN, ReceiveSettings, SoundReceiver
from orchestrator.transports.rtp_order import Packet, SoundCodec
from orchestrator.transports.sound_codecs import OpusEncoder
from orchestrator.transports.tracks import FRAME_SAMPLES, RATE_HZ
from tests import virtual_time
from tests.fakes.session_port import RingIntake
from tests.transports.rtp import Sender

S = 16_000
Extents = list[tuple[float, float]]
Story = Callable[["Line"], Awaitable[None]]


class Line:
    """A sender of real Opus on virtual time, and the receiver at its other end."""

    def __init__(self, settings: ReceiveSettings | None = None, base: int = 0) -> None:
        self.intake = RingIntake()
        if base:
            self.intake.append(np.zeros(base, np.int16))
        self.clock = virtual_time.VirtualClock()
        self.receiver = SoundReceiver(self.intake, self.clock, settings or ReceiveSettings())
        self.sender = Sender()
        self._encoder = OpusEncoder()
        self._tone = self._frames()

    async def send(self, frames: int, loud: bool = True, lose: bool = False) -> None:
        """Sends in real time; a lost packet is coded and numbered all the same."""
        for _ in range(frames):
            packet = self.packet(loud)
            if not lose:
                self.receiver.receive(packet)
            await asyncio.sleep(0.02)

    def packet(self, loud: bool = True) -> Packet:
        """Returns the next packet as if it arrived now."""
        self.sender.payload = self._encoder.encode(next(self._tone) if loud else None)
        packet = self.sender.next()
        return Packet(
            packet.source,
            packet.sequence,
            packet.timestamp,
            packet.codec,
            packet.payload,
            self.clock.now_us(),
        )

    def heard(self) -> Pcm:
        """Returns everything that the session got."""
        buffer = self.intake.buffer
        return np.frombuffer(buffer.extent(buffer.oldest, buffer.position), np.int16)

    def loud(self) -> Extents:
        """Returns where there is sound, in seconds, gaps under 15 ms bridged."""
        at = np.nonzero(np.abs(self.heard().astype(int)) > 500)[0]
        if len(at) == 0:
            return []
        breaks = np.nonzero(np.diff(at) > 240)[0]
        starts, stops = np.concatenate([at[:1], at[breaks + 1]]), np.concatenate([at[breaks], at[-1:]])
        return [(start / S, stop / S) for start, stop in zip(starts, stops, strict=True)]

    @staticmethod
    def _frames() -> Iterator[bytes]:
        number = 0
        while True:
            at = (number * FRAME_SAMPLES + np.arange(FRAME_SAMPLES)) / RATE_HZ
            yield (8_000 * np.sin(2 * np.pi * 440 * at)).astype("<i2").tobytes()
            number += 1


def assert_near(extents: Extents, expected: Extents, within_s: float) -> None:
    assert len(extents) == len(expected), extents
    for extent, wanted in zip(extents, expected, strict=True):
        assert extent == pytest.approx(wanted, abs=within_s), extents


def play(story: Story, settings: ReceiveSettings | None = None, base: int = 0) -> Line:
    async def main() -> Line:
        line = Line(settings, base)
        await story(line)
        line.receiver.close()
        return line

    return virtual_time.run(main())


def test_sound_is_handed_on_in_pieces_of_about_40_ms() -> None:
    """Two packets make a piece; nothing waits longer than its batch, also at the end of the sound."""

    async def story(line: Line) -> None:
        await line.send(50)
        await asyncio.sleep(0.05)
        assert line.intake.position == S - 16  # what the resampler holds back

    line = play(story)
    assert line.intake.position == S
    assert len(line.intake.pieces) == 26
    assert all(size <= 640 for _, size in line.intake.pieces)


def test_the_stream_begins_where_the_session_is() -> None:
    """Positions count from what the session has already."""
    line = play(lambda line: line.send(10), base=5_000)
    assert line.intake.pieces[0][0] == 5_000
    assert line.intake.position == 5_000 + 3_200


def test_a_pause_of_the_sender_is_marked_silence_of_its_length() -> None:
    """DTX: 300 ms without packets are 300 ms of gap, and sound goes on at its time (F-S2)."""

    async def story(line: Line) -> None:
        await line.send(25)
        line.sender.pause(300_000)
        await asyncio.sleep(0.3)
        await line.send(25)

    line = play(story)
    assert line.intake.buffer.gaps == ((8_000, 12_800),)
    assert_near(line.loud(), [(0.003, 0.5), (0.8, 1.3)], 0.01)


def test_a_burst_after_a_stall_is_placed_and_not_appended() -> None:
    """2 s of nothing, then 100 packets at once: the total is the wall time (F-S2)."""

    async def story(line: Line) -> None:
        await line.send(50)
        await asyncio.sleep(2)
        for _ in range(100):
            line.receiver.receive(line.packet())
        await line.send(50)

    line = play(story)
    assert line.intake.position == 4 * S
    assert line.intake.buffer.gaps == ()
    assert_near(line.loud(), [(0.003, 4.0)], 0.01)


def test_a_lost_packet_is_concealed_and_delays_nothing_for_long() -> None:
    """60 ms after the loss the session has everything again; the tone has no hole."""

    async def story(line: Line) -> None:
        await line.send(20)
        await line.send(1, lose=True)
        await line.send(5)
        assert line.intake.position >= 24 * 320

    line = play(story)
    assert_near(line.loud(), [(0.003, 0.52)], 0.01)
    statistics = line.receiver.statistics()
    assert (statistics.order.lost, statistics.concealed) == (1, 1)


def test_a_straggler_within_the_hold_is_heard_at_its_place() -> None:
    """Swapped packets are swapped back; nothing is guessed."""

    async def story(line: Line) -> None:
        await line.send(10)
        first, second = line.packet(), line.packet()
        line.receiver.receive(second)
        await asyncio.sleep(0.04)
        line.receiver.receive(first)
        await line.send(10)

    line = play(story)
    assert line.intake.position == 22 * 320
    assert line.receiver.statistics().concealed == 0


def test_a_packet_that_is_no_opus_is_silence_of_its_length() -> None:
    """Two frames that share an odd byte. The place of what follows is not moved, and the fault is counted."""

    async def story(line: Line) -> None:
        await line.send(10)
        broken = line.packet()
        line.receiver.receive(
            Packet(
                broken.source,
                broken.sequence,
                broken.timestamp,
                broken.codec,
                b"\xf1\x01",
                broken.arrived_us,
            )
        )
        await line.send(10)

    line = play(story)
    assert line.receiver.statistics().broken == 1
    assert line.intake.position == 21 * 320
    assert line.loud()[-1][1] == pytest.approx(line.intake.position / S, abs=0.01)


def test_a_sender_that_stopped_has_its_time_filled_with_silence() -> None:
    """After `stall_ms` the stream follows the clock, so that speech that was open ends; later sound is at its time."""

    async def story(line: Line) -> None:
        await line.send(50)
        await asyncio.sleep(2.9)
        assert line.intake.position < S + 400
        await asyncio.sleep(0.2)
        assert line.intake.position == pytest.approx(4 * S - STALL_MARGIN, abs=800)
        await asyncio.sleep(3)
        assert line.intake.position == pytest.approx(7 * S - STALL_MARGIN, abs=S)
        line.sender.pause(6_100_000)
        await line.send(50)

    line = play(story)
    assert_near(line.loud(), [(0.003, 1.0), (7.1, 8.1)], 0.02)
    assert line.receiver.statistics().stalls >= 3


@pytest.mark.parametrize(("frames", "stop"), [(25, 0.26), (200, 0.2)])
def test_sound_from_before_a_long_loss_is_not_heard_behind_it(frames: int, stop: float) -> None:
    """A tone breaks off in a loss of 0.5 s, or of 4 s (a stall), and silence follows: all that is heard after the last
    packet of the tone is the guess of 60 ms, if any. A decoder that remembers would begin with the tone again."""

    async def story(line: Line) -> None:
        await line.send(10)
        await line.send(frames, loud=False, lose=True)
        await line.send(25, loud=False)

    line = play(story)
    assert_near(line.loud(), [(0.003, stop)], 0.01)


def test_the_first_packets_after_a_stall_are_heard_although_they_come_late() -> None:
    """The line answers again with packets 60 ms late, then 40, then 20: filled silence has not taken their places."""

    async def story(line: Line) -> None:
        await line.send(50)
        line.sender.pause(2_940_000)
        late = [line.packet() for _ in range(3)]
        await asyncio.sleep(3.0)
        for packet in late:
            line.receiver.receive(replace(packet, arrived_us=line.clock.now_us()))
        await line.send(20)

    line = play(story)
    statistics = line.receiver.statistics()
    assert (statistics.stalls, statistics.misplaced) == (1, 0)
    assert_near(line.loud(), [(0.003, 1.0), (3.94, 4.4)], 0.02)


def test_sound_for_a_time_that_was_filled_is_not_even_decoded() -> None:
    """A burst after the stall catches up; what it says of the filled time is counted as misplaced."""

    async def story(line: Line) -> None:
        await line.send(50)
        await asyncio.sleep(3.5)
        filled = line.intake.position
        assert filled > 3 * S
        for _ in range(175):
            line.receiver.receive(line.packet())
        await line.send(50)

    line = play(story)
    assert line.receiver.statistics().misplaced >= 90
    assert line.intake.position == pytest.approx(5.5 * S, abs=320)


def test_the_last_packet_behind_a_hole_is_not_forgotten() -> None:
    """Also where nothing follows it: it is handed on when the hold and the batch are over."""

    async def story(line: Line) -> None:
        await line.send(10)
        await line.send(1, lose=True)
        await line.send(1)
        await asyncio.sleep(0.11)
        assert line.intake.position == 12 * 320 - 16

    play(story)


def test_a_session_without_room_costs_the_sound_and_nothing_else() -> None:
    """`Overloaded` is counted; when there is room again, sound lies where it belongs."""

    async def story(line: Line) -> None:
        await line.send(10)
        line.intake.full = True
        await line.send(50)
        line.intake.full = False
        await line.send(40)

    line = play(story)
    assert line.receiver.statistics().refused >= 25
    assert line.intake.position == 2 * S
    assert line.loud()[-1] == pytest.approx((1.2, 2.0), abs=0.05)


def test_another_codec_is_another_decoder() -> None:
    """A sender that changes to G.711 is heard on, by its clock."""

    async def story(line: Line) -> None:
        await line.send(25)
        line.sender.codec, line.sender.timestamp = SoundCodec.PCMU, 7
        for _ in range(25):
            line.sender.payload = bytes([0x80, 0x00] * 80)
            packet = line.sender.next()
            line.receiver.receive(
                Packet(
                    1, packet.sequence, packet.timestamp, packet.codec, packet.payload, line.clock.now_us()
                )
            )
            await asyncio.sleep(0.02)

    line = play(story)
    assert line.intake.position == S
    assert line.loud()[-1][1] == pytest.approx(1.0, abs=0.01)


def test_a_dropped_receiver_gives_an_ended_session_nothing_more() -> None:
    """After `drop` nothing is handed on, not even what waited; `close` hands on the rest."""

    async def story(line: Line) -> None:
        await line.send(9)
        await asyncio.sleep(0.1)
        line.receiver.receive(line.packet())
        before = line.intake.position
        line.receiver.drop()
        line.receiver.receive(line.packet())
        await asyncio.sleep(10)
        line.receiver.close()
        assert line.intake.position == before

    play(story)


def test_silence_without_packets_costs_no_timers() -> None:
    """Before the first packet nothing is scheduled: virtual time has nowhere to go."""

    async def main() -> None:
        line = Line()
        assert line.intake.position == 0
        await asyncio.Event().wait()

    with pytest.raises(virtual_time.Deadlock):
        virtual_time.run(main())


def test_a_call_hears_on_after_a_fault_in_its_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the intake raises what nobody foresaw: some sound is lost, what is said after it is heard."""

    async def story(line: Line) -> None:
        await line.send(10)
        real, faults = line.intake.append_at, [KeyError("nothing foreseen")]

        def append_at(position: int, pcm: Pcm) -> None:
            if faults:
                raise faults.pop()
            real(position, pcm)

        monkeypatch.setattr(line.intake, "append_at", append_at)
        await asyncio.sleep(3)  # a pause: the timer alone hands on and fills up
        assert not faults
        heard = line.intake.position

        await line.send(25)
        await asyncio.sleep(0.2)
        assert line.intake.position > heard + 6_000

    before = FAULTS.counts().get("call sound", 0)
    play(story)
    assert FAULTS.counts()["call sound"] == before + 1
