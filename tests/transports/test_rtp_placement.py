"""Sound lies where its time stamps say, whatever the packets' fate (F-S2)."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.transports.rtp_order import Ordered, Packet, SoundCodec
from orchestrator.transports.rtp_placement import (
    TOLERANCE,
    Begin,
    Conceal,
    Decode,
    Placement,
    SlidingMinimum,
    Step,
    opus_samples,
    payload_samples,
)
from tests.transports.rtp import CELT_10_MS, CELT_20_MS, SILK_20_MS, Sender

FRAME = 320
S = 16_000


class Tape:
    """Where steps put their sound: (start, stop, kind) extents."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.extents: list[tuple[int, int, str]] = []
        self.position = 0
        self.fresh = 0
        self._first = True

    def place(self, packets: Iterable[Packet], missing: int = 0, fresh: bool = False) -> None:
        for packet in packets:
            ordered = Ordered(packet, missing, fresh or self._first)
            self._first, missing, fresh = False, 0, False
            self._apply(self.placement.place(ordered))

    def skip_to(self, position: int) -> None:
        """What the receiver does when it fills the time of a sender that stopped."""
        self.placement.skip_to(position)
        self.position = position

    def _apply(self, steps: tuple[Step, ...]) -> None:
        for step in steps:
            match step:
                case Begin():
                    assert step.position >= self.position, "time never goes back"
                    self.position = step.position
                    self.fresh += step.fresh
                case Decode():
                    self._extend(step.samples, "sound")
                case Conceal():
                    self._extend(step.frames * step.samples, "guess")

    def _extend(self, samples: int, kind: str) -> None:
        start, self.position = self.position, self.position + samples
        if self.extents and self.extents[-1][1:] == (start, kind):
            start = self.extents.pop()[0]
        self.extents.append((start, self.position, kind))


@pytest.mark.parametrize(
    ("payload", "samples"),
    [
        (CELT_20_MS, 320),
        (CELT_10_MS, 160),
        (SILK_20_MS, 320),
        (b"\x18x", 960),
        (b"\x60x", 160),
        (b"\x78x", 320),
        (b"\xe0x", 40),
        (b"\xf9x", 640),
        (b"\xfb\x03x", 960),
        (b"\xfb", 0),
        (b"\xfb\x07x", 0),
        (b"", 0),
    ],
)
def test_the_length_of_an_opus_packet_is_read_from_its_head(payload: bytes, samples: int) -> None:
    """Every mode of RFC 6716 §3.1, one, two and many frames; over 120 ms is not Opus."""
    assert opus_samples(payload) == samples


def test_the_origin_is_the_first_packet_and_sound_is_continuous() -> None:
    """One stretch from the base on, whatever the first stamp."""
    tape = Tape(Placement(base=777))
    tape.position = 777
    tape.place(Sender(timestamp=123_456).many(50))
    assert tape.extents == [(777, 777 + S, "sound")]


def test_time_stamps_wrap_around_unnoticed() -> None:
    """2^32 is no border."""
    tape = Tape(Placement())
    tape.place(Sender(timestamp=(1 << 32) - 10 * 960).many(50))
    assert tape.extents == [(0, S, "sound")]


def test_a_pause_of_the_sender_stays_a_pause() -> None:
    """DTX and a muted client: contiguous numbers, stamps that jump. No history is lost for the decoder."""
    sender, tape = Sender(), Tape(Placement())
    tape.place(sender.many(10))
    sender.pause(700_000)
    tape.place(sender.many(10))
    assert tape.extents == [(0, 3_200, "sound"), (3_200 + 11_200, 3_200 + 14_400, "sound")]
    assert tape.fresh == 1


def test_a_burst_after_a_stall_lies_where_it_was_spoken() -> None:
    """2 s of silence on the wire, then everything at once: the total is the wall time, nothing is appended (F-S2)."""
    sender, tape = Sender(), Tape(Placement())
    tape.place(sender.many(50))
    stalled = [sender.next(delay_us=2_000_000 - 20_000 * number) for number in range(100)]
    tape.place(stalled)
    tape.place(sender.many(50))
    assert tape.extents == [(0, 4 * S, "sound")]


def test_the_first_60_ms_of_a_loss_are_guessed_and_the_rest_is_silence() -> None:
    """Three packets are left to the decoder, of any number. Sound goes on at its place in all cases."""
    for lost in (1, 3, 4, 100):
        sender, tape = Sender(), Tape(Placement())
        tape.place(sender.many(1))
        sender.lose(lost)
        tape.place(sender.many(1), missing=lost)
        guesses = [extent for extent in tape.extents if extent[2] == "guess"]
        assert guesses == [(FRAME, (1 + min(3, lost)) * FRAME, "guess")]
        assert tape.extents[-1] == ((lost + 1) * FRAME, (lost + 2) * FRAME, "sound")


def test_a_loss_within_a_pause_is_not_guessed() -> None:
    """Numbers are missing, but so is time that they cannot have filled."""
    sender, tape = Sender(), Tape(Placement())
    tape.place(sender.many(1))
    sender.lose()
    sender.pause(1_000_000)
    tape.place(sender.many(1), missing=1)
    assert [extent[2] for extent in tape.extents] == ["sound", "sound"]


def test_g711_is_placed_by_its_own_clock() -> None:
    """8,000 ticks are a second."""
    sender = Sender(codec=SoundCodec.PCMU, payload=bytes(160))
    tape = Tape(Placement())
    tape.place(sender.many(50))
    sender.pause(500_000)
    tape.place(sender.many(50))
    assert tape.extents == [(0, S, "sound"), (S + S // 2, 2 * S + S // 2, "sound")]


def test_a_packet_of_more_than_120_ms_is_none() -> None:
    """However it is coded: it would take places in the future."""
    assert payload_samples(SoundCodec.PCMU, bytes(960)) == 1_920
    assert payload_samples(SoundCodec.PCMU, bytes(961)) == 0
    assert payload_samples(SoundCodec.PCMA, bytes(60_000)) == 0
    assert payload_samples(SoundCodec.OPUS, b"\x1b\x02") == 1_920
    assert payload_samples(SoundCodec.OPUS, b"\x1b\x03") == 0


def test_rounded_stamps_do_not_cut_the_sound() -> None:
    """A sender that is a few milliseconds off here and there is continuous all the same."""
    sender, tape = Sender(), Tape(Placement())
    for shift in (0, 48, -48, 240, -240, 0):
        packet = sender.next()
        moved = Packet(
            1,
            packet.sequence,
            packet.timestamp + shift,
            packet.codec,
            packet.payload,
            packet.arrived_us,
        )
        tape.place([moved])
    assert tape.extents == [(0, 6 * FRAME, "sound")]


def test_a_new_source_is_placed_by_its_arrival() -> None:
    """Other numbers, other stamps: its sound lies where the clock says, decoded without history."""
    old, tape = Sender(timestamp=3_000_000_000), Tape(Placement())
    tape.place(old.many(50))
    new = Sender(source=2, timestamp=17, at_us=old.at_us + 500_000)
    tape.place(new.many(50), fresh=True)
    assert tape.extents == [(0, S, "sound"), (S + S // 2, 2 * S + S // 2, "sound")]
    assert tape.fresh == 2


@pytest.mark.parametrize("jump_s", [-600, -2, 3, 40_000])
def test_stamps_that_cannot_be_true_are_a_new_numbering(jump_s: int) -> None:
    """Stamps that leap back, or into the future, change where sound is counted from, not where it lies."""
    sender, tape = Sender(timestamp=1_000_000_000), Tape(Placement())
    tape.place(sender.many(50))
    sender.timestamp += jump_s * 48_000
    tape.place(sender.many(50))
    assert tape.extents[0][0] == 0
    assert abs(tape.extents[-1][1] - 2 * S) <= TOLERANCE
    assert sum(stop - start for start, stop, _ in tape.extents) == 2 * S


def test_a_long_pause_is_believed_although_the_stamps_leap() -> None:
    """An hour of silence moves the stamps as much as the clock."""
    sender, tape = Sender(), Tape(Placement())
    tape.place(sender.many(1))
    sender.pause(3_600_000_000)
    tape.place(sender.many(1))
    assert tape.extents[-1][0] == FRAME + 3_600 * S
    assert tape.fresh == 1


def test_sound_for_a_time_that_was_filled_meanwhile_is_dropped_and_what_follows_keeps_its_place() -> None:
    """A burst after a stall that was filled with silence catches up; nothing is moved."""
    sender, tape = Sender(), Tape(Placement())
    tape.place(sender.many(50))
    burst = [sender.next(delay_us=4_000_000 - 20_000 * number) for number in range(200)]
    tape.skip_to(5 * S)
    tape.place(burst)
    tape.place(sender.many(50))
    assert tape.extents == [(0, S, "sound"), (5 * S, 6 * S, "sound")]
    assert tape.placement.dropped == 200
    assert tape.fresh == 1


def test_being_late_now_and_then_is_no_new_numbering() -> None:
    """Only what is late on end for half a second is: of two bursts after filled stalls nothing is placed by arrival."""
    sender, tape = Sender(), Tape(Placement())
    tape.place(sender.many(50))
    for _ in range(2):
        burst = [sender.next(delay_us=2_000_000 - 20_000 * number) for number in range(100)]
        tape.skip_to(tape.position + 2 * S)
        tape.place(burst)
        tape.place(sender.many(50))
    assert tape.placement.dropped == 200
    assert tape.fresh == 1


def test_a_sender_whose_stamps_stood_still_during_its_pause_is_heard_again_by_its_arrival() -> None:
    """Otherwise it would be late for ever."""
    sender, tape = Sender(), Tape(Placement())
    tape.place(sender.many(50))
    sender.at_us += 4_000_000
    tape.skip_to(5 * S)
    tape.place(sender.many(100))
    start, stop, _ = tape.extents[-1]
    assert 5 * S < start <= 5 * S + S * 6 // 10
    assert stop == 7 * S


def test_a_sender_that_begins_anew_all_the_time_cannot_outrun_the_clock() -> None:
    """However many sources come and go, no more than the leap of 2 s lies in the future."""
    tape = Tape(Placement())
    for source in range(1_000):
        sender = Sender(source=source, payload=b"\xfb\x06", at_us=1_000_000 + source * 1_000)
        tape.place(sender.many(2), fresh=True)
    assert tape.position <= 3 * S


def test_a_sender_faster_than_time_is_bounded() -> None:
    """Ten minutes of sound within a second: two seconds of it are taken, the rest is dropped and counted."""
    sender, tape = Sender(), Tape(Placement())
    packets = [sender.next(delay_us=-number * 19_970) for number in range(30_000)]
    tape.place(packets)
    assert tape.position <= 4 * S
    assert tape.placement.dropped > 29_000


def test_the_offset_follows_a_drifting_clock() -> None:
    """100 ppm over an hour are 360 ms: the filter shows them to within 10 ms."""
    placement = Placement()
    sender = Sender()
    for number in range(36_000):
        sender.sequence, sender.timestamp = number, number * 4_800
        sender.at_us = int(number * 100_000 * 1.0001) + (number % 7) * 3_000
        placement.place(Ordered(sender.next(), 0, number == 0))
    assert placement.offset_us == pytest.approx(360_000, abs=10_000)


def test_a_sliding_minimum_forgets_after_two_windows() -> None:
    """The minimum is that of the last one to two windows."""
    least = SlidingMinimum(10)
    assert [least.add(value, now) for now, value in ((0, 5), (5, 3), (10, 7), (15, 6), (20, 8), (30, 9))] == [
        5, 3, 3, 3, 6, 8,
    ]  # fmt: skip


@given(
    st.lists(st.tuples(st.sampled_from(["frame", "lose", "pause"]), st.integers(1, 80)), max_size=40),
    st.integers(0, (1 << 32) - 1),
    st.sampled_from(list(SoundCodec)),
)
def test_every_packet_lies_where_its_stamp_says(
    story: list[tuple[str, int]], timestamp: int, codec: SoundCodec
) -> None:
    """For any loss and any pause, of any codec, with stamps beginning anywhere: sound starts exactly at its time."""
    payload = CELT_20_MS if codec is SoundCodec.OPUS else bytes(160)
    sender, tape = Sender(timestamp=timestamp, codec=codec, payload=payload), Tape(Placement())
    tape.place(sender.many(1))
    began_us, missing = sender.at_us - 20_000, 0
    for kind, count in story:
        match kind:
            case "frame":
                for _ in range(count):
                    expected = (sender.at_us - began_us) * S // 1_000_000
                    tape.place(sender.many(1), missing)
                    missing = 0
                    assert tape.position == expected + FRAME
            case "lose":
                sender.lose(count)
                missing += count
            case _:
                sender.pause(count * 20_000)
