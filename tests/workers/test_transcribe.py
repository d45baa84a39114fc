"""Recognition jobs become clips, results become reports."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from modalities.ports import Alternative, Claim, Clip, Difference, Fit, Fits, Recognition, Word
from orchestrator.scheduling.work import (
    AlternativeText,
    Report,
    Score,
    Scored,
    TextFit,
    Transcribe,
    Transcribed,
    Understand,
    WordFound,
    WordsApart,
)
from orchestrator.workers.frames import Task
from orchestrator.workers.transcribe import Transcriber, clip_of, transcribed


class _Recognizer:
    def __init__(self) -> None:
        self.seen: list[list[int]] = []

    def recognize(self, clips: Sequence[Clip]) -> list[Recognition]:
        self.seen.append([len(clip.pcm) for clip in clips])
        return [Recognition(f"{int(clip.pcm[0])}") for clip in clips]


class _Scorer(_Recognizer):
    """Knows how well a text fits by its length."""

    def __init__(self) -> None:
        super().__init__()
        self.claims: list[Claim] = []

    def score(self, claims: Sequence[Claim]) -> list[Fits | None]:
        self.claims += claims
        return [
            Fits(_fit_of(claim.recognised), tuple(map(_fit_of, claim.texts))) if claim.clip.pcm.size else None
            for claim in claims
        ]


def _fit_of(text: str) -> Fit:
    return Fit(text.capitalize(), -float(len(text)), -1.0, -2.0, (Difference("a", "b", -3.0),))


def _do(recognizer: _Recognizer, *works: Transcribe | Score, unwanted: str = "") -> list[Report]:
    told: list[Report] = []
    tasks = [Task(f"j{number}", work) for number, work in enumerate(works)]
    Transcriber(recognizer).do(tasks, told.append, lambda id: id != unwanted)
    return told


def _sound(*samples: int) -> bytes:
    return np.array(samples, dtype="<i2").tobytes()


def test_clip_has_the_samples_and_wishes_of_its_job() -> None:
    """Little-endian int16, and every option that the recogniser knows."""
    clip = clip_of(Transcribe(0, 2, True, 2, "de", "names", audio=b"\x01\x00\xff\xff"))
    assert clip.pcm.tolist() == [1, -1]
    assert (clip.draft, clip.rung, clip.language, clip.prompt) == (True, 2, "de", "names")


def test_clip_of_half_a_sample_is_refused() -> None:
    """Sound that is cut inside a sample is not guessed at."""
    with pytest.raises(ValueError):
        clip_of(Transcribe(0, 1, audio=b"\x01"))


def test_transcriber_answers_a_batch_in_order_with_one_call() -> None:
    """One call for all clips, one report each."""
    recognizer = _Recognizer()
    told = _do(recognizer, Transcribe(0, 2, audio=_sound(5, 6)), Transcribe(0, 1, audio=_sound(7)))
    assert told == [Transcribed("j0", "5"), Transcribed("j1", "7")]
    assert recognizer.seen == [[2, 1]]


def test_transcriber_job_without_sound_is_empty_and_never_reaches_the_engine() -> None:
    """A commit of nothing has no text (F-T7); the rest of the batch keeps its own results."""
    recognizer = _Recognizer()
    told = _do(recognizer, Transcribe(0, 0), Transcribe(0, 1, audio=_sound(9)), Transcribe(3, 3))
    assert told == [Transcribed("j0", ""), Transcribed("j2", ""), Transcribed("j1", "9")]
    assert recognizer.seen == [[1]]
    assert _do(_Recognizer(), Transcribe(0, 0)) == [Transcribed("j0", "")]


def test_transcriber_result_nobody_wants_any_more_is_not_told() -> None:
    """A cancel during recognition silences its job only."""
    told = _do(
        _Recognizer(), Transcribe(0, 1, audio=_sound(1)), Transcribe(0, 1, audio=_sound(2)), unwanted="j0"
    )
    assert told == [Transcribed("j1", "2")]


def test_transcriber_engine_with_too_few_results_fails() -> None:
    """Results are matched by place: a missing one is a fault, not a shift."""

    class Forgetful(_Recognizer):
        def recognize(self, clips: Sequence[Clip]) -> list[Recognition]:
            return super().recognize(clips)[1:]

    with pytest.raises(ValueError):
        _do(Forgetful(), Transcribe(0, 1, audio=_sound(1)), Transcribe(0, 1, audio=_sound(2)))


def test_transcriber_tells_what_is_certain_while_others_are_still_looked_at() -> None:
    """An engine that can tell its results one by one keeps nobody waiting for another's; each goes to its own job."""
    told: list[Report] = []

    class Patient(_Recognizer):
        def recognize_each(self, clips: Sequence[Clip]) -> Iterator[tuple[int, Recognition]]:
            yield 1, Recognition("second")
            assert told == [Transcribed("j1", "second")]
            yield 0, Recognition("first")

    tasks = [Task(f"j{number}", Transcribe(0, 1, audio=_sound(number))) for number in range(2)]
    Transcriber(Patient()).do(tasks, told.append, lambda _: True)
    assert told == [Transcribed("j1", "second"), Transcribed("j0", "first")]


def test_transcriber_other_work_is_a_fault() -> None:
    """A text to understand is no clip."""
    with pytest.raises(TypeError):
        Transcriber(_Recognizer()).do([Task("j", Understand("x"))], lambda _: None, lambda _: True)


def test_transcriber_probe_recognises_something() -> None:
    """The engine has done a real job before it is called ready."""
    recognizer = _Recognizer()
    assert Transcriber(recognizer).probe() == "_Recognizer"
    assert recognizer.seen == [[16_000]]


def test_transcribed_carries_everything_the_engine_said() -> None:
    """Words with their times and probabilities, and the measures that the ladder decides by."""
    others = Alternative("hi", -0.3), Alternative("high", -2.5)
    found = Recognition("hi", (Word("hi", 0.1, 0.4, 0.9),), "de", -0.3, 0.2, 1.1, 2, others)
    told = AlternativeText("hi", -0.3), AlternativeText("high", -2.5)
    expected = Transcribed("j", "hi", (WordFound("hi", 0.1, 0.4, 0.9),), "de", -0.3, 0.2, 1.1, 2, told)
    assert transcribed("j", found) == expected


def test_clip_of_a_final_is_kept_under_its_job() -> None:
    """A draft leaves nothing behind; the alternatives that are asked for reach the engine."""
    assert clip_of(Transcribe(0, 1, alternatives=5, audio=_sound(1)), "j").key == "j"
    assert clip_of(Transcribe(0, 1, alternatives=5, audio=_sound(1)), "j").alternatives == 5
    assert clip_of(Transcribe(0, 1, draft=True, audio=_sound(1)), "j").key == ""


def test_transcriber_scores_texts_under_what_a_job_has_heard() -> None:
    """The claim names the recognition it goes back to; each text is answered in order, in its own words."""
    scorer = _Scorer()
    work = Score(0, 2, ("one", "three"), "two", near="t", rung=3, language="de", audio=_sound(1, 2))
    apart = (WordsApart("a", "b", -3.0),)
    assert _do(scorer, work) == [
        Scored(
            "j0",
            TextFit("two", "Two", -3.0, -1.0, -2.0, apart),
            (
                TextFit("one", "One", -3.0, -1.0, -2.0, apart),
                TextFit("three", "Three", -5.0, -1.0, -2.0, apart),
            ),
        )
    ]
    (claim,) = scorer.claims
    assert (claim.clip.key, claim.clip.rung, claim.clip.language, len(claim.clip.pcm)) == ("t", 3, "de", 2)


def test_transcriber_without_anything_to_tell_scores_no_text() -> None:
    """An engine that cannot score, and one that finds no sound, answer all the same; nobody waits in vain."""
    work = Score(0, 1, ("one",), "two", audio=_sound(1))
    assert _do(_Recognizer(), work) == [Scored("j0")]
    assert _do(_Scorer(), Score(0, 0, ("one",), "two")) == [Scored("j0")]


def test_transcriber_score_that_nobody_wants_is_not_made() -> None:
    """A score taken back before it has begun costs nothing; the others of its batch get theirs."""
    scorer = _Scorer()
    work = Score(0, 1, ("one",), "two", audio=_sound(1))
    told = _do(scorer, work, work, unwanted="j0")
    assert [report.job_id for report in told] == ["j1"]
    assert len(scorer.claims) == 1
