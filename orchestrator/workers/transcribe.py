"""Recognition in a worker process: a batch of clips in, a transcript of each out."""

from collections.abc import Sequence

import numpy as np

from modalities.ports import SPEECH_RATE_HZ, Clip, Recognition, SpeechRecognizer
from orchestrator.scheduling.work import Transcribe, Transcribed, WordFound
from orchestrator.workers.desk import Tell, Wanted
from orchestrator.workers.frames import Task


class Transcriber:
    """One call of the recogniser is one step: a cancel is honoured before it and after it."""

    def __init__(self, recognizer: SpeechRecognizer) -> None:
        self._recognizer = recognizer

    def probe(self) -> str:
        """Recognises a second of faint noise."""
        noise = np.random.default_rng(0).normal(0, 30, SPEECH_RATE_HZ).astype(np.int16)
        self._recognizer.recognize([Clip(noise, draft=True)])
        return type(self._recognizer).__name__

    def do(self, tasks: Sequence[Task], tell: Tell, wanted: Wanted) -> None:
        jobs = [(task.job_id, _transcribe(task)) for task in tasks]
        sounding = [(job_id, work) for job_id, work in jobs if work.audio]
        results = self._recognizer.recognize([clip_of(work) for _, work in sounding]) if sounding else []
        texts = dict(zip((job_id for job_id, _ in sounding), results, strict=True))
        for job_id, _ in jobs:
            if wanted(job_id):
                tell(transcribed(job_id, texts.get(job_id, Recognition(""))))


def clip_of(work: Transcribe) -> Clip:
    """Returns the clip that a job asks to recognise. Raises `ValueError` for half a sample."""
    pcm = np.frombuffer(work.audio, dtype="<i2")
    return Clip(pcm, work.language, work.prompt, work.draft, work.rung)


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
    )


def _transcribe(task: Task) -> Transcribe:
    if not isinstance(task.work, Transcribe):
        raise TypeError(f"a recogniser was given {type(task.work).__name__}")
    return task.work
