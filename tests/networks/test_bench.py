"""The small part of `chorale bench network`: real calls of both kinds over a bad line, and what figures claim."""

import asyncio
import random

import numpy as np
import pytest

from benchmarks.network import MAX_SHIFT_MS, claim_delays, claim_outage, claim_words
from benchmarks.network_coding import FRAME, decode, encode
from benchmarks.network_delay import Delay, Stages, measure
from benchmarks.network_ears import beeps
from benchmarks.network_outage import Outage, find, say_around
from benchmarks.network_words import Words
from benchmarks.outcome import Outcome
from modalities.ports import SPEECH_RATE_HZ
from orchestrator.clients.recording import CALL_RATE_HZ, Samples

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


def noise(seed: int, seconds: float) -> Samples:
    """48 kHz sound that is like no other."""
    rough = np.random.default_rng(seed).normal(0, 3_000, int(seconds * CALL_RATE_HZ) // 48)
    sound: Samples = np.repeat(rough, 48).astype(np.int16)
    return sound


def test_what_is_said_around_an_outage_is_found_where_it_was_said() -> None:
    """Over a real call whose line is cut: both pieces come whole, and lie as far apart as they were said."""
    heard = asyncio.run(say_around(noise(1, 0.5), noise(2, 1.0), noise(3, 0.5), cut=True, seed=1))
    assert abs(heard.shift_ms) <= 5
    for pcm in (heard.before, heard.after):
        assert len(pcm) > 0.9 * SPEECH_RATE_HZ
        assert np.abs(pcm.astype(int)).max() > 1_000


def test_a_sound_is_found_in_a_longer_one() -> None:
    """At its first sample."""
    sound = np.random.default_rng(1).integers(-9_000, 9_000, 1_000).astype(np.int16)
    assert find(sound, np.concatenate([np.zeros(777, np.int16), sound, sound[::-1]])) == 777


def test_each_claim_of_an_outage_fails_on_its_own_figure() -> None:
    """More errors before, more errors after, and words out of their places."""
    good, bad = Outcome("network", {}), Outcome("network", {})
    claim_outage(good, Outage(80, 2.5, 0.0, 2.5, 1.2, 3.0))
    assert good.holds
    claim_outage(bad, Outage(80, 2.6, 1.3, 2.5, 1.2, 41.0))
    assert [claim.holds for claim in bad.claims] == [False, False, False]


@pytest.mark.parametrize("way", ["silence", "guess", "fec"])
def test_every_way_of_making_up_for_a_loss_keeps_the_length(way: str) -> None:
    """A frame for each packet, lost or not; without loss the ways are one."""
    packets, chance = encode(beeps(1.0), 0.1), random.Random(3)
    lost = [chance.random() < 0.1 for _ in packets]
    assert any(lost)
    assert len(decode(packets, lost, way)) == FRAME * len(packets)
    whole = [False] * len(packets)
    assert np.array_equal(decode(packets, whole, way), decode(packets, whole, "silence"))
