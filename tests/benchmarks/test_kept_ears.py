"""What was heard is kept: a stopped fit goes on, and nothing stale or broken is taken for an answer."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.kept_ears import Kept, asked_of
from benchmarks.sound_data import Hearing, Scored
from consistency.observation import ForcedScore
from modalities.adapters.faster_whisper import WhisperSettings
from modalities.ports import Alternative, Recognition, Word

PCM = np.arange(160, dtype=np.int16)
FIRST = Recognition(
    "turn it on", (Word("turn", 0.9, 0.1, 0.3),), alternatives=(Alternative("turn it off", -2.5),)
)


class Asked:
    """Answers, and counts how often it was asked."""

    def __init__(self, answer: Hearing) -> None:
        self.answer, self.times = answer, 0

    def __call__(self) -> Hearing:
        self.times += 1
        return self.answer


def test_kept_answer_is_the_one_that_was_given(tmp_path: Path) -> None:
    """To the last word and probability, without asking again; scores too, also where there was none."""
    kept, hears = Kept(tmp_path / "new", "models"), Asked(Hearing(FIRST, None, 0.25))
    assert [kept.answer(Hearing, PCM, "hear", hears) for _ in range(3)] == [hears.answer] * 3
    assert hears.times == 1
    score = ForcedScore("x", -1.0, -0.5, -0.75, -2.0, -1.0, -1.5, (("on", "off", -3.0),), 3)
    for question, given in (("score", Scored(score, 0.1)), ("none", Scored(None, 0.0))):
        told = iter([given]).__next__
        assert [kept.answer(Scored, PCM, question, told) for _ in range(2)] == [given] * 2


def test_other_sound_question_or_model_is_asked_anew(tmp_path: Path) -> None:
    """What an answer depends on is in its name."""
    hears = Asked(Hearing(FIRST, FIRST, 0.25))
    for asked, question, pcm in (
        ("a", "q", PCM),
        ("b", "q", PCM),
        ("a", "r", PCM),
        ("a", "q", PCM + np.int16(1)),
    ):
        Kept(tmp_path, asked).answer(Hearing, pcm, question, hears)
    assert hears.times == 4


def test_file_that_was_cut_off_is_no_answer(tmp_path: Path) -> None:
    """It is asked again, and mended."""
    kept, hears = Kept(tmp_path, "models"), Asked(Hearing(FIRST, None, 0.25))
    kept.answer(Hearing, PCM, "hear", hears)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-9])
    assert kept.answer(Hearing, PCM, "hear", hears) == hears.answer
    assert kept.answer(Hearing, PCM, "hear", hears) == hears.answer
    assert hears.times == 2


def test_settings_and_models_name_who_is_asked(tmp_path: Path) -> None:
    """Another model file or another beam is somebody else."""
    (tmp_path / "model.bin").write_bytes(b"12")
    settings = WhisperSettings(path=str(tmp_path))
    before = asked_of(settings)
    assert before == asked_of(settings)
    assert before != asked_of(replace(settings, beam=5))
    (tmp_path / "model.bin").write_bytes(b"123")
    assert before != asked_of(settings)
