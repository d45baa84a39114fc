"""The turn-taking measurement on made-up takes, and on a few recordings with the real models."""

import csv
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks.outcome import Outcome
from benchmarks.recordings import Recording, pick, read_manifest
from benchmarks.turns import measure, write_curves
from benchmarks.turns_judging import Verdict, beaten_on_both, beginnings, judge
from benchmarks.turns_play import DRAFT_TAKES_MS, EARLY_FINAL_TAKES_MS, Played, Policy, play
from benchmarks.turns_plot import plot
from benchmarks.turns_sound import Take, phrase_ends, takes, with_silence_behind
from modalities.audio.patience import SemanticPatience
from modalities.audio.segmenter import TAIL_SAMPLES, WINDOW
from modalities.ports import Clip, Recognition

PAUSE = 20
"""Windows: 640 ms."""


class Scripted:
    """A recogniser that knows the words of a clip by its length."""

    def __init__(self, early: str, whole: str, halfway: int) -> None:
        self._texts = (early, whole)
        self._halfway = halfway
        self.clips: list[int] = []

    def recognize(self, clips: Sequence[Clip]) -> list[Recognition]:
        self.clips += [len(clip.pcm) for clip in clips]
        return [Recognition(self._texts[len(clip.pcm) > self._halfway]) for clip in clips]


def take(early: str, whole: str, complete: bool = True, category: str = "turn_midpause") -> Take:
    """Speech, a pause of 640 ms, speech and five seconds of silence; `early` is heard before the pause."""
    probabilities = [0.0] * 10 + [0.9] * 30 + [0.0] * PAUSE + [0.9] * 30 + [0.0] * 160
    stop = 90 if complete else 60
    if not complete:
        probabilities[60:90] = [0.0] * 30
    sound = np.zeros(len(probabilities) * WINDOW, dtype=np.int16)
    speech = ((0.32, stop * 0.032),)
    recording = Recording(Path("x"), "x", category, None, "none", "en", 1.0, None, "", speech, complete)
    end = stop * WINDOW if complete else None
    recognizer = Scripted(early, whole, halfway=45 * WINDOW)
    pauses = phrase_ends(sound, probabilities)
    return Take(recording, sound, stop * WINDOW, end, tuple(probabilities), pauses, recognizer)


def test_playing_by_silence_cuts_what_pauses_longer() -> None:
    """500 ms of silence end the turn in a pause of 640 ms and again at its end; 800 ms do so once, later."""
    short, long = (play(take("", ""), Policy("s", silence_ms=ms)) for ms in (500, 800))
    assert (short.early, long.early) == (1, 0)
    assert short.delay_ms == 512
    assert long.delay_ms == 800
    assert len(short.begins) == 2
    assert len(long.begins) == 1


def test_playing_semantically_waits_for_half_a_sentence_and_not_for_a_whole_one() -> None:
    """The same pause: words that hang carry the turn over it, and the whole sentence ends sooner than by silence."""
    played = play(
        take("I want to go to the", "I want to go to the zoo."),
        Policy("p", patience=SemanticPatience("medium")),
    )
    assert played.early == 0
    assert played.delay_ms is not None
    assert played.delay_ms < 500


def test_playing_gives_words_no_sooner_than_a_worker_could() -> None:
    """However sure the words, no turn ends by them before the attempt that heard them can have come back."""
    played = play(take("Stop!", "Stop it!"), Policy("p", patience=SemanticPatience("high")))
    assert played.delay_ms is not None
    assert played.delay_ms >= TAIL_SAMPLES / 16 + EARLY_FINAL_TAKES_MS
    assert DRAFT_TAKES_MS < EARLY_FINAL_TAKES_MS


def test_playing_an_unfinished_turn_counts_any_end_within_the_recording() -> None:
    """There is no true end, so there is no delay; an end is too early where it lies before the recording's."""
    played = play(take("", "", complete=False), Policy("s", silence_ms=500))
    assert played.early == 1
    assert played.delay_ms is None


def test_recognition_is_asked_for_once() -> None:
    """A sweep costs the recogniser nothing after its first point."""
    one = take("Book a table", "Book a table for four.")
    recognizer = one._recognizer
    assert isinstance(recognizer, Scripted)
    plays = [play(one, Policy("p", patience=SemanticPatience("medium", by))) for by in (1.5, 1.5, 1.6)]
    assert plays[0].ends == plays[1].ends
    assert len(recognizer.clips) == len(set(recognizer.clips))


def test_silence_behind_a_recording_is_as_loud_as_its_quiet() -> None:
    """A recording in a noisy room does not fall into digital silence, and the noise is the same every time."""
    rng = np.random.default_rng(3)
    room = rng.normal(0, 200, 16_000).astype(np.int16)
    longer = with_silence_behind(room)
    assert (longer[:16_000] == room).all()
    assert np.std(longer[16_000:].astype(float)) == pytest.approx(200, rel=0.2)
    assert (longer == with_silence_behind(room)).all()
    assert not with_silence_behind(np.zeros(0, np.int16)).any()


def verdict(name: str, cuts: int, mean_ms: float) -> Verdict:
    return Verdict(name, 10, cuts, cuts, mean_ms, mean_ms, mean_ms, 0)


def test_silence_is_beaten_only_on_both_axes() -> None:
    """Fewer cut-ins at more delay, or as many at less, is no victory."""
    silence = [verdict("300", 8, 310), verdict("500", 5, 510), verdict("800", 2, 810)]
    semantic = [verdict("a", 4, 500), verdict("b", 2, 700), verdict("c", 7, 320)]
    assert beaten_on_both(silence, semantic) == ["500"]


def test_judging_counts_cuts_delays_and_ends_that_never_came() -> None:
    """Means are over the ends that were found; a turn that never ended is told apart."""
    one = take("", "")
    end = one.true_end
    assert end is not None
    played = [
        Played(one, (1,), (end - 1, end + 8_000)),
        Played(one, (1,), (end + 16_000,)),
        Played(one, (), ()),
    ]
    found = judge("x", played)
    assert (found.cuts, found.cut, found.never) == (1, 1, 1)
    assert found.mean_ms == 750
    assert beginnings(played) == (1, 0)


def test_measuring_writes_tables_curves_and_claims(tmp_path: Path) -> None:
    """Every group has its table, every curve its points, in the outcome and as comma-separated values."""
    loaded = [take("I want to go to the", "I want to go to the zoo.") for _ in range(2)]
    outcome = Outcome("turns", {})
    curves = measure(loaded, outcome, Console(quiet=True))
    assert {"all three", "turn_midpause", "curves"} <= set(outcome.tables)
    assert outcome.figures == {"missed starts": 0, "false starts on non_speech": 0}
    write_curves(curves, tmp_path / "curves.csv")
    with (tmp_path / "curves.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == sum(len(points) for points in curves.values())


@pytest.mark.real
@pytest.mark.corpus
def test_turns_of_real_recordings() -> None:
    """Half a sentence of a recorded speaker outlasts 1.5 s of silence and a whole one ends within a second; a command
    is over at once; nobody begins in noise."""
    from modalities.adapters.faster_whisper import FasterWhisper, WhisperSettings
    from modalities.adapters.silero import SileroDetector

    names = {
        "turns/incomplete_picovoice_1e8e3e61.flac": "hanging",
        "turns/pause_picovoice_4f0b1081_900ms.flac": "paused",
        "commands/azure_whatstheweatherlike.flac": "command",
        "nonspeech/noise2.flac": "noise",
    }
    every = read_manifest(Path(os.environ["CHORALE_SPEECH_DATA"]))
    chosen = [recording for recording in every if recording.name in names]
    assert len(chosen) == len(names)
    assert pick(every, ("turn_incomplete",), 1)[0].turn_complete is False
    recognizer = FasterWhisper(WhisperSettings(threads=2, word_times=False))
    policy = Policy("medium", patience=SemanticPatience("medium"))
    found = {
        names[one.recording.name]: play(one, policy) for one in takes(chosen, SileroDetector(), recognizer)
    }
    assert found["hanging"].early == 0
    assert found["paused"].early == 0
    assert found["paused"].delay_ms is not None
    assert found["paused"].delay_ms < 1_000
    assert found["command"].delay_ms is not None
    assert found["command"].delay_ms < 500
    assert found["noise"].begins == ()


def test_plot_is_a_picture(tmp_path: Path) -> None:
    """The curves are drawn to a PNG file, folders made on the way."""
    pytest.importorskip("matplotlib")
    points = [verdict("silence 500 ms", 5, 510), verdict("silence 800 ms", 2, 810)]
    plot({"server VAD": points}, points[:1], tmp_path / "images" / "turns.png")
    assert (tmp_path / "images" / "turns.png").read_bytes().startswith(b"\x89PNG")
