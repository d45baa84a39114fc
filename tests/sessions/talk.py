"""Drives a session's heart by hand: what happens goes in, what it does is kept, jobs are answered by the test.

A strict client follows every event: whatever a test is about, it fails where the protocol is broken.
"""

import json
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from orchestrator.clock import US_PER_MS
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.work import (
    Failed,
    Replied,
    Reply,
    ReplyCall,
    ReplyText,
    Report,
    Speak,
    SpeechPiece,
    Spoke,
    Transcribe,
    Transcribed,
    Understand,
    Understood,
    Work,
)
from orchestrator.sessions import effects as do
from orchestrator.sessions import events as on
from orchestrator.sessions.links import LinkKind
from orchestrator.sessions.rules import SessionRules
from orchestrator.sessions.session import Session
from orchestrator.wire import codec
from orchestrator.wire.client import CreateItem
from orchestrator.wire.items import HELD_IMAGE, InputImage, InputText, Message
from orchestrator.wire.session import Session as SessionView
from tests.sessions.strict_client import StrictClient

WINDOW = 512
Shown = dict[str, Any]
Listener = Callable[[on.Event, int, tuple[do.Effect, ...], Session], None]


def view(**changes: Any) -> SessionView:
    """Returns a default session object."""
    session = SessionView(id="sess_test", model="chorale", expires_at=0, instructions="Be kind.")
    return msgspec.structs.replace(session, **changes)


def plain_meaning(text: str) -> Understood:
    """A text that means its words."""
    return Understood("", normal=text.lower().strip(" .,?!"))


class Talk:
    """One session and everything it did. Times are milliseconds, sound positions follow them. `listener` makes what
    listens to a session's steps (`conftest.py`: each is recorded and replayed)."""

    listener: ClassVar[Callable[[SessionView, SessionRules], Listener] | None] = None

    def __init__(
        self,
        rules: SessionRules | None = None,
        session: SessionView | None = None,
        kind: LinkKind = LinkKind.WEBSOCKET,
    ) -> None:
        session, rules = session or view(), rules or SessionRules()
        self.heart = Session(session, rules, "T", 0)
        self.tap = None if Talk.listener is None else Talk.listener(session, rules)
        self.now_ms = 0.0
        self.log: list[Shown] = []
        self.told: list[tuple[str, Shown]] = []
        self.effects: list[do.Effect] = []
        self.jobs: dict[str, Job] = {}
        self.taken_back: list[Job] = []
        self.sound: list[do.EmitAudio] = []
        self.closed: tuple[int, str] | None = None
        self.position = 0
        self.strict = StrictClient()
        self.meaning: Callable[[str], Understood | None] = plain_meaning
        """What the understanding worker makes of a text, at once; None where it takes its time."""
        self.thoughts: dict[str, Understand] = {}
        """Texts that are still to be understood."""
        self.step(on.LinkJoined("link", kind))

    # -- in ---------------------------------------------------------------------------------------------------------

    def step(self, event: on.Event) -> list[Shown]:
        """Takes one event now; returns what was emitted to everyone by it."""
        before = len(self.log)
        now = int(self.now_ms * US_PER_MS)
        effects = self.heart.receive(event, now)
        if self.tap is not None:
            self.tap(event, now, effects, self.heart)
        for effect in effects:
            self._keep(effect)
        self.think()
        return self.log[before:]

    def think(self) -> None:
        """The understanding worker answers what it has an answer to."""
        for job_id, work in list(self.thoughts.items()):
            found = self.meaning(work.text)
            if found is not None and self.thoughts.pop(job_id, None) is not None:
                self.report(msgspec.structs.replace(found, job_id=job_id))

    def wait(self, ms: float) -> None:
        """Lets time pass, with the deadlines that fall into it."""
        end = self.now_ms + ms
        while (deadline := self.heart.deadline) is not None and deadline / US_PER_MS <= end:
            self.now_ms = max(self.now_ms, deadline / US_PER_MS)
            self.step(on.TimePassed())
        self.now_ms = end

    def client(self, type: str, link: str = "link", **fields: Any) -> list[Shown]:
        """Says a client event, by its JSON."""
        event = codec.decode_client(json.dumps({"type": type, **fields}))
        return self.step(on.ClientSaid(link, event, self.position, int(self.now_ms * US_PER_MS)))

    def update(self, **session: Any) -> list[Shown]:
        return self.client("session.update", session={"type": "realtime", **session})

    def typed(self, text: str, **fields: Any) -> list[Shown]:
        """Creates a user's text item."""
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        return self.client("conversation.item.create", item={**item, **fields})

    def image(self, number: int, text: str = "", **fields: Any) -> list[Shown]:
        """Creates a user's item with an image that has been read, as the shell hands it in."""
        words = (InputText(text),) if text else ()
        item = Message("user", (*words, InputImage(f"{HELD_IMAGE}{number}")), **fields)
        said = on.ClientSaid("link", CreateItem(item=item), self.position, int(self.now_ms * US_PER_MS))
        return self.step(said)

    def hear(self, ms: float, probability: float) -> None:
        """Lets `ms` of sound arrive in real time, all of one speech probability."""
        stop = self.position + int(ms * 16)
        first, last = self.position // WINDOW, stop // WINDOW
        for window in range(first, last):
            self.now_ms += 32
            self.position = (window + 1) * WINDOW
            at = int(self.now_ms * US_PER_MS)
            self.step(on.AudioHeard(self.position, at, window, (probability,), live=True))

    def speak(self, ms: float = 1_000) -> None:
        """The user speaks, and then is silent for long enough to end the turn."""
        self.hear(ms, 0.95)
        self.hear(700, 0.01)

    # -- answering jobs ---------------------------------------------------------------------------------------------

    def open_jobs(self, kind: type[Work]) -> list[str]:
        return [job.id for job in self.jobs.values() if isinstance(job.work, kind)]

    def finals(self) -> list[str]:
        """Jobs of final transcripts."""
        return [
            job.id for job in self.jobs.values() if isinstance(job.work, Transcribe) and not job.work.draft
        ]

    def report(self, report: Report) -> list[Shown]:
        return self.step(on.ReportCame(report))

    def transcribed(self, text: str, job_id: str | None = None) -> list[Shown]:
        job_id = job_id or self.finals()[0]
        self.jobs.pop(job_id, None)
        return self.report(Transcribed(job_id, text))

    def failed(self, job_id: str, code: str = "worker_failed") -> list[Shown]:
        self.jobs.pop(job_id, None)
        return self.report(Failed(job_id, code, "speech recognition failed repeatedly"))

    def reply_job(self) -> str:
        (job_id,) = self.open_jobs(Reply)
        return job_id

    def prompt(self) -> list[tuple[str, str]]:
        """The messages of the open reply job."""
        work = self.jobs[self.reply_job()].work
        assert isinstance(work, Reply)
        return [(m.role, m.content) for m in work.messages]

    def writes(self, text: str) -> list[Shown]:
        return self.report(ReplyText(self.reply_job(), text))

    def calls(self, name: str, arguments: str) -> list[Shown]:
        return self.report(ReplyCall(self.reply_job(), 0, arguments, name))

    def finishes(self, reason: str = "stop") -> list[Shown]:
        job_id = self.reply_job()
        del self.jobs[job_id]
        return self.report(Replied(job_id, reason, 10, 0, 5))

    def sounds(self, ms: int, job_id: str | None = None, index: int = 0) -> list[Shown]:
        """The synthesiser gives so much sound for its oldest open sentence."""
        return self.report(SpeechPiece(job_id or self.open_jobs(Speak)[0], index, 24_000, ms * 24))

    def spoke(self, job_id: str | None = None) -> list[Shown]:
        job_id = job_id or self.open_jobs(Speak)[0]
        del self.jobs[job_id]
        return self.report(Spoke(job_id, 1))

    def answer(self, text: str, ms: int = 2_000) -> None:
        """A whole reply, and its sound where it is spoken."""
        self.writes(text)
        self.finishes()
        while self.open_jobs(Speak):
            self.sounds(ms)
            self.spoke()

    # -- out --------------------------------------------------------------------------------------------------------

    def types(self, *, since: int = 0) -> list[str]:
        return [event["type"] for event in self.log[since:]]

    def all(self, type: str) -> list[Shown]:
        return [event for event in self.log if event["type"] == type]

    def last(self, type: str) -> Shown:
        return self.all(type)[-1]

    def errors(self) -> list[Shown]:
        return [event["error"] for _, event in self.told if event["type"] == "error"]

    def history(self) -> list[tuple[str, str]]:
        """What a model would be told now, without the instructions."""
        return [(m.role, m.content) for m in self.heart.conversation.prompt("")]

    def _keep(self, effect: do.Effect) -> None:
        self.effects.append(effect)
        match effect:
            case do.Emit():
                self.log.append(json.loads(msgspec.json.encode(effect.event)))
                self.strict.feed(self.log[-1])
            case do.Tell():
                self.told.append((effect.link_id, json.loads(msgspec.json.encode(effect.event))))
            case do.Start():
                if isinstance(effect.job.work, Understand):
                    self.thoughts[effect.job.id] = effect.job.work
                else:
                    self.jobs[effect.job.id] = effect.job
            case do.Cancel():
                self.thoughts.pop(effect.job_id, None)
                job = self.jobs.pop(effect.job_id, None)
                if job is not None:
                    self.taken_back.append(job)
            case do.EmitAudio():
                self.sound.append(effect)
                self.strict.feed(
                    {
                        "type": "response.output_audio.delta",
                        "response_id": effect.response_id,
                        "item_id": effect.item_id,
                        "output_index": effect.output_index,
                        "content_index": effect.content_index,
                    }
                )
            case do.CloseLinks():
                self.closed = (effect.code, effect.reason)
            case _:
                pass
