"""Recognition in a worker process: a batch of clips in, a transcript of each out; or texts scored under clips."""

from collections.abc import Iterable, Sequence

import numpy as np

from modalities.ports import (
    SPEECH_RATE_HZ,
    Claim,
    Clip,
    EachRecognizer,
    Fit,
    Fits,
    Recognition,
    Scorer,
    SpeechRecognizer,
)
from orchestrator.scheduling.work import (
    AlternativeText,
    Score,
    Scored,
    TextFit,
    Transcribe,
    Transcribed,
    WordFound,
    WordsApart,
)
from orchestrator.workers.desk import Tell, Wanted
from orchestrator.workers.frames import Task


class Transcriber:
    """One call of the recogniser is one step: a cancel is honoured before it and before each of its results is told."""

    def __init__(self, recognizer: SpeechRecognizer) -> None:
        self._recognizer = recognizer

    def probe(self) -> str:
        """Recognises a second of faint noise."""
        noise = np.random.default_rng(0).normal(0, 30, SPEECH_RATE_HZ).astype(np.int16)
        self._recognizer.recognize([Clip(noise, draft=True)])
        return type(self._recognizer).__name__

    def do(self, tasks: Sequence[Task], tell: Tell, wanted: Wanted) -> None:
        self._score(
            [(task.job_id, task.work) for task in tasks if isinstance(task.work, Score)], tell, wanted
        )
        jobs = [(task.job_id, _transcribe(task)) for task in tasks if not isinstance(task.work, Score)]
        sounding = [(job_id, work) for job_id, work in jobs if work.audio]
        for job_id, work in jobs:
            if not work.audio and wanted(job_id):
                tell(transcribed(job_id, Recognition("")))
        for place, found in self._each([clip_of(work, job_id) for job_id, work in sounding]):
            job_id = sounding[place][0]
            if wanted(job_id):
                tell(transcribed(job_id, found))

    def _each(self, clips: Sequence[Clip]) -> Iterable[tuple[int, Recognition]]:
        """What is certain of one clip waits for no second look at another, where the engine can tell."""
        if not clips:
            return ()
        if isinstance(self._recognizer, EachRecognizer):
            return self._recognizer.recognize_each(clips)
        return zip(range(len(clips)), self._recognizer.recognize(clips), strict=True)

    def _score(self, jobs: Sequence[tuple[str, Score]], tell: Tell, wanted: Wanted) -> None:
        """An engine that cannot score tells nothing about any text."""
        asked = [(job_id, work) for job_id, work in jobs if wanted(job_id)]
        results: Sequence[Fits | None] = [None] * len(asked)
        if asked and isinstance(self._recognizer, Scorer):
            results = self._recognizer.score([claim_of(work) for _, work in asked])
        for (job_id, work), fits in zip(asked, results, strict=True):
            if wanted(job_id):
                tell(scored(job_id, work, fits))


def clip_of(work: Transcribe, job_id: str = "") -> Clip:
    """Returns the clip that a job asks to recognise; what is heard in finals is kept under the job's id. Raises
    `ValueError` for half a sample."""
    pcm = np.frombuffer(work.audio, dtype="<i2")
    key = "" if work.draft else job_id
    return Clip(pcm, work.language, work.prompt, work.draft, work.rung, key, work.alternatives)


def claim_of(work: Score) -> Claim:
    """Returns what a job asks to score. Raises `ValueError` for half a sample."""
    pcm = np.frombuffer(work.audio, dtype="<i2")
    return Claim(Clip(pcm, work.language, rung=work.rung, key=work.near), work.recognised, work.texts)


def scored(job_id: str, work: Score, fits: Fits | None) -> Scored:
    """Returns what was found about a job's texts as a report."""
    if fits is None:
        return Scored(job_id)
    texts = zip(work.texts, fits.texts, strict=True)
    return Scored(
        job_id, _fit(work.recognised, fits.recognised), tuple(_fit(text, fit) for text, fit in texts)
    )


def _fit(text: str, fit: Fit) -> TextFit:
    apart = tuple(WordsApart(one.recognised, one.text, one.ratio) for one in fit.differences)
    return TextFit(text, fit.text, fit.total, fit.mean, fit.lowest, apart)


def transcribed(job_id: str, found: Recognition) -> Transcribed:
    """Returns a recogniser's result as a report."""
    return Transcribed(
        job_id,
        found.text,
        tuple(WordFound(word.text, word.start_s, word.stop_s, word.probability) for word in found.words),
        found.language,
        found.average_logprob,
        found.no_speech_probability,
        found.compression_ratio,
        found.rung,
        tuple(AlternativeText(one.text, one.log_probability) for one in found.alternatives),
    )


def _transcribe(task: Task) -> Transcribe:
    if not isinstance(task.work, Transcribe):
        raise TypeError(f"a recogniser was given {type(task.work).__name__}")
    return task.work
