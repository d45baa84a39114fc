"""Recognition through the server's own path: jobs to a dispatcher, batches to a worker process, reports back."""

import asyncio
import time
from collections.abc import Sequence

from modalities.ports import Pcm
from orchestrator.clock import MonotonicClock, seconds
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.job import Job, Tier
from orchestrator.scheduling.work import Report, Transcribe, Transcribed
from orchestrator.workers.pool import WorkerPool
from orchestrator.workers.spec import PoolSettings, WorkerSpec
from orchestrator.workers.supervision import Supervision

_PATIENCE_S = 120.0
_TOGETHER = 8


def through_a_worker(
    clips: Sequence[Pcm], levels: Sequence[int], threads: int, beam: int
) -> dict[int, float]:
    """Returns the seconds that all clips took, by how many sessions shared them. Raises `RuntimeError` where the
    worker does not start or a job fails."""
    return asyncio.run(_run(clips, levels, threads, beam))


async def _run(clips: Sequence[Pcm], levels: Sequence[int], threads: int, beam: int) -> dict[int, float]:
    clock = MonotonicClock()
    spec = WorkerSpec(
        "asr", "faster_whisper", {"threads": threads, "beam": beam}, threads=threads, parallel=_TOGETHER
    )
    pool = WorkerPool(PoolSettings((spec,), Supervision()), clock)
    dispatcher = Dispatcher(pool, clock)
    dispatcher.start()
    running = asyncio.create_task(pool.run())
    try:
        async with asyncio.timeout(_PATIENCE_S):
            await pool.settled()
        if not pool.ready:
            raise RuntimeError(f"the worker does not start: {pool.states()[0].reason}")
        await _level(dispatcher, clips[:2], 1, "warm")
        return {level: await _level(dispatcher, clips, level, f"at{level}") for level in levels}
    finally:
        dispatcher.close()
        await pool.stop()
        await running


async def _level(dispatcher: Dispatcher, clips: Sequence[Pcm], sessions: int, name: str) -> float:
    """Lets so many sessions take the next clip each as soon as their last has its text."""
    left = list(enumerate(clips))[::-1]
    begin = time.perf_counter()

    async def talk(session: str) -> None:
        reports: asyncio.Queue[Report] = asyncio.Queue(maxsize=_TOGETHER)
        dispatcher.listen(session, reports.put_nowait)
        while left:
            number, clip = left.pop()
            now = MonotonicClock().now_us()
            work = Transcribe(0, len(clip), language="en", audio=clip.tobytes())
            job = Job(f"{name}-{number}", session, work, Tier.SILVER, 3, now, now + seconds(_PATIENCE_S))
            dispatcher.submit(job)
            report = await reports.get()
            if not isinstance(report, Transcribed):
                raise RuntimeError(f"recognition failed: {report}")
        dispatcher.drop_session(session)

    async with asyncio.TaskGroup() as group:
        for number in range(sessions):
            group.create_task(talk(f"{name}-session-{number}"))
    return time.perf_counter() - begin
