"""The small part of `chorale bench network`: real calls of both kinds over a bad line, and what figures claim."""

import asyncio
import random

import numpy as np
import pytest

from benchmarks.network import MAX_SHIFT_MS, claim_delays, claim_words
from benchmarks.network_coding import FRAME, decode, encode
from benchmarks.network_delay import Delay, Stages, measure
from benchmarks.network_ears import beeps
from benchmarks.network_words import Words
from benchmarks.outcome import Outcome

GOOD = Delay("chorale", 15, 70, 18, 15, 5.0, 4.8, 1.0, None)
BARE = Delay("aiortc", 82, 320, 280, 82, 5.0, 24.0, 0.0, 5_000.0)


def test_both_ways_are_measured_in_one_run() -> None:
    """Short stages over real calls: what was lost is known, and the beeps after the outage lie at their places in ours
    and would not in sound that is strung together."""
    ours, theirs = asyncio.run(measure(Stages(clear=1, bad=2, mended=2, cut=3, after=2)))
    assert (ours.way, theirs.way) == ("chorale", "aiortc")
    assert ours.shift_ms <= MAX_SHIFT_MS
    assert theirs.strung_shift_ms is not None
    assert theirs.strung_shift_ms > 2_900
    assert all(one.base_ms > 0 and one.mended_ms > 0 for one in (ours, theirs))


def test_claims_hold_where_the_figures_bear_them_out() -> None:
    """Each claim fails on its own figure."""
    good, bad = Outcome("network", {}), Outcome("network", {})
    claim_delays(good, GOOD, BARE)
    assert good.holds
    claim_delays(bad, Delay("chorale", 15, 70, 80, 15, 5.0, 4.8, 100.0, None), GOOD)
    assert [claim.holds for claim in bad.claims] == [False, False, False]


def test_words_may_be_lost_with_their_packets_and_no_more() -> None:
    """Five points are what a loss of five percent may cost."""
    outcome = Outcome("network", {})
    lines = [Words("clear", 100, 4.0, 0.0), Words("some", 100, 9.0, 5.0), Words("more", 100, 9.1, 5.0)]
    claim_words(outcome, lines)
    assert [claim.holds for claim in outcome.claims] == [True, False]


@pytest.mark.parametrize("way", ["silence", "guess", "fec"])
def test_every_way_of_making_up_for_a_loss_keeps_the_length(way: str) -> None:
    """A frame for each packet, lost or not; without loss the ways are one."""
    packets, chance = encode(beeps(1.0), 0.1), random.Random(3)
    lost = [chance.random() < 0.1 for _ in packets]
    assert any(lost)
    assert len(decode(packets, lost, way)) == FRAME * len(packets)
    whole = [False] * len(packets)
    assert np.array_equal(decode(packets, whole, way), decode(packets, whole, "silence"))
