"""Where recordings and scenarios are run: today's rules and models by configuration, loaded once, on virtual time.

Models run in worker processes with a loop of their own, in a thread; the session's virtual time stands still while they
work, so that what comes out does not depend on how fast this machine is.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from msgspec import structs

from modalities.ports import SPEECH_RATE_HZ, Pcm
from orchestrator.clients.recording import read_recording
from orchestrator.clock import MonotonicClock
from orchestrator.errors import ChoraleError
from orchestrator.recording.journal import JOURNAL_SUFFIX, SOUND_SUFFIX, Journal
from orchestrator.recording.outcome import Outcome, note_of
from orchestrator.recording.rehearsal import Rehearsed, prepare, rehearse
from orchestrator.recording.rerun import compare, rerun, stories
from orchestrator.recording.scenario import Scenario
from orchestrator.recording.scripted import scripted
from orchestrator.recording.stage import Company
from orchestrator.recording.virtual_time import VirtualTimeLoop
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.splice import ends_a_job
from orchestrator.scheduling.work import Report, WorkKind
from orchestrator.scheduling.worker_ports import WorkerEvents
from orchestrator.settings.engines import as_installed, detector, worker_specs
from orchestrator.settings.loading import load
from orchestrator.settings.parts import registry_settings
from orchestrator.settings.schema import Settings
from orchestrator.workers.pool import WorkerPool
from orchestrator.workers.spec import PoolSettings
from orchestrator.workers.voice_activity import VoiceActivity

_PLACES = 8
_WITHIN_US = 600_000_000
_READY_WITHIN_S = 600.0
Progress = Callable[[str, float], None]


class WorkersFailed(ChoraleError):
    """The models could not be started; the text says which, and why."""

    code: ClassVar[str] = "workers_failed"


class Models:
    """Worker processes with a loop in a thread of its own. `start` and `close` once each."""

    def __init__(self, settings: Settings) -> None:
        """Raises `ConfigError`, `ModelMissing`."""
        self._pool_settings = PoolSettings(worker_specs(settings))
        self.kinds: tuple[WorkKind, ...] = tuple(spec.kind for spec in self._pool_settings.workers)
        self.detector = detector(settings)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._dispatcher: Dispatcher | None = None
        self._ready = threading.Event()
        self._failure: str | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="models", daemon=True)

    def start(self) -> None:
        """Waits until every worker is ready. Raises `WorkersFailed`."""
        self._thread.start()
        if not self._ready.wait(_READY_WITHIN_S) or self._failure is not None:
            self.close()
            raise WorkersFailed(self._failure or "the workers were not ready in time")

    def close(self) -> None:
        """Ends the processes. Idempotent."""
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None and self._thread.is_alive():
            loop.call_soon_threadsafe(stop.set)
            self._thread.join(60)

    def call(self, what: Callable[[Dispatcher], None]) -> None:
        """Has something done on the loop of the processes. Never waits."""
        loop, dispatcher = self._loop, self._dispatcher
        assert loop is not None
        assert dispatcher is not None
        loop.call_soon_threadsafe(what, dispatcher)

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        finally:
            self._failure = self._failure or (None if self._ready.is_set() else "the workers have ended")
            self._ready.set()

    async def _live(self) -> None:
        clock = MonotonicClock()
        pool = WorkerPool(self._pool_settings, clock)
        self._dispatcher = Dispatcher(pool, clock)
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._dispatcher.start()
        working = asyncio.create_task(pool.run())
        try:
            await pool.settled()
            if not pool.ready:
                faults = [f"{one.worker_id}: {one.reason}" for one in pool.states() if one.reason]
                self._failure = "; ".join(faults) or "the workers did not start"
            self._ready.set()
            if self._failure is None:
                await self._stop.wait()
            await pool.stop()
            await working
        finally:
            self._dispatcher.close()
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


class RemoteWorkers:
    """Implements `Workers` on a virtual loop: jobs go to `Models`, and time stands still until they are answered."""

    def __init__(self, models: Models) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        self._loop = loop
        self._models = models
        self._events: WorkerEvents | None = None
        self._open: dict[str, str] = {}
        self._sessions: set[str] = set()

    def listen(self, events: WorkerEvents) -> None:
        self._events = events

    def free(self) -> Mapping[str, FreeSlots]:
        return {
            kind: FreeSlots(kind, _PLACES - sum(one == kind for one in self._open.values()))
            for kind in self._models.kinds
        }

    def hopeless(self, kind: WorkKind) -> bool:
        return kind not in self._models.kinds

    def send(self, worker_id: str, jobs: Sequence[Job]) -> None:
        for job in jobs:
            self._open[job.id] = worker_id
            self._loop.hold()
            is_new = job.session_id not in self._sessions
            self._sessions.add(job.session_id)
            self._models.call(partial(self._submit, job, is_new))

    def cancel(self, worker_id: str, job_id: str) -> None:
        if self._open.pop(job_id, None) is not None:
            self._models.call(lambda dispatcher: dispatcher.cancel(job_id))
            self._loop.release()
            if self._events is not None:
                self._loop.call_soon(self._events.freed)

    def close(self) -> None:
        """Takes everything back."""
        for job_id, worker_id in list(self._open.items()):
            self.cancel(worker_id, job_id)
        for session_id in self._sessions:
            self._models.call(partial(_drop, session_id))

    def _submit(self, job: Job, is_new: bool, dispatcher: Dispatcher) -> None:
        """On the other loop. A guess is no guess here: time waits for it anyway."""
        if is_new:
            dispatcher.listen(job.session_id, self._deliver)
        now = MonotonicClock().now_us()
        dispatcher.submit(
            structs.replace(job, created_us=now, due_us=now, deadline_us=now + _WITHIN_US, speculative=False)
        )

    def _deliver(self, report: Report) -> None:
        """On the other loop."""
        self._loop.call_soon_threadsafe(self._came, report)

    def _came(self, report: Report) -> None:
        worker_id = self._open.get(report.job_id)
        if worker_id is None or self._events is None:
            return
        if ends_a_job(report):
            del self._open[report.job_id]
            self._loop.release()
        self._events.reported(worker_id, report)
        self._events.freed()


class Studio:
    """Runs recordings and scenarios; models are loaded when they are first needed, once for each configuration."""

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings
        self._models: dict[Path | None, Models] = {}

    def rehearse(
        self,
        scenario: Scenario,
        path: Path,
        engines: str | None = None,
        tell: Callable[[float], None] | None = None,
    ) -> Rehearsed:
        """Runs a scenario that stands in a file. `engines` overrides its own. Raises `ChoraleError`."""
        named = engines or scenario.engines
        config = None if named in ("scripted", "real") else path.parent / named
        settings = self._load(config)
        prepared = prepare(scenario, path.parent, read_sound, registry_settings(settings).rules)
        if named == "scripted":
            return rehearse(prepared, scenario, lambda: scripted(prepared.script), str(path), tell)
        models = self.models(config)
        return rehearse(prepared, scenario, lambda: company(models), str(path), tell)

    def rerun(self, journal: Journal, progress: Progress) -> Outcome:
        """Runs a recording's inputs through today's models. Raises `ChoraleError`."""
        models, today = self.models(None), registry_settings(self._load(None)).rules
        began_s = time.perf_counter()
        again = rerun(journal, lambda: company(models), today, lambda done: progress(journal.name, done))
        before, after = stories(journal, again, today)
        differences = compare(before, after)
        took_s = time.perf_counter() - began_s
        steps = sum(1 for _ in again.steps())
        return Outcome(
            journal.name, "rerun", steps, after.lasted_us / 1e6, took_s, differences, note_of(journal)
        )

    def models(self, config: Path | None) -> Models:
        """Returns the models of a configuration, running. Raises `ChoraleError`."""
        found = self._models.get(config)
        if found is None:
            found = self._models[config] = Models(self._load(config))
            found.start()
        return found

    def close(self) -> None:
        """Ends all models. Idempotent."""
        for models in self._models.values():
            models.close()
        self._models.clear()

    def _load(self, config: Path | None) -> Settings:
        settings = self._settings if config is None and self._settings is not None else load(config)
        return as_installed(settings)


def _drop(session_id: str, dispatcher: Dispatcher) -> None:
    dispatcher.drop_session(session_id)


def company(models: Models) -> Company:
    """Returns running models as the company of one session; call it on the session's loop."""
    workers, voice = RemoteWorkers(models), VoiceActivity(models.detector)

    def close() -> None:
        workers.close()
        voice.close()

    return Company(workers, voice, close)


def store(rehearsed: Rehearsed, folder: Path, name: str) -> Path:
    """Writes a rehearsed session into a folder, for this account only; returns its journal. Raises `OSError`."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    journal, sound = (folder / f"{name}{suffix}" for suffix in (JOURNAL_SUFFIX, SOUND_SUFFIX))
    for path, data in ((sound, rehearsed.performed.sound), (journal, rehearsed.performed.data)):
        path.touch(0o600)
        path.write_bytes(data)
    return journal


def read_sound(path: Path) -> Pcm:
    """Reads a recording in any format that FFmpeg knows. Raises `OSError`, `NotSound`."""
    return read_recording(path, SPEECH_RATE_HZ)
