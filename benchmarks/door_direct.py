"""What `chorale bench doors` compares with: the same question put to the workers and to the dispatcher."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from benchmarks.door_clients import Client
from benchmarks.resume_server import Ports
from orchestrator.clock import US_PER_S, Clock
from orchestrator.ids import random_id
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.job import Job, Tier
from orchestrator.scheduling.work import Failed, PromptMessage, Replied, Reply, ReplyText, Report, WorkKind
from orchestrator.scheduling.worker_ports import Workers

_WITHIN_US = 60 * US_PER_S


class _Waiting:
    """One reply that is being written."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._began_s = time.perf_counter()
        self._first_s = 0.0
        self.done: asyncio.Future[float] = loop.create_future()

    def take(self, report: Report) -> None:
        if isinstance(report, ReplyText) and not self._first_s:
            self._first_s = time.perf_counter() - self._began_s
        elif isinstance(report, Replied):
            self.done.set_result(self._first_s)
        elif isinstance(report, Failed):
            self.done.set_exception(RuntimeError(report.message))


def _job(session_id: str, clock: Clock) -> Job:
    now_us = clock.now_us()
    work = Reply((PromptMessage("user", "hello"),))
    return Job(random_id("job"), session_id, work, Tier.GOLD, 2, now_us, now_us + _WITHIN_US)


class _Asking:
    """Asks the dispatcher, as sessions do."""

    def __init__(self, dispatcher: Dispatcher, clock: Clock) -> None:
        self._dispatcher = dispatcher
        self._clock = clock
        self._id = random_id("direct")
        self._waiting: _Waiting | None = None
        dispatcher.listen(self._id, self._deliver)

    async def ask(self) -> float:
        self._waiting = _Waiting()
        self._dispatcher.submit(_job(self._id, self._clock))
        return await self._waiting.done

    def close(self) -> None:
        self._dispatcher.drop_session(self._id)

    def _deliver(self, report: Report) -> None:
        assert self._waiting is not None
        self._waiting.take(report)


class Crew:
    """Asks workers without a dispatcher: there is a place for everybody."""

    def __init__(self, workers: Workers, clock: Clock) -> None:
        self._workers = workers
        self._clock = clock
        self._waiting: dict[str, _Waiting] = {}
        workers.listen(self)

    async def ask(self) -> float:
        """Asks for a reply, as a `Client` does; by any number of them at one time."""
        waiting, job = _Waiting(), _job("direct", self._clock)
        self._waiting[job.id] = waiting
        self._workers.send("llm", [job])
        return await waiting.done

    def reported(self, worker_id: str, report: Report) -> None:
        self._waiting[report.job_id].take(report)
        if isinstance(report, Replied | Failed):
            del self._waiting[report.job_id]

    def lost(self, worker_id: str) -> None:
        """Happens to none of these."""

    def freed(self) -> None:
        """Nothing waits for a place."""

    def gave_up(self, kind: WorkKind) -> None:
        """Happens to none of these."""


@asynccontextmanager
async def asking(ports: Ports) -> AsyncGenerator[Client, None]:
    """Gives a client of the server's dispatcher."""
    client = _Asking(ports.dispatcher, ports.clock)
    try:
        yield client
    finally:
        client.close()
