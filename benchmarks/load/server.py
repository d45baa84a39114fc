"""``python -m benchmarks.load.server CONFIG [DOOR RATE]``: the server as `chorale serve` runs it, with a door of
the study's own where one is named, and an ear for questions.

Its URL is the first line of its output; each line ``usage`` of its input is answered with one line of JSON.
"""

import asyncio
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import uvloop

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # as `chorale serve` does
    os.environ.setdefault(_name, "1")

from benchmarks.load import doors  # noqa: E402 - the environment comes first
from orchestrator import settings  # noqa: E402 - the environment comes first
from orchestrator.app import Application  # noqa: E402
from orchestrator.observability import logs  # noqa: E402
from orchestrator.scheduling.cost import Costs  # noqa: E402
from orchestrator.scheduling.serving import ServiceStatistics  # noqa: E402
from orchestrator.workers.resources import resources_of  # noqa: E402


def _service(told: ServiceStatistics | None) -> dict[str, Any]:
    if told is None:
        return {}
    return {
        "level": told.service.level, "degraded": told.service.degraded, "pressure": told.pressure,
        "failed_share": told.failed_share, "shed": {what.name.lower(): many for what, many in told.shed.items()},
    }  # fmt: skip


def usage(application: Application) -> dict[str, Any]:
    """Returns what the server and its workers use, and what it has open, now."""
    own = resources_of(os.getpid())
    workers = application._pool.states()
    lag = application.loop_lag.statistics()
    dispatcher = application._dispatcher.statistics()
    return {
        "cpu_s": own.cpu_s,
        "memory_bytes": own.memory_bytes,
        "workers_cpu_s": sum(state.cpu_s for state in workers),
        "workers_memory_bytes": sum(state.memory_bytes for state in workers),
        "starts": sum(state.starts for state in workers),
        "tasks": len(asyncio.all_tasks()),
        "sessions": dispatcher.sessions,
        "queued": dict(dispatcher.scheduler.queued),
        "running": dict(dispatcher.scheduler.running),
        "marks": dict(dispatcher.scheduler.marks),
        "limits": {worker: one.jobs.limit for worker, one in dispatcher.instances.items()},
        "service": _service(dispatcher.service),
        "lag_p99_ms": lag.p99_ms,
        "lag_worst_ms": lag.worst_ms,
        "blocks": sys.getallocatedblocks(),
    }


def listen_for_questions(application: Application, loop: asyncio.AbstractEventLoop) -> None:
    """In a thread: answers from the loop, so that nothing is read while it changes. The end of the input ends the
    server."""

    async def answer() -> str:
        return json.dumps(usage(application))

    for _ in sys.stdin:
        print(asyncio.run_coroutine_threadsafe(answer(), loop).result(), flush=True)
    loop.call_soon_threadsafe(application.stop)
    loop.call_soon_threadsafe(application.stop)


async def serve(config: Path, door: list[str]) -> None:
    """Serves until the end of the input; `door` is empty, or the name and rate of one."""
    found = settings.load(config)
    opened = logs.configure(found.logging.level, found.logging.format)
    try:
        application = Application(found)
        if door:
            application._dispatcher._costs = Costs(doors.door(door[0], float(door[1])))
        ear = threading.Thread(
            target=listen_for_questions, args=(application, asyncio.get_running_loop()), daemon=True
        )
        ear.start()
        await application.run(lambda url: print(url, flush=True))
    finally:
        opened.close()


if __name__ == "__main__":
    uvloop.run(serve(Path(sys.argv[1]), sys.argv[2:]))
