"""Workers that answer at once, by rules of the test: for sessions on virtual time."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from orchestrator.scheduling.job import Job
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.work import (
    Embed,
    Embedded,
    Replied,
    Reply,
    ReplyText,
    Report,
    Score,
    Scored,
    Speak,
    SpeechPiece,
    Spoke,
    Transcribe,
    Transcribed,
    Understand,
    Understood,
    WorkKind,
)
from orchestrator.scheduling.worker_ports import WorkerEvents

Answer = Callable[[Job], Sequence[Report]]


def obliging(job: Job) -> Sequence[Report]:
    """Hears "hello", can score nothing, replies "You said: …" and speaks 50 ms a character."""
    match job.work:
        case Transcribe():
            return [Transcribed(job.id, "hello" if job.work.audio else "")]
        case Score():
            return [Scored(job.id)]
        case Understand():
            return [Understood(job.id)]
        case Embed(texts=texts):
            return [Embedded(job.id, tuple(bytes(16) for _ in texts), len(texts))]
        case Reply(messages=messages):
            return [ReplyText(job.id, f"You said: {messages[-1].content}."), Replied(job.id, "stop", 1, 0, 1)]
        case Speak(text=text):
            samples = len(text) * 1_200
            return [SpeechPiece(job.id, 0, 24_000, samples, bytes(2 * samples)), Spoke(job.id, 1)]


class FakeWorkers:
    """Implements the dispatcher's `Workers`: every job is answered after `delay_s` of the loop's time."""

    def __init__(self, answer: Answer = obliging, delay_s: float = 0.05) -> None:
        self.answer = answer
        self.delay_s = delay_s
        self.jobs: list[Job] = []
        self.cancelled: list[str] = []
        self._events: WorkerEvents | None = None

    def listen(self, events: WorkerEvents) -> None:
        self._events = events

    def free(self) -> Mapping[str, FreeSlots]:
        kinds = ("asr", "llm", "speech", "understand")
        return {kind: FreeSlots(kind, 4) for kind in kinds}  # type: ignore[arg-type]

    def hopeless(self, kind: WorkKind) -> bool:
        return False

    def send(self, worker_id: str, jobs: Sequence[Job]) -> None:
        for job in jobs:
            self.jobs.append(job)
            asyncio.get_running_loop().call_later(self.delay_s, self._give, worker_id, job)

    def cancel(self, worker_id: str, job_id: str) -> None:
        self.cancelled.append(job_id)

    def _give(self, worker_id: str, job: Job) -> None:
        assert self._events is not None
        for report in () if job.id in self.cancelled else self.answer(job):
            self._events.reported(worker_id, report)
        self._events.freed()
