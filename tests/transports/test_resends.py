"""Which clients are asked for lost packets, and for which packets."""

import random

import pytest

from orchestrator.transports.resends import (
    ASK_AGAIN_US,
    HOLD_MS,
    MAX_ASKED,
    MAX_MISSING,
    Missing,
    can_be_asked,
    resends,
    with_resends,
)
from orchestrator.transports.rtp_order import Packet, SoundCodec

OFFER = """v=0\r
m=video 9 UDP/TLS/RTP/SAVPF 97\r
a=rtcp-fb:97 nack\r
m=audio 9 UDP/TLS/RTP/SAVPF 111 0\r
a=rtpmap:111 opus/48000/2\r
a=rtcp-fb:111 transport-cc\r
a=rtcp-fb:111 nack\r
a=rtpmap:0 PCMU/8000\r
a=rtcp-fb:0 nack pli\r
"""
ANSWER = """v=0\r
m=audio 9 UDP/TLS/RTP/SAVPF 111 0\r
a=rtpmap:111 opus/48000/2\r
a=rtpmap:0 PCMU/8000\r
m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r
"""


def at(sequence: int, ms: float, source: int = 1) -> Packet:
    return Packet(source, sequence % 65_536, 0, SoundCodec.OPUS, b"x", int(1_000 * ms))


def test_an_offer_says_for_which_kinds_it_can_be_asked() -> None:
    """Those of sound, and plain loss: a report of a lost picture is something else."""
    assert resends(OFFER) == {"111"}
    assert resends(OFFER.replace("111 nack", "* nack")) == {"*"}
    assert resends(OFFER.replace("a=rtcp-fb:111 nack", "a=x")) == frozenset()


def test_who_sends_another_codec_again_is_not_asked() -> None:
    """It would be waited for in vain."""
    assert can_be_asked(OFFER, SoundCodec.OPUS)
    assert not can_be_asked(OFFER, SoundCodec.PCMU)
    assert can_be_asked(OFFER.replace("111 nack", "* nack"), SoundCodec.PCMU)
    assert not can_be_asked(OFFER.replace("111 nack", "0 nack"), SoundCodec.OPUS)


def test_an_answer_takes_up_what_was_offered_and_no_more() -> None:
    """Behind each kind that was offered; without an offer the answer stays as it is."""
    lines = with_resends(ANSWER, OFFER).splitlines()
    assert [line for line in lines if "fb" in line] == ["a=rtcp-fb:111 nack"]
    assert lines[lines.index("a=rtcp-fb:111 nack") - 1] == "a=rtpmap:111 opus/48000/2"
    assert with_resends(ANSWER, OFFER.replace("nack", "x")) == ANSWER
    both = with_resends(ANSWER, OFFER.replace("111 nack", "* nack"))
    assert both.count("nack") == 2


def test_a_hole_is_asked_for_at_once() -> None:
    """With the packet that shows it, across the end of the numbering, and only once while an answer may be on its
    way."""
    missing = Missing()
    assert missing.add(at(65_533, 0)) == []
    assert missing.add(at(65_534, 20)) == []
    assert missing.add(at(65_536 + 2, 100)) == [65_535, 0, 1]
    assert missing.add(at(65_536 + 3, 120)) == []


def test_what_does_not_come_is_asked_for_again_for_as_long_as_it_is_waited_for() -> None:
    """At most `MAX_ASKED` times, and what came is not asked for any more."""
    missing = Missing()
    missing.add(at(0, 0))
    assert missing.add(at(3, 60)) == [1, 2]
    missing.add(at(1, 110))
    assert missing.add(at(4, 60 + ASK_AGAIN_US / 1_000)) == [2]
    assert missing.add(at(5, 60 + 2 * ASK_AGAIN_US / 1_000)) == [2]
    assert MAX_ASKED == 3
    for number in range(6, 30):
        assert missing.add(at(number, 240 + 20 * number)) == []


def test_nothing_is_asked_for_behind_an_outage_or_of_another_source() -> None:
    """A hole of seconds is nothing that could still be waited for."""
    missing = Missing()
    missing.add(at(0, 0))
    assert missing.add(at(MAX_MISSING + 2, 700)) == []
    assert missing.add(at(MAX_MISSING + 4, 740)) == [MAX_MISSING + 3]
    assert missing.add(at(7, 760, source=2)) == []
    assert missing.add(at(8, 780, source=2)) == []


@pytest.mark.parametrize("seed", range(5))
def test_what_is_missing_is_bounded(seed: int) -> None:
    """Whatever comes in whatever order: never more than `MAX_MISSING` numbers are remembered, nor asked for at once."""
    missing, chance, number = Missing(), random.Random(seed), 0
    for step in range(3_000):
        number += chance.choice([1, 1, 5, 20, MAX_MISSING, -3, -40, 1_000])
        wanted = missing.add(at(number % 65_536, step * chance.choice([1, 5])))
        assert len(wanted) <= MAX_MISSING
        assert len(missing._asked) <= MAX_MISSING


def test_the_hold_leaves_time_for_an_answer_to_the_second_question() -> None:
    """The figures go together."""
    assert 2 * ASK_AGAIN_US <= HOLD_MS * 1_000
