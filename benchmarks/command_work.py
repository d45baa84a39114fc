"""Who does a session's work in `chorale bench commands`: the real recogniser and the real understanding, remembered.

Sessions run on virtual time. What a model says of a piece of work comes after as long as it took to find it (or at
once), so that deadlines mean what they mean on this machine, and what waiting cost can be read off the session's own
clock. The same work is done once: with the engine and without it a recogniser hears the very same.
"""

import asyncio
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from msgspec import structs

from orchestrator.errors import ChoraleError
from orchestrator.recording.stage import Company
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.work import (
    Failed,
    Replied,
    Reply,
    ReplyText,
    Report,
    Score,
    Transcribe,
    Understand,
    Work,
    WorkKind,
)
from orchestrator.scheduling.worker_ports import WorkerEvents
from orchestrator.sessions.rules import SessionRules
from orchestrator.settings.engines import detector, worker_spec
from orchestrator.settings.loading import load
from orchestrator.settings.parts import registry_settings
from orchestrator.settings.schema import Settings
from orchestrator.workers.desk import Craft
from orchestrator.workers.engines import load as load_craft
from orchestrator.workers.frames import Configure, Task
from orchestrator.workers.voice_activity import VoiceActivity

REPLY = "All right."
_PLACES: Mapping[WorkKind, int] = {"asr": 1, "understand": 1, "llm": 4}
_FILE = "work.jsonl"


class ModelFailed(ChoraleError):
    """A model could not do its work: what came of the conversation says nothing. The log says why."""

    code: ClassVar[str] = "model_failed"


@dataclass(frozen=True, slots=True)
class Done:
    """What a model said, and how long it took."""

    report: Report
    seconds: float


@dataclass(slots=True)
class Models:
    """The models of this machine, loaded when they are first needed. `keep`: a folder in which the recogniser's answers
    are kept, who is by far the dearest; `instant`: they take no time, so that a run is the same on every machine."""

    keep: Path | None = None
    instant: bool = False
    second: bool = False
    _unfinished: str = ""
    _known: dict[str, Done] = field(default_factory=dict)
    _crafts: dict[str, Craft] = field(default_factory=dict)
    _settings: dict[str, Settings] = field(default_factory=dict)
    _rules: dict[str, SessionRules] = field(default_factory=dict)
    _voice: Any = None  # a `VoiceActivityDetector`; adapters are built by name

    def __post_init__(self) -> None:
        if self.keep is not None and (self.keep / _FILE).is_file():
            for line in (self.keep / _FILE).read_bytes().splitlines():
                key, seconds, report = msgspec.json.decode(line, type=tuple[str, float, str])
                self._known[key] = Done(msgspec.msgpack.decode(b64decode(report), type=Report), seconds)

    def rules(self, domain: str) -> SessionRules:
        """Returns what sessions of a domain live by."""
        if domain not in self._rules:
            self._rules[domain] = registry_settings(self._settings_of(domain)).rules
        return self._rules[domain]

    def company(self, domain: str) -> Company:
        """Returns company for one session; call it on the session's loop."""
        if self._voice is None:
            self._voice = detector(self._settings_of(domain))
        voice = VoiceActivity(self._voice)
        return Company(RememberedWorkers(self, domain), voice, voice.close)

    def do(self, work: Work, domain: str) -> Done:
        """Returns what a model says of a piece of work, and how long it took when it was done first."""
        key = _key(work, domain)
        if key not in self._known:
            self._unfinished = type(work).__name__
            self._known[key] = done = self._ask(work, domain, key)
            self._unfinished = ""
            if self.keep is not None and not isinstance(work, Understand):
                self.keep.mkdir(parents=True, exist_ok=True)
                report = b64encode(msgspec.msgpack.encode(done.report)).decode()
                with (self.keep / _FILE).open("ab") as file:
                    file.write(msgspec.json.encode((key, done.seconds, report)) + b"\n")
        done = self._known[key]
        return Done(done.report, 0.0 if self.instant else done.seconds)

    def check(self) -> None:
        """Raises `ModelFailed` where a model has failed: the event loop of a session only logs it."""
        if self._unfinished:
            raise ModelFailed(f"a model could not do its work ({self._unfinished})")

    def _ask(self, work: Work, domain: str, key: str) -> Done:
        """A score is asked for under the name of the sound, as the recogniser has heard it: a server's worker still
        has what it heard."""
        name = "asr" if isinstance(work, Transcribe | Score) else f"understand {domain}"
        if name not in self._crafts:
            self._crafts[name] = self._load(name, domain)
        if isinstance(work, Score):
            work = structs.replace(work, near=_sound(work.audio, 0))
        job_id = _sound(work.audio, work.rung) if isinstance(work, Transcribe) else key
        told: list[Report] = []
        began_s = time.perf_counter()
        self._crafts[name].do([Task(job_id, work)], told.append, lambda _: True)
        return Done(told[-1], round(time.perf_counter() - began_s, 4))

    def _load(self, name: str, domain: str) -> Craft:
        role, settings = ("asr" if name == "asr" else "understand"), self._settings_of(domain)
        spec = worker_spec(role, settings.workers.by_role()[role])  # type: ignore[arg-type, index]
        craft = load_craft(
            Configure(spec.kind, spec.engine, dict(spec.options), spec.threads, spec.parallel, 0, 1.0, {})
        )
        craft.probe()
        return craft

    def _settings_of(self, domain: str) -> Settings:
        if domain not in self._settings:
            options: dict[str, object] = {"workers.understand.domain": domain, "workers.speech": None}
            if self.second:
                options["workers.asr.options"] = {"second": "whisper-base"}
            self._settings[domain] = load(None, options=options)
        return self._settings[domain]


class RememberedWorkers:
    """Implements `Workers` on a virtual loop. The recogniser does one thing at a time."""

    def __init__(self, models: Models, domain: str) -> None:
        self._models = models
        self._domain = domain
        self._events: WorkerEvents | None = None
        self._open: dict[str, str] = {}

    def listen(self, events: WorkerEvents) -> None:
        self._events = events

    def free(self) -> Mapping[str, FreeSlots]:
        return {
            kind: FreeSlots(kind, places - sum(one == kind for one in self._open.values()))
            for kind, places in _PLACES.items()
        }

    def hopeless(self, kind: WorkKind) -> bool:
        return kind not in _PLACES

    def send(self, worker_id: str, jobs: Sequence[Job]) -> None:
        for job in jobs:
            self._open[job.id] = worker_id
            reports, seconds = self._reports(job)
            asyncio.get_running_loop().call_later(seconds, self._give, worker_id, job.id, reports)

    def cancel(self, worker_id: str, job_id: str) -> None:
        if self._open.pop(job_id, None) is not None and self._events is not None:
            asyncio.get_running_loop().call_soon(self._events.freed)

    def _give(self, worker_id: str, job_id: str, reports: Sequence[Report]) -> None:
        if self._open.pop(job_id, None) is None or self._events is None:
            return
        for report in reports:
            self._events.reported(worker_id, report)
        self._events.freed()

    def _reports(self, job: Job) -> tuple[Sequence[Report], float]:
        match job.work:
            case Transcribe() | Score() | Understand() as work:
                done = self._models.do(work, self._domain)
                return [structs.replace(done.report, job_id=job.id)], done.seconds
            case Reply():
                return [ReplyText(job.id, REPLY), Replied(job.id, "stop", 1, 0, 2)], 0.0
            case _:
                return [Failed(job.id, "worker_failed", "nobody speaks here")], 0.0


def _key(work: Work, domain: str) -> str:
    """Names a piece of work by everything on which its result depends."""
    match work:
        case Transcribe():
            plain: object = structs.replace(work, start=0, stop=0, clip=None)
        case Score():
            plain = structs.replace(work, start=0, stop=0, clip=None, near="")
        case _:
            plain = (work, domain)
    return blake2b(msgspec.msgpack.encode(plain), digest_size=16).hexdigest()


def _sound(audio: bytes, rung: int) -> str:
    return f"{blake2b(audio, digest_size=16).hexdigest()}/{rung}"
