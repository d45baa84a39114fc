"""All worker processes of a server, as the one thing that the dispatcher gives work to."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from orchestrator.clock import Clock
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.work import Report, WorkKind
from orchestrator.scheduling.worker_ports import WorkerEvents
from orchestrator.workers.process import WorkerProcess, WorkTimes
from orchestrator.workers.spec import PoolSettings, WorkerState
from orchestrator.workers.supervision import Phase

Progress = Callable[[str, str], None]
"""Told the worker's id and a line: ``starting``, ``loading``, ``ready in 1.2 s``, ``failed: …``."""


class WorkerPool:
    """Starts its processes side by side and keeps them alive; a process that cannot start takes nobody down."""

    def __init__(self, settings: PoolSettings, clock: Clock, progress: Progress | None = None) -> None:
        self._clock = clock
        self._progress = progress
        self._listener: WorkerEvents | None = None
        self._times: WorkTimes | None = None
        self._settling = asyncio.Event()
        self._processes = {
            f"{spec.kind}-{number}": WorkerProcess(
                f"{spec.kind}-{number}", spec, settings.supervision, clock, self
            )
            for spec in settings.workers
            for number in range(1, spec.count + 1)
        }
        self._kinds: frozenset[WorkKind] = frozenset(spec.kind for spec in settings.workers)
        self._began_us = dict.fromkeys(self._processes, 0)

    async def run(self) -> None:
        """Keeps all workers running until `stop` is called. Cancelling it kills them."""
        async with asyncio.TaskGroup() as tasks:
            for worker_id, process in self._processes.items():
                self.moved(worker_id)
                tasks.create_task(process.run(), name=f"worker {worker_id}")

    async def stop(self) -> None:
        """Lets running jobs end (bounded by `Supervision.drain_s`) and makes `run` return. Idempotent."""
        await asyncio.gather(*(process.stop() for process in self._processes.values()))

    async def settled(self) -> None:
        """Waits until every worker is ready or has failed at least once. Cancelling loses nothing."""
        while not all(process.tried for process in self._processes.values()):
            self._settling.clear()
            await self._settling.wait()

    async def complete(self) -> None:
        """Waits until there is a ready worker of every configured kind (`ready`). Cancelling loses nothing."""
        while not self.ready:
            self._settling.clear()
            await self._settling.wait()

    @property
    def ready(self) -> bool:
        """Says whether there is a ready worker of every configured kind."""
        return self._kinds == {
            process.spec.kind for process in self._processes.values() if process.phase is Phase.READY
        }

    def states(self) -> list[WorkerState]:
        """Returns every worker's state now, with its memory and processor time."""
        return [process.state() for process in self._processes.values()]

    def memory_shares(self) -> Mapping[str, float | None]:
        """Returns what every worker has in use of its memory, None where it has not told."""
        return {worker_id: process.memory_share for worker_id, process in self._processes.items()}

    # --- Workers ------------------------------------------------------------------------------------------------------

    def listen(self, events: WorkerEvents) -> None:
        self._listener = events
        self._times = events if isinstance(events, WorkTimes) else None

    def free(self) -> Mapping[str, FreeSlots]:
        return {
            worker_id: FreeSlots(process.spec.kind, process.room, _free(process.memory_share))
            for worker_id, process in self._processes.items()
            if process.room
        }

    def hopeless(self, kind: WorkKind) -> bool:
        mine = [process for process in self._processes.values() if process.spec.kind == kind]
        return bool(mine) and all(process.hopeless for process in mine)

    def send(self, worker_id: str, jobs: Sequence[Job]) -> None:
        self._processes[worker_id].send(jobs)

    def cancel(self, worker_id: str, job_id: str) -> None:
        self._processes[worker_id].cancel(job_id)

    # --- ProcessEvents ------------------------------------------------------------------------------------------------

    def reported(self, worker_id: str, report: Report) -> None:
        if self._listener is not None:
            self._listener.reported(worker_id, report)

    def worked(self, worker_id: str, job_id: str, began_us: int, ended_us: int) -> None:
        if self._times is not None:
            self._times.worked(worker_id, job_id, began_us, ended_us)

    def lost(self, worker_id: str) -> None:
        if self._listener is not None:
            self._listener.lost(worker_id)

    def freed(self) -> None:
        if self._listener is not None:
            self._listener.freed()

    def moved(self, worker_id: str) -> None:
        self._settling.set()
        process = self._processes[worker_id]
        if process.phase is Phase.STARTING:
            self._began_us[worker_id] = self._clock.now_us()
        if self._progress is not None:
            took_s = (self._clock.now_us() - self._began_us[worker_id]) / 1_000_000
            self._progress(worker_id, _line(process, took_s))
        is_down = process.phase in (Phase.WAITING, Phase.BROKEN)
        if is_down and self._listener is not None and self.hopeless(process.spec.kind):
            self._listener.gave_up(process.spec.kind)


def _free(memory_share: float | None) -> float:
    """Returns the free share of a worker's memory; one that has not told counts as empty."""
    return 1.0 if memory_share is None else max(0.0, 1.0 - memory_share)


def _line(process: WorkerProcess, took_s: float) -> str:
    reason = process.state().reason.partition("\n")[0]
    match process.phase:
        case Phase.STARTING:
            return "starting"
        case Phase.LOADING:
            return "loading"
        case Phase.READY:
            return f"ready in {took_s:.1f} s"
        case Phase.WAITING:
            return f"failed: {reason}; it is started again"
        case Phase.BROKEN:
            return f"failed: {reason}"
        case Phase.STOPPED:
            return "stopped"
