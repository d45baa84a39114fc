"""Recognition jobs become clips, results become reports."""

from collections.abc import Sequence

import numpy as np
import pytest

from modalities.ports import Clip, Recognition, Word
from orchestrator.scheduling.work import Report, Transcribe, Transcribed, Understand, WordFound
from orchestrator.workers.frames import Task
from orchestrator.workers.transcribe import Transcriber, clip_of, transcribed


class _Recognizer:
    def __init__(self) -> None:
        self.seen: list[list[int]] = []

    def recognize(self, clips: Sequence[Clip]) -> list[Recognition]:
        self.seen.append([len(clip.pcm) for clip in clips])
        return [Recognition(f"{int(clip.pcm[0])}") for clip in clips]


def _do(recognizer: _Recognizer, *works: Transcribe, unwanted: str = "") -> list[Report]:
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
    assert told == [Transcribed("j0", ""), Transcribed("j1", "9"), Transcribed("j2", "")]
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
    found = Recognition("hi", (Word("hi", 0.1, 0.4, 0.9),), "de", -0.3, 0.2, 1.1, 2)
    expected = Transcribed("j", "hi", (WordFound("hi", 0.1, 0.4, 0.9),), "de", -0.3, 0.2, 1.1, 2)
    assert transcribed("j", found) == expected
