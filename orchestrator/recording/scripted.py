"""Company that knows from a script what was said: for sessions as tests, without a model, the same every time.

Speech is what is loud. A recogniser hears the words that the script has for where the sound lies; a language model says
the next reply; facts of a text are found as workers find them, by rules; its vector is empty.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from modalities.audio.segmenter import WINDOW
from modalities.ports import SPEECH_RATE_HZ, Pcm
from modalities.text.facts import facts_and_form
from orchestrator.recording.stage import Company
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.work import (
    FactFound,
    Failed,
    Replied,
    Reply,
    ReplyText,
    Report,
    SlotFound,
    Speak,
    SpeechPiece,
    Spoke,
    Transcribe,
    Transcribed,
    Understand,
    Understood,
    WordFound,
    WorkKind,
)
from orchestrator.scheduling.worker_ports import WorkerEvents
from orchestrator.sessions.intake import DeliverProbabilities, Sound

_LOUD = 300.0
"""Mean magnitude of a window of int16 samples that counts as speech."""

_WINDOW = 512
"""Samples whose magnitude is taken together, as voice activity detection takes them."""

_PLACES = 8
_KINDS: tuple[WorkKind, ...] = ("asr", "understand", "llm", "speech")
_PIECE = 4_800
_MS_A_CHARACTER = 50


@dataclass(frozen=True, slots=True)
class Spoken:
    """What is said from `start` to `stop` (16 kHz samples), and what the recogniser makes of it."""

    start: int
    stop: int
    words: str


def loud_extent(pcm: Pcm) -> tuple[int, int]:
    """Returns where the sound of a recording begins and ends, within a window: its words lie there, not in the silence
    that was recorded around them. All of it where nothing is loud."""
    loud = [at for at in range(0, len(pcm), _WINDOW) if _is_loud(pcm[np.newaxis, at : at + _WINDOW])[0]]
    return (loud[0], min(len(pcm), loud[-1] + _WINDOW)) if loud else (0, len(pcm))


def _is_loud(windows: Pcm) -> NDArray[np.bool_]:
    return np.asarray(np.abs(windows.astype(np.int32)).mean(axis=1) > _LOUD)


@dataclass(frozen=True, slots=True)
class Meaning:
    intent: str | None = None
    slots: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Script:
    """`replies` are given in turn, the last one again and again. `meanings` are by text, in lower case. `delays_s`:
    how long each kind of work takes."""

    spoken: tuple[Spoken, ...] = ()
    replies: tuple[str, ...] = ("All right.",)
    meanings: Mapping[str, Meaning] = field(default_factory=dict)
    delays_s: Mapping[str, float] = field(default_factory=dict)


class ScriptedWorkers:
    """Implements `Workers`."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._events: WorkerEvents | None = None
        self._replies = 0
        self._open: dict[str, str] = {}

    def listen(self, events: WorkerEvents) -> None:
        self._events = events

    def free(self) -> Mapping[str, FreeSlots]:
        return {
            kind: FreeSlots(kind, _PLACES - sum(one == kind for one in self._open.values()))
            for kind in _KINDS
        }

    def hopeless(self, kind: WorkKind) -> bool:
        return False

    def send(self, worker_id: str, jobs: Sequence[Job]) -> None:
        for job in jobs:
            self._open[job.id] = worker_id
            delay_s = self._script.delays_s.get(worker_id, 0.0)
            asyncio.get_running_loop().call_later(delay_s, self._give, worker_id, job)

    def cancel(self, worker_id: str, job_id: str) -> None:
        if self._open.pop(job_id, None) is not None and self._events is not None:
            asyncio.get_running_loop().call_soon(self._events.freed)

    def _give(self, worker_id: str, job: Job) -> None:
        if self._open.pop(job.id, None) is None or self._events is None:
            return
        for report in self._reports(job):
            self._events.reported(worker_id, report)
        self._events.freed()

    def _reports(self, job: Job) -> list[Report]:
        work = job.work
        match work:
            case Transcribe():
                return [self._heard(job.id, work)]
            case Understand():
                return [self._understood(job.id, work.text)]
            case Reply():
                return self._reply(job)
            case Speak():
                return _spoken(job.id, work.text)
            case _:
                return [Failed(job.id, "worker_failed", "the script has nothing for this work")]

    def _heard(self, job_id: str, work: Transcribe) -> Report:
        """Gives the words of what lies for the most part in the extent; of a draft only those that are over."""
        words = [
            word
            for one in self._script.spoken
            if not work.clip and min(one.stop, work.stop) - max(one.start, work.start) > 0
            for word in _words(one, work)
        ]
        text = " ".join(word.text for word in words)
        return Transcribed(job_id, text, tuple(words), average_logprob=-0.1, rung=work.rung)

    def _understood(self, job_id: str, text: str) -> Report:
        meaning = self._script.meanings.get(text.strip().lower(), Meaning())
        facts, normal = facts_and_form(text)
        slots = tuple(
            SlotFound(name, value, *_place(text, value), 0.9) for name, value in meaning.slots.items()
        )
        named = tuple(FactFound(one.kind, one.value, one.start, one.stop) for one in facts)
        confidence = 0.9 if meaning.intent else 0.0
        return Understood(job_id, b"", meaning.intent, confidence, slots, normal, named)

    def _reply(self, job: Job) -> list[Report]:
        replies = self._script.replies
        text = replies[min(self._replies, len(replies) - 1)]
        self._replies += 1
        return [ReplyText(job.id, text), Replied(job.id, "stop", 1, 0, len(text.split()))]


def _words(spoken: Spoken, work: Transcribe) -> list[WordFound]:
    """Lays a script's words evenly over their extent; gives those whose middle lies within the work's."""
    words = spoken.words.split()
    step = (spoken.stop - spoken.start) / max(1, len(words))
    found = []
    for number, word in enumerate(words):
        start = spoken.start + number * step
        if work.start <= start + step / 2 < work.stop:
            begin_s = (start - work.start) / SPEECH_RATE_HZ
            found.append(WordFound(word, round(begin_s, 3), round(begin_s + step / SPEECH_RATE_HZ, 3), 0.95))
    return found


def _place(text: str, value: str) -> tuple[int, int]:
    start = text.lower().find(value.lower())
    return (start, start + len(value)) if start >= 0 else (-1, -1)


def _spoken(job_id: str, text: str) -> list[Report]:
    rest = len(text) * _MS_A_CHARACTER * 24
    pieces: list[Report] = []
    while rest > 0:
        samples = min(_PIECE, rest)
        pieces.append(SpeechPiece(job_id, len(pieces), 24_000, samples, bytes(2 * samples)))
        rest -= samples
    return [*pieces, Spoke(job_id, len(pieces))]


class LoudnessDetector:
    """Implements the session's `Detector`: what is loud is speech, told in the next turn of the loop."""

    def stream(self, deliver: DeliverProbabilities, sound: Sound) -> "_Stream":
        return _Stream(deliver, sound)


class _Stream:
    def __init__(self, deliver: DeliverProbabilities, sound: Sound) -> None:
        self._deliver = deliver
        self._sound = sound
        self._closed = False
        self.backlog = 0
        self.passed_over = 0

    def push(self, windows: range) -> None:
        heard = np.empty((len(windows), WINDOW), np.int16)
        self._sound.read_into(windows.start * WINDOW, heard.reshape(-1))
        probabilities = tuple(0.95 if loud else 0.02 for loud in _is_loud(heard).tolist())
        self.backlog += len(windows)
        asyncio.get_running_loop().call_soon(self._tell, windows.start, probabilities)

    def close(self) -> None:
        self._closed = True
        self.backlog = 0

    def _tell(self, first_window: int, probabilities: tuple[float, ...]) -> None:
        if not self._closed:
            self.backlog -= len(probabilities)
            self._deliver(first_window, probabilities)


def scripted(script: Script) -> Company:
    """Returns company for one session."""
    return Company(ScriptedWorkers(script), LoudnessDetector())
