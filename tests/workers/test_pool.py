"""The pool as its owner sees it: progress, readiness, states. Real processes, scripted engines."""

import asyncio
import os
import signal
from pathlib import Path

import uvloop

from orchestrator.clock import MonotonicClock
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.splice import ends_a_job
from orchestrator.scheduling.work import Report
from orchestrator.workers.pool import WorkerPool
from orchestrator.workers.spec import PoolSettings, WorkerSpec
from orchestrator.workers.supervision import Phase
from tests.workers.house import PATIENCE_S, engine, house, is_alive


def test_pool_tells_the_progress_of_every_worker(tmp_path: Path) -> None:
    """Starting, loading, ready in so many seconds; or failed, and why."""

    async def main() -> None:
        specs = [
            WorkerSpec("llm", engine("LanguageModel"), {"folder": str(tmp_path)}, count=2),
            WorkerSpec("speech", engine("missing")),
        ]
        async with house(*specs) as at:
            lines = {
                worker: [line for one, line in at.progress if one == worker] for worker, _ in at.progress
            }
            assert set(lines) == {"llm-1", "llm-2", "speech-1"}
            for worker in ("llm-1", "llm-2"):
                assert lines[worker][:2] == ["starting", "loading"]
                assert lines[worker][2].startswith("ready in ")
            assert lines["speech-1"][2].startswith("failed: the parrot model is not available here")
            assert not at.pool.ready

    asyncio.run(main())


def test_pool_is_ready_when_one_worker_of_each_kind_is(tmp_path: Path) -> None:
    """A second worker of a kind that cannot start does not make the server unready."""

    async def main() -> None:
        good = WorkerSpec("llm", engine("LanguageModel"), {"folder": str(tmp_path)})
        bad = WorkerSpec("speech", engine("missing"))
        voice = WorkerSpec("speech", engine("Voice"))
        async with house(good, voice) as at:
            assert at.pool.ready
        async with house(good, bad) as at:
            assert not at.pool.ready

    asyncio.run(main())


def test_pool_is_settled_though_a_worker_is_being_tried_again(tmp_path: Path) -> None:
    """Who has failed once is not waited for a second time, wherever it is in its next start."""

    async def main() -> None:
        async with house(WorkerSpec("llm", engine("remote"), {"folder": str(tmp_path)})) as at:
            await at.until(lambda: at.state("llm-1").phase is Phase.LOADING)
            settled = asyncio.ensure_future(at.pool.settled())
            await asyncio.sleep(0)
            assert settled.done()

    asyncio.run(main())


def test_pool_offers_only_ready_workers_and_their_free_slots(tmp_path: Path) -> None:
    """A batch worker is free or not; a language worker has the slots that are left."""

    async def main() -> None:
        specs = [
            WorkerSpec("llm", engine("LanguageModel"), {"folder": str(tmp_path)}, parallel=3),
            WorkerSpec("asr", engine("Recognizer"), {}, parallel=8),
            WorkerSpec("speech", engine("missing")),
        ]
        async with house(*specs) as at:
            free = {worker: slots.jobs for worker, slots in at.pool.free().items()}
            assert free == {"llm-1": 3, "asr-1": 8}
            at.submit("a", "forever")
            await at.reports(1)
            assert at.pool.free()["llm-1"].jobs == 2

    asyncio.run(main())


def test_pool_that_is_cancelled_leaves_no_process_behind(tmp_path: Path) -> None:
    """Whoever cancels `run` gets it back with every child ended."""

    async def main() -> None:
        spec = WorkerSpec("llm", engine("LanguageModel"), {"folder": str(tmp_path)}, count=2)
        pool = WorkerPool(PoolSettings((spec,)), MonotonicClock())
        running = asyncio.create_task(pool.run())
        async with asyncio.timeout(PATIENCE_S):
            await pool.settled()
            pids = [state.pid for state in pool.states()]
            running.cancel()
            await asyncio.wait({running})
        assert running.cancelled()
        assert not any(pid is None or is_alive(pid) for pid in pids)

    asyncio.run(main())


def test_pool_stopped_before_it_is_ready_ends(tmp_path: Path) -> None:
    """A stop during the start waits for nothing that is not there yet."""

    async def main() -> None:
        spec = WorkerSpec("llm", engine("LanguageModel"), {"folder": str(tmp_path)})
        pool = WorkerPool(PoolSettings((spec,)), MonotonicClock())
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
            tasks.create_task(pool.run())
            await asyncio.sleep(0)
            await pool.stop()
        assert [state.phase for state in pool.states()] == [Phase.STOPPED]

    asyncio.run(main())


def test_pool_with_nothing_to_do_is_ready() -> None:
    """No workers, nothing missing."""
    assert WorkerPool(PoolSettings(()), MonotonicClock()).ready


def test_pool_works_on_the_server_s_event_loop_too(tmp_path: Path) -> None:
    """uvloop has transports and subprocesses of its own: start, work, death, repeat and stop hold there."""

    async def main() -> None:
        async with house(WorkerSpec("llm", engine("LanguageModel"), {"folder": str(tmp_path)})) as at:
            (state,) = at.pool.states()
            assert state.pid is not None
            at.submit("a", "stall")
            await at.until(lambda: at.text("a") == "0 1 2 ")
            os.kill(state.pid, signal.SIGKILL)
            await at.end_of("a")
            assert at.text("a") == "0 1 2 3 4 5 "
            assert not is_alive(state.pid)

    uvloop.run(main())


def test_pool_workers_tell_what_share_of_their_memory_they_use(tmp_path: Path) -> None:
    """A process with a small budget is over it, one with a huge budget has nearly all of it free; what is free goes
    into the plan. Nothing is known of a worker that never started."""

    async def main() -> None:
        folder = {"folder": str(tmp_path)}
        specs = [
            WorkerSpec("llm", engine("LanguageModel"), folder, memory_bytes=1 << 20),
            WorkerSpec("understand", engine("Embedder"), folder, memory_bytes=1 << 40),
            WorkerSpec("speech", engine("missing"), memory_bytes=1 << 30),
        ]
        async with house(*specs) as at:
            await at.until(lambda: sum(share is not None for share in at.pool.memory_shares().values()) == 2)
            shares = at.pool.memory_shares()
            small, large = shares["llm-1"], shares["understand-1"]
            assert small is not None
            assert large is not None
            assert small > 1
            assert 0 < large < 0.01
            assert shares["speech-1"] is None
            assert at.state("llm-1").memory_share is not None
            free = at.pool.free()
            assert free["llm-1"].free_memory == 0
            assert 0.99 < free["understand-1"].free_memory < 1

    asyncio.run(main())


def test_pool_tells_when_a_job_was_really_worked_on(tmp_path: Path) -> None:
    """The times are the worker's own, on the clock that this process reads too, and come before the job's end."""

    async def main() -> None:
        told: list[tuple[str, ...]] = []
        times: list[tuple[int, int]] = []

        class Listening(Dispatcher):
            def worked(self, worker_id: str, job_id: str, began_us: int, ended_us: int) -> None:
                told.append(("worked", worker_id, job_id))
                times.append((began_us, ended_us))

            def reported(self, worker_id: str, report: Report) -> None:
                if ends_a_job(report):
                    told.append(("ended", worker_id, report.job_id))
                super().reported(worker_id, report)

        async with house(WorkerSpec("llm", engine("LanguageModel"), {"folder": str(tmp_path)})) as at:
            listening = Listening(at.pool, MonotonicClock())
            listening.start()
            at.dispatcher = listening
            before_us = MonotonicClock().now_us()
            at.submit("j", "count 3")
            await at.end_of("j")
            listening.close()
        ((began_us, ended_us),) = times
        assert before_us <= began_us <= ended_us <= MonotonicClock().now_us()
        assert told == [("worked", "llm-1", "j"), ("ended", "llm-1", "j")]

    asyncio.run(main())
