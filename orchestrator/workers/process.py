"""One supervised worker process: started, probed, watched, and started again when it dies."""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from orchestrator.clock import Clock, seconds
from orchestrator.errors import InvalidState
from orchestrator.flow.open_files import room_for_process
from orchestrator.observability.faults import FAULTS
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.splice import ends_a_job
from orchestrator.scheduling.work import Report
from orchestrator.workers.frames import (
    Beat,
    Cancel,
    Configure,
    FromWorker,
    Loading,
    Ready,
    Run,
    Task,
    Unable,
    Worked,
)
from orchestrator.workers.last_words import LastWords, secrets_of
from orchestrator.workers.pipe import Pipe
from orchestrator.workers.resources import resources_of
from orchestrator.workers.spec import WorkerSpec, WorkerState
from orchestrator.workers.supervision import (
    BEATS_PER_SILENCE,
    PHASES,
    Backoff,
    Phase,
    PhaseEvent,
    Pulse,
    Supervision,
)

log = logging.getLogger(__name__)

_HOPELESS_STARTS = 3
"""After so many starts in a row that did not make it ready, nobody waits for a process any more."""

_LAST_WORDS_S = 0.5
"""How long a process that ended its pipe may take to end itself and to have its last output read."""


@runtime_checkable
class WorkTimes(Protocol):
    """Who is told when a job was really worked on."""

    def worked(self, worker_id: str, job_id: str, began_us: int, ended_us: int) -> None:
        """A job was worked on from then to then (monotonic µs); its last report follows."""
        ...


class ProcessEvents(WorkTimes, Protocol):
    """What a process tells its pool; called on the event loop."""

    def reported(self, worker_id: str, report: Report) -> None: ...

    def lost(self, worker_id: str) -> None:
        """The process is gone with its jobs; no report of them follows."""
        ...

    def freed(self) -> None: ...

    def moved(self, worker_id: str) -> None:
        """The process is in another phase."""
        ...


@dataclass(frozen=True, slots=True)
class _End:
    """How a life of the process ended."""

    reason: str
    lasting: bool = False
    meant: bool = False
    by_itself: bool = False


class WorkerProcess:
    """Keeps one child process running from `run` to `stop`, through any number of deaths."""

    def __init__(
        self, worker_id: str, spec: WorkerSpec, supervision: Supervision, clock: Clock, events: ProcessEvents
    ) -> None:
        self.worker_id = worker_id
        self.spec = spec
        self._times = supervision
        self._clock = clock
        self._events = events
        self._phase = Phase.STARTING
        self._reason = ""
        self._about = ""
        self._starts = 0
        self._failed_starts = 0
        self._pid: int | None = None
        self._pipe: Pipe | None = None
        self._held: dict[str, int | None] = {}
        """Jobs that the process has; from when on one is not wanted any more, or None."""
        self._end: asyncio.Future[_End] | None = None
        self._stopping = asyncio.Event()
        self._emptied = asyncio.Event()
        self._spawned_us = 0
        self._ready_us: int | None = None
        self._pulse: Pulse | None = None
        self._memory_share: float | None = None
        self._watches, self._listens = map(FAULTS.guard, ("worker watch", "worker output"))

    # --- used by the pool ---------------------------------------------------------------------------------------------

    @property
    def phase(self) -> Phase:
        return self._phase

    @property
    def tried(self) -> bool:
        """Says whether the process has been ready, or has failed, at least once."""
        return self._starts > 1 or self._phase not in (Phase.STARTING, Phase.LOADING)

    @property
    def hopeless(self) -> bool:
        """Says whether the process cannot start as things are: work that needs it should fail now, not wait."""
        return self._phase is Phase.BROKEN or self._failed_starts >= _HOPELESS_STARTS

    @property
    def memory_share(self) -> float | None:
        """What is in use of its memory, as of its last beat; None where it has not told."""
        return self._memory_share

    @property
    def room(self) -> int:
        """How many jobs may be sent now."""
        if self._phase is not Phase.READY or self._pipe is None or self._stopping.is_set():
            return 0
        if self.spec.batches:
            return 0 if self._held else self.spec.parallel
        return self.spec.parallel - len(self._held)

    def send(self, jobs: Sequence[Job]) -> None:
        """Hands jobs over. Raises `InvalidState` beyond `room`."""
        if len(jobs) > self.room or self._pipe is None:
            raise InvalidState(
                f"worker {self.worker_id}", self._phase, f"{len(jobs)} jobs for {self.room} slots"
            )
        self._held.update((job.id, None) for job in jobs)
        self._pipe.send(Run(tuple(Task(job.id, job.work) for job in jobs)))

    def cancel(self, job_id: str) -> None:
        """Asks the process to stop a job; does nothing for one that it does not have (any more)."""
        if self._pipe is not None and job_id in self._held and self._held[job_id] is None:
            self._held[job_id] = self._clock.now_us()
            self._pipe.send(Cancel(job_id))

    def state(self) -> WorkerState:
        resources = resources_of(self._pid)
        return WorkerState(
            worker_id=self.worker_id,
            kind=self.spec.kind,
            engine=self.spec.engine,
            phase=self._phase,
            reason=self._reason,
            about=self._about,
            starts=self._starts,
            jobs=len(self._held),
            pid=self._pid,
            memory_bytes=resources.memory_bytes,
            cpu_s=resources.cpu_s,
            memory_share=self._memory_share,
        )

    async def stop(self) -> None:
        """Takes no more jobs, waits for running ones (`drain_s` at most), then lets `run` end the process."""
        self._stopping.set()
        self._set_emptied()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._times.drain_s):
                await self._emptied.wait()
        self._die(_End("stopped", meant=True))

    async def run(self) -> None:
        """Supervises until `stop`. Cancelling it kills the process."""
        backoff = Backoff(self._times.backoff_first_s, self._times.backoff_limit_s, self._times.steady_s)
        while not self._stopping.is_set():
            end = await self._live()
            if end.meant:
                break
            log.warning("worker %s: %s", self.worker_id, end.reason)
            self._reason = end.reason
            ready_for_us = self._clock.now_us() - self._ready_us if self._ready_us is not None else 0
            self._failed_starts += self._ready_us is None
            self._move(PhaseEvent.REFUSED if end.lasting else PhaseEvent.LOST)
            with suppress(TimeoutError):
                async with asyncio.timeout(None if end.lasting else backoff.after(ready_for_us)):
                    await self._stopping.wait()
            if not self._stopping.is_set():
                self._move(PhaseEvent.RETRIED)
        self._move(PhaseEvent.STOPPED)

    # --- one life -----------------------------------------------------------------------------------------------------

    async def _live(self) -> _End:
        """Runs the child from its start to its end; whatever happens, no process is left behind."""
        self._starts += 1
        self._spawned_us = self._clock.now_us()
        self._ready_us = self._pulse = self._memory_share = None
        self._end = asyncio.get_running_loop().create_future()
        words = LastWords([*secrets_of(self.spec.options), *secrets_of(dict(os.environ))])
        try:
            process, pipe = await self._spawn()
        except OSError as fault:
            return _End(f"could not be started: {fault}")
        self._pid = process.pid
        listening = asyncio.create_task(self._listen(process, words))
        watching = asyncio.create_task(self._watch())
        end = _End("stopped", meant=True)
        try:
            self._pipe = pipe
            pipe.send(self._configuration())
            end = await self._end
        finally:
            self._lose(pipe)
            killed = await self._bury(process, end)
            self._pid = None
            watching.cancel()
            await asyncio.wait({listening}, timeout=_LAST_WORDS_S)
            listening.cancel()
        return _explained(end, None if killed else process.returncode, words)

    async def _spawn(self) -> tuple[asyncio.subprocess.Process, Pipe]:
        """Starts the program with one end of a new pipe; leaves nothing open where that fails. Raises `OSError`."""
        ours, theirs = socket.socketpair()
        pipe = Pipe(self._receive, lambda why: self._die(_End(why, by_itself=True)))
        with theirs:
            try:
                await asyncio.get_running_loop().create_unix_connection(lambda: pipe, sock=ours)
            except BaseException:
                ours.close()
                raise
            try:
                room_for_process()
                process = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", "orchestrator.workers.child", str(theirs.fileno()), str(os.getpid()),
                    stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.PIPE, pass_fds=(theirs.fileno(),), start_new_session=True,
                )  # fmt: skip
            except BaseException:
                pipe.close()
                raise
        return process, pipe

    async def _bury(self, process: asyncio.subprocess.Process, end: _End) -> bool:
        """Ends the process and everything it started: asked first where that is meant, else at once.

        Returns whether it had to be killed.
        """
        if end.meant:
            with suppress(ProcessLookupError):
                process.terminate()
        if end.meant or end.by_itself:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._times.terminate_s if end.meant else _LAST_WORDS_S):
                    await process.wait()
        lives = process.returncode is None
        # The child leads a session of its own, so its group holds what its libraries may have started.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        return lives

    def _configuration(self) -> Configure:
        return Configure(
            kind=self.spec.kind,
            engine=self.spec.engine,
            options=dict(self.spec.options),
            threads=self.spec.threads,
            parallel=self.spec.parallel,
            niceness=self.spec.niceness,
            beat_s=self._times.silence_s / BEATS_PER_SILENCE,
            environment=dict(self.spec.environment),
            memory_bytes=self.spec.memory_bytes,
        )

    def _receive(self, message: FromWorker) -> None:
        if self._pulse is not None:
            self._pulse.heard()
        match message:
            case Beat():
                self._memory_share = message.memory_share if message.memory_share >= 0 else None
            case Worked():
                self._events.worked(self.worker_id, message.job_id, message.began_us, message.ended_us)
            case Loading():
                self._move(PhaseEvent.CONFIGURED)
            case Ready():
                now = self._clock.now_us()
                self._ready_us = now
                self._failed_starts = 0
                self._pulse = Pulse(self._times.silence_s, self._tick_s, now)
                self._about = (
                    f"{message.about}; loaded in {message.load_s:.1f} s, tried in {message.probe_s:.1f} s"
                )
                self._reason = ""
                self._move(PhaseEvent.PROBED)
                self._events.freed()
            case Unable():
                self._die(_End(message.reason, message.lasting, by_itself=True))
            case _:
                self._report(message)

    def _report(self, report: Report) -> None:
        self._events.reported(self.worker_id, report)
        if ends_a_job(report) and report.job_id in self._held:
            del self._held[report.job_id]
            self._set_emptied()
            self._events.freed()

    @property
    def _tick_s(self) -> float:
        return self._times.silence_s / BEATS_PER_SILENCE

    async def _watch(self) -> None:
        """Kills the process when it is silent, stuck, or does not come up."""
        while True:
            await asyncio.sleep(self._tick_s)
            with self._watches:
                self._look()

    def _look(self) -> None:
        now = self._clock.now_us()
        stuck_before = now - seconds(self._times.stuck_s)
        if self._pulse is None:
            if now - self._spawned_us > seconds(self._times.load_s):
                self._die(_End(f"was not ready after {self._times.load_s:g} s"))
        elif self._pulse.is_silent(now):
            self._die(_End(f"was silent for {self._times.silence_s:g} s"))
        elif any(since is not None and since <= stuck_before for since in self._held.values()):
            self._die(_End(f"did not let go of a cancelled job for {self._times.stuck_s:g} s"))

    async def _listen(self, process: asyncio.subprocess.Process, words: LastWords) -> None:
        """Reads what the process prints, so that it never waits for us and we know its last words."""
        assert process.stderr is not None
        while output := await process.stderr.read(4096):
            with self._listens:  # a process whose output nobody reads comes to a stand
                for line in words.feed(output):
                    log.info("worker %s: %s", self.worker_id, line)

    def _die(self, end: _End) -> None:
        """Lets the present life end; the first reason counts."""
        if self._end is not None and not self._end.done():
            self._end.set_result(end)
            if self._pipe is not None and not end.meant:
                self._lose(self._pipe)

    def _lose(self, pipe: Pipe) -> None:
        """Cuts the pipe and gives the jobs back, at once and only once."""
        pipe.close()
        if self._pipe is None:
            return
        self._pipe = None
        self._held.clear()
        self._set_emptied()
        if self._ready_us is not None:
            self._events.lost(self.worker_id)

    def _set_emptied(self) -> None:
        if self._stopping.is_set() and not self._held:
            self._emptied.set()

    def _move(self, event: PhaseEvent) -> None:
        following = PHASES.get((self._phase, event))
        if following is None:
            raise InvalidState(f"worker {self.worker_id}", self._phase, event)
        self._phase = following
        self._events.moved(self.worker_id)


def _explained(end: _End, returncode: int | None, words: LastWords) -> _End:
    """Adds how the process ended, where that was its own doing, and what it said last."""
    reason = words.redact(end.reason)
    if end.by_itself and returncode is not None and returncode < 0:
        reason += f" (killed by {signal.Signals(-returncode).name})"
    last = words.text()
    return replace(end, reason=f"{reason}\n{last}" if last else reason)
