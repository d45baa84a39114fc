"""A dispatcher with stand-in workers on virtual time."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from orchestrator.flow.limiter import Limiter
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.scheduling.work import Report
from tests.scheduling.fake_workers import FakeWorkers
from tests.virtual_time import VirtualClock, run


class House:
    """A dispatcher with fake workers and one inbox per session."""

    def __init__(
        self, workers: FakeWorkers, scheduler: Scheduler | None = None, limiter: Limiter | None = None
    ) -> None:
        self.workers = workers
        self.dispatcher = Dispatcher(workers, VirtualClock(), scheduler, limiter)
        self.dispatcher.start()
        self.inbox: dict[str, list[Report]] = {}

    def listen(self, *sessions: str) -> None:
        for session in sessions:
            self.dispatcher.listen(session, self.inbox.setdefault(session, []).append)


def llm(slots: int = 2) -> FakeWorkers:
    return FakeWorkers(w=FreeSlots("llm", slots))


async def tick() -> None:
    """Lets everything happen that happens now; no time passes."""
    for _ in range(5):
        await asyncio.sleep(0)


def on_virtual_time(main: Coroutine[Any, Any, None]) -> None:
    run(main)
