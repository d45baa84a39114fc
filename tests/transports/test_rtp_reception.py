"""Reports to the sender: loss since the last report and in all, the highest number, jitter."""

from orchestrator.transports.rtp_reception import Reception, ReceptionCounter
from tests.transports.rtp import Sender


def test_nothing_is_reported_before_the_first_packet() -> None:
    """There is no source to report on."""
    assert ReceptionCounter().report() is None


def test_a_steady_sender_has_no_loss_and_no_jitter() -> None:
    """Everything arrives as it was sent."""
    counter = ReceptionCounter()
    for packet in Sender(source=7, sequence=65_530).many(100):
        counter.add(packet)
    assert counter.report() == Reception(7, 0, 0, 65_536 + 93, 0)


def test_loss_is_told_as_a_share_since_the_last_report_and_in_all() -> None:
    """A quarter lost is 64 of 256; the next report begins anew."""
    counter, sender = ReceptionCounter(), Sender()
    for _ in range(25):
        for packet in sender.many(3):
            counter.add(packet)
        sender.lose()
    counter.add(sender.next())
    first = counter.report()
    assert first is not None
    assert (first.fraction_lost, first.packets_lost) == (25 * 256 // 101, 25)
    for packet in sender.many(10):
        counter.add(packet)
    second = counter.report()
    assert second is not None
    assert (second.fraction_lost, second.packets_lost) == (0, 25)


def test_jitter_is_in_ticks_and_a_pause_is_none() -> None:
    """Alternating 10 ms late settles near 480 ticks; a wrapped stamp and a pause of the sender change nothing."""
    counter, sender = ReceptionCounter(), Sender(timestamp=(1 << 32) - 48_000)
    for number in range(400):
        counter.add(sender.next(delay_us=10_000 * (number % 2)))
    sender.pause(5_000_000)
    counter.add(sender.next())
    report = counter.report()
    assert report is not None
    assert 440 <= report.jitter <= 480


def test_another_source_begins_anew() -> None:
    """A report is about the source heard last."""
    counter = ReceptionCounter()
    for packet in (*Sender().many(5), *Sender(source=2, sequence=9).many(2)):
        counter.add(packet)
    assert counter.report() == Reception(2, 0, 0, 10, 0)
