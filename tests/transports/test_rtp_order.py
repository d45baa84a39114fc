"""Packets leave in order, late ones are not waited for too long, and a new numbering is recognised."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.transports.rtp_order import MAX_DROPOUT, Ordered, Packet, PacketOrder
from tests.transports.rtp import Sender

HOLD_US = 60_000


def sequences(ordered: tuple[Ordered, ...]) -> list[int]:
    return [one.packet.sequence for one in ordered]


def test_packets_in_order_leave_at_once() -> None:
    """Without a hole nothing waits: the receive delay is zero."""
    order, sender = PacketOrder(HOLD_US), Sender()
    for packet in sender.many(50):
        assert [one.packet for one in order.receive(packet)] == [packet]
        assert order.due_us is None


def test_a_hole_holds_its_followers_until_the_straggler_comes() -> None:
    """Reordered packets leave in the order of their numbers."""
    order, sender = PacketOrder(HOLD_US), Sender()
    first, second, third = sender.many(3)
    order.receive(first)
    assert order.receive(third) == ()
    assert sequences(order.receive(second)) == [second.sequence, third.sequence]
    assert order.statistics().lost == 0


def test_a_lost_packet_is_waited_for_no_longer_than_the_hold() -> None:
    """At `due_us`, and not before, the followers leave; the first of them says how many are missing."""
    order, sender = PacketOrder(HOLD_US), Sender()
    order.receive(sender.next())
    sender.lose(2)
    late = sender.next()
    order.receive(late)
    assert order.due_us == late.arrived_us + HOLD_US
    assert order.release(late.arrived_us + HOLD_US - 1) == ()
    (ordered,) = order.release(late.arrived_us + HOLD_US)
    assert (ordered.packet, ordered.missing) == (late, 2)


def test_the_delay_after_a_loss_is_zero_again() -> None:
    """A loss costs its hold once; the packets after it leave as they come."""
    order, sender = PacketOrder(HOLD_US), Sender()
    order.receive(sender.next())
    sender.lose()
    held = sender.many(4)
    left = [order.receive(packet) for packet in held]
    assert sequences(left[3]) == [packet.sequence for packet in held]
    for packet in sender.many(20):
        assert sequences(order.receive(packet)) == [packet.sequence]


def test_jitter_of_60_ms_drops_nothing() -> None:
    """Packets that are up to 60 ms late, and so overtake each other, all leave, in order."""
    chance, order, sender = random.Random(7), PacketOrder(HOLD_US), Sender()
    sender.next()
    packets = [sender.next(delay_us=chance.randrange(60_000)) for _ in range(500)]
    left: list[Ordered] = []
    for packet in sorted(packets, key=lambda packet: packet.arrived_us):
        left += order.release(packet.arrived_us)
        left += order.receive(packet)
    left += order.release(packets[-1].arrived_us + 10 * HOLD_US)
    # The first to arrive sets the beginning: what was sent before it is late.
    begin = min(packets, key=lambda packet: packet.arrived_us).sequence
    assert sequences(tuple(left)) == [packet.sequence for packet in packets if packet.sequence >= begin]
    assert order.statistics().lost == 0


def test_a_packet_after_its_turn_or_twice_is_dropped() -> None:
    """Late and repeated packets are counted and go nowhere."""
    order, sender = PacketOrder(HOLD_US), Sender()
    first = sender.next()
    order.receive(first)
    missing, second = sender.many(2)
    order.receive(second)
    assert order.receive(second) == ()
    order.release(second.arrived_us + HOLD_US)
    assert order.receive(missing) == ()
    assert order.receive(first) == ()
    assert order.statistics().late == 3


def test_sequence_numbers_wrap_around() -> None:
    """65535 is followed by 0, also with a hole there."""
    order, sender = PacketOrder(HOLD_US), Sender(sequence=65_533)
    packets = sender.many(6)
    left = [*order.receive(packets[0]), *order.receive(packets[1])]
    left += order.receive(packets[4])
    for packet in (packets[2], packets[3], packets[5]):
        left += order.receive(packet)
    assert sequences(tuple(left)) == [65_533, 65_534, 65_535, 0, 1, 2]


def test_another_source_begins_anew_and_the_one_before_cannot_come_back_at_once() -> None:
    """After a change of SSRC what was held goes first, and stragglers of the old source are dropped."""
    order, old = PacketOrder(HOLD_US), Sender()
    order.receive(old.next())
    old.lose()
    held, straggler = old.many(2)
    order.receive(held)
    new = Sender(source=2, sequence=9, at_us=old.at_us)
    left = order.receive(new.next())
    assert [(one.packet.source, one.fresh) for one in left] == [(1, False), (2, True)]
    assert order.receive(straggler) == ()
    assert sequences(order.receive(new.next())) == [10]
    assert order.statistics().restarts == 1


@pytest.mark.parametrize("jump", [-30_000, -500, MAX_DROPOUT + 1, 20_000])
def test_a_new_numbering_of_the_same_source_is_believed_at_its_second_packet(jump: int) -> None:
    """One stray number is dropped; two in a row are a sender that began anew (RFC 3550 A.1)."""
    order, sender = PacketOrder(HOLD_US), Sender(sequence=40_000)
    for packet in sender.many(5):
        order.receive(packet)
    sender.sequence += jump
    assert order.receive(sender.next()) == ()
    (begun,) = order.receive(sender.next())
    assert begun.fresh
    assert sequences(order.receive(sender.next())) == [begun.packet.sequence + 1]


def test_a_burst_behind_a_hole_is_held_up_to_the_capacity() -> None:
    """Full means: the hole is given up before the hold ends, and everything held leaves."""
    order, sender = PacketOrder(HOLD_US, capacity=10), Sender()
    order.receive(sender.next())
    sender.lose()
    burst = [sender.next(delay_us=-20_000 * number) for number in range(11)]
    left = [order.receive(packet) for packet in burst]
    assert left[:10] == [()] * 10
    assert sequences(left[10]) == [packet.sequence for packet in burst]


@given(
    st.lists(st.tuples(st.integers(0, 120), st.integers(0, 200_000)), max_size=150),
    st.integers(0, 65_535),
)
def test_whatever_arrives_leaves_in_order_at_most_once_and_within_the_hold(
    arrivals: list[tuple[int, int]], first: int
) -> None:
    """For any loss, repetition and delay: strictly rising, nothing twice, nothing held beyond `hold_us`, what is not
    delivered is counted."""
    order = PacketOrder(HOLD_US)
    origin = Sender(sequence=first).next()
    left = list(order.receive(origin))
    now_us = origin.arrived_us
    for offset, wait_us in arrivals:
        now_us += wait_us
        left += order.release(now_us)
        packet = Packet(1, (first + offset) % (1 << 16), 0, origin.codec, b"\xf8", now_us)
        left += order.receive(packet)
        assert order.due_us is None or now_us < order.due_us <= now_us + HOLD_US
    left += order.release(now_us + HOLD_US)
    offsets = [(one.packet.sequence - first) % (1 << 16) for one in left]
    assert offsets == sorted(set(offsets))
    assert set(offsets) <= {0} | {offset for offset, _ in arrivals}
    assert order.due_us is None
    statistics = order.statistics()
    assert statistics.received == len(arrivals) + 1 == len(left) + statistics.late
    assert sum(one.missing for one in left) == statistics.lost
