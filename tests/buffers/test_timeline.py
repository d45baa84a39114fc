"""Positions on the session clock."""

import random

import pytest

from orchestrator.buffers.timeline import Timeline, position_us
from orchestrator.clock import US_PER_S


@pytest.mark.parametrize("drift_ppm", [-100, 0, 100])
def test_timeline_keeps_words_within_20_ms_over_an_hour_of_drift(drift_ppm: int) -> None:
    """A sender's clock off by 100 ppm and up to 60 ms of jitter move no word by more than 20 ms in an hour."""
    timeline = Timeline()
    chance = random.Random(7)
    worst = 0.0
    for packet in range(0, 3_600 * 50, 10):  # every tenth 20 ms packet is enough to follow
        stop = packet * 320
        spoken_at = position_us(stop) * (1 + drift_ppm / 1e6)
        timeline.note(stop, int(spoken_at + 10_000 + chance.uniform(0, 60_000)), live=True)
        if packet > 3_000:
            worst = max(worst, abs(timeline.at(stop) - 10_000 - spoken_at))
    assert worst < 20_000


def test_timeline_ends_unpaced_sound_at_its_arrival() -> None:
    """Ten seconds sent at once ended when they arrived; so does a later chunk: none lies in the future."""
    timeline = Timeline()
    timeline.note(160_000, 12 * US_PER_S, live=False)
    assert timeline.at(160_000) == 12 * US_PER_S
    assert timeline.at(0) == 2 * US_PER_S
    timeline.note(176_000, 60 * US_PER_S, live=False)
    assert timeline.at(176_000) == 60 * US_PER_S


def test_timeline_never_goes_below_zero() -> None:
    """A minute of sound sent in the first second began at the session's beginning, not before it."""
    timeline = Timeline()
    timeline.note(960_000, US_PER_S, live=False)
    assert timeline.at(0) == 0
