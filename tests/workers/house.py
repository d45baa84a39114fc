"""A dispatcher over a pool of real processes with the engines of `tests.workers.engines`, on the real clock."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator.clock import MonotonicClock, seconds
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.job import Job, Tier
from orchestrator.scheduling.splice import ends_a_job
from orchestrator.scheduling.work import PromptMessage, Reply, ReplyText, Report, Work
from orchestrator.workers.pool import WorkerPool
from orchestrator.workers.spec import PoolSettings, WorkerSpec, WorkerState
from orchestrator.workers.supervision import Supervision

PATIENCE_S = 60.0
"""When a test gives up; nothing here is expected to take so long on any machine."""

HASTY = Supervision(backoff_first_s=0.05, backoff_limit_s=0.2, drain_s=1.0)
WATCHFUL = replace(HASTY, silence_s=1.0)
"""For tests of silence only: a machine under load may hold a healthy child up for a second."""


def is_alive(pid: int) -> bool:
    """A zombie is not alive."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def engine(name: str) -> str:
    return f"tests.workers.engines:{name}"


def llm(folder: Path, parallel: int = 2, name: str = "LanguageModel") -> WorkerSpec:
    return WorkerSpec("llm", engine(name), {"folder": str(folder)}, parallel=parallel)


def asr(folder: Path) -> WorkerSpec:
    return WorkerSpec("asr", engine("Recognizer"), {"folder": str(folder)}, parallel=8)


@dataclass(eq=False)
class House:
    """What a session would see."""

    pool: WorkerPool
    dispatcher: Dispatcher
    progress: list[tuple[str, str]]
    inbox: dict[str, list[Report]] = field(default_factory=dict)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def submit(self, id: str, work: Work | str, session: str = "s", ttl_s: float = PATIENCE_S) -> None:
        """Submits a job; a text is what the language model is asked."""
        if session not in self.inbox:
            self.dispatcher.listen(session, self._deliver(session))
        actual = Reply((PromptMessage("user", work),)) if isinstance(work, str) else work
        now = MonotonicClock().now_us()
        self.dispatcher.submit(Job(id, session, actual, Tier.SILVER, 3, now, now + seconds(ttl_s)))

    def _deliver(self, session: str) -> Callable[[Report], None]:
        box = self.inbox.setdefault(session, [])

        def deliver(report: Report) -> None:
            box.append(report)
            self.arrived.set()

        return deliver

    def state(self, worker: str) -> WorkerState:
        """One worker's state now."""
        return next(state for state in self.pool.states() if state.worker_id == worker)

    def pid(self, worker: str) -> int:
        pid = self.state(worker).pid
        assert pid is not None
        return pid

    async def until(self, what: Callable[[], bool]) -> None:
        """Waits until something is so; looks whenever a report arrives, and now and then."""
        while not what():
            self.arrived.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(0.02):
                    await self.arrived.wait()

    async def reports(self, count: int, session: str = "s") -> list[Report]:
        """Waits for so many reports of a session."""
        await self.until(lambda: len(self.inbox.get(session, [])) >= count)
        return self.inbox[session]

    async def end_of(self, id: str, session: str = "s") -> Report:
        """Waits for a job's last report."""

        def last() -> list[Report]:
            return [one for one in self.inbox.get(session, []) if one.job_id == id and ends_a_job(one)]

        await self.until(lambda: bool(last()))
        return last()[0]

    def text(self, id: str, session: str = "s") -> str:
        """What a reply has said so far."""
        found = [one for one in self.inbox[session] if isinstance(one, ReplyText) and one.job_id == id]
        return "".join(one.text for one in found)


@asynccontextmanager
async def house(
    *specs: WorkerSpec, supervision: Supervision = HASTY, settled: bool = True
) -> AsyncIterator[House]:
    """Starts a pool and waits until every worker is ready or has failed; nothing is left behind."""
    progress: list[tuple[str, str]] = []
    clock = MonotonicClock()
    pool = WorkerPool(PoolSettings(specs, supervision), clock, lambda *line: progress.append(line))
    dispatcher = Dispatcher(pool, clock)
    dispatcher.start()
    async with asyncio.timeout(PATIENCE_S):
        running = asyncio.create_task(pool.run())
        try:
            if settled:
                await pool.settled()
            yield House(pool, dispatcher, progress)
        finally:
            dispatcher.close()
            await pool.stop()
            await running
