"""Real processes that start, cannot start, and stop. Engines are scripted."""

import asyncio
import os
import signal
from functools import partial
from pathlib import Path

import pytest
import uvloop

from orchestrator.errors import InvalidState
from orchestrator.scheduling.work import (
    Failed,
    Replied,
    Transcribe,
    Transcribed,
)
from orchestrator.workers.spec import WorkerSpec
from orchestrator.workers.supervision import Phase, Supervision
from tests.flow.test_open_files import room_for
from tests.scheduling.jobs import job
from tests.workers.house import PATIENCE_S, House, asr, engine, house, is_alive, llm


def test_process_whose_model_is_missing_says_so_and_is_not_tried_again(tmp_path: Path) -> None:
    """Not ready, with the command that installs it; the other workers work (F-O2)."""

    async def main() -> None:
        async with house(llm(tmp_path, name="missing"), asr(tmp_path)) as at:
            broken, working = at.pool.states()
            assert not at.pool.ready
            assert broken.phase is Phase.BROKEN
            assert "pip install parrot" in broken.reason
            assert working.phase is Phase.READY
            at.submit("j", Transcribe(0, 0, audio=bytes(200)))
            assert isinstance(await at.end_of("j"), Transcribed)
            assert at.pool.states()[0].starts == 1

    asyncio.run(main())


def test_process_that_is_slow_to_end_is_not_said_to_have_been_killed(tmp_path: Path) -> None:
    """Its own words are the reason; that we ended it is no news."""

    async def main() -> None:
        async with house(llm(tmp_path, name="lingering")) as at:
            reason = at.state("llm-1").reason
            assert "pip install parrot" in reason
            assert "killed" not in reason

    asyncio.run(main())


def test_process_that_cannot_start_keeps_its_last_words_without_secrets(tmp_path: Path) -> None:
    """The reason names the fault and what was printed; what the configuration calls a key is taken out."""

    async def main() -> None:
        options = {"folder": str(tmp_path), "api_key": "open-sesame-42"}
        async with house(WorkerSpec("llm", engine("leaky"), options)) as at:
            await at.until(lambda: at.state("llm-1").phase is Phase.WAITING)
            reason = at.pool.states()[0].reason
            assert "RuntimeError" in reason
            assert "my key is [secret]" in reason
            assert "said on standard output" in reason
            assert "open-sesame-42" not in reason + str(at.progress)

    asyncio.run(main())


def test_process_that_cannot_start_at_first_is_tried_again(tmp_path: Path) -> None:
    """Back-off, then ready; a job that waited meanwhile is done."""

    async def main() -> None:
        async with house(llm(tmp_path, name="recovering")) as at:
            at.submit("a", "count 2")
            assert isinstance(await at.end_of("a"), Replied)
            state = at.pool.states()[0]
            assert (state.starts, state.reason) == (3, "")
            assert at.pool.ready

    asyncio.run(main())


@pytest.mark.parametrize("name", ["missing", "crashing"])
def test_process_that_cannot_start_fails_what_already_waits_for_it(tmp_path: Path, name: str) -> None:
    """A job queued while the worker was still starting does not wait for its deadline."""

    async def main() -> None:
        async with house(llm(tmp_path, name=name), settled=False) as at:
            at.submit("j", "count 1", ttl_s=10 * PATIENCE_S)
            report = await at.end_of("j")
            assert isinstance(report, Failed)
            assert (report.code, report.message) == ("worker_failed", "the language model is not available")
            at.submit("late", "count 1", ttl_s=10 * PATIENCE_S)
            assert isinstance(await at.end_of("late"), Failed)

    asyncio.run(main())


def test_process_whose_endpoint_is_away_is_tried_until_it_is_there(tmp_path: Path) -> None:
    """It comes up by itself with the endpoint. Until then work for it is told at once that nobody can do it."""

    async def main() -> None:
        async with house(llm(tmp_path, name="remote")) as at:
            await at.until(lambda: at.pool.hopeless("llm"))
            assert "no connection to the parrot" in at.state("llm-1").reason
            at.submit("a", "count 2")
            assert isinstance(await at.end_of("a"), Failed)
            (tmp_path / "endpoint").touch()
            await at.pool.complete()
            at.submit("b", "count 2")
            assert isinstance(await at.end_of("b"), Replied)

    asyncio.run(main())


def test_process_that_never_becomes_ready_is_given_up(tmp_path: Path) -> None:
    """A start that hangs ends after `load_s` and is tried again."""

    async def main() -> None:
        times = Supervision(silence_s=0.6, load_s=0.01, backoff_first_s=60)
        async with house(llm(tmp_path), supervision=times) as at:
            assert at.state("llm-1").phase is Phase.WAITING
            assert "not ready after" in at.pool.states()[0].reason

    asyncio.run(main())


def test_process_stop_lets_running_jobs_end(tmp_path: Path) -> None:
    """A clean stop drains: the reply that runs is completed, and nothing new is taken."""

    async def main() -> None:
        async with house(llm(tmp_path), supervision=Supervision(drain_s=60)) as at:
            at.submit("a", "gate")
            await at.reports(1)
            stopping = asyncio.create_task(at.pool.stop())
            await at.until(lambda: at.pool.free() == {})
            assert at.state("llm-1").phase is Phase.READY
            (tmp_path / "gate").touch()
            await stopping
            assert isinstance(await at.end_of("a"), Replied)
            assert at.text("a") == "ab"

    asyncio.run(main())


def test_process_stop_is_bounded_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """A job that never ends does not hold up the end: after `drain_s` the process is gone."""

    async def main() -> None:
        async with house(llm(tmp_path), supervision=Supervision(drain_s=0.1)) as at:
            pid = at.pid("llm-1")
            at.submit("a", "deaf")
            await at.reports(1)
            await at.pool.stop()
            await at.until(lambda: at.state("llm-1").phase is Phase.STOPPED)
            assert not is_alive(pid)

    asyncio.run(main())


def test_process_given_more_than_it_has_room_for_is_our_fault(tmp_path: Path) -> None:
    """The pool never takes what it did not offer."""

    async def main() -> None:
        async with house(llm(tmp_path, parallel=1)) as at:
            with pytest.raises(InvalidState):
                at.pool.send("llm-1", [job("a"), job("b")])

    asyncio.run(main())


def test_process_environment_is_set_before_the_engine_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads, no downloads, what the configuration adds, and a step back for the server."""
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)

    async def main() -> None:
        options = {"folder": str(tmp_path)}
        spec = WorkerSpec(
            "llm", engine("LanguageModel"), options, threads=3, niceness=2, environment={"EXTRA": "x"}
        )
        async with house(spec) as at:
            at.submit("a", "environment")
            await at.end_of("a")
            niceness = os.nice(0) + 2
            assert at.text("a") == f"3 3 1 x {niceness}"

    asyncio.run(main())


def test_process_states_show_memory_and_processor_time(tmp_path: Path) -> None:
    """What a child uses is read from the system."""

    async def main() -> None:
        async with house(llm(tmp_path)) as at:
            state = at.pool.states()[0]
            assert state.memory_bytes > 5_000_000
            assert state.cpu_s > 0

    asyncio.run(main())


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="the system does not tell what is open")
def test_process_that_finds_no_files_to_open_costs_none_and_starts_when_there_are(tmp_path: Path) -> None:
    """However often it is tried meanwhile: what was left to others is left to them."""

    def tried(at: House, starts: int) -> bool:
        return at.state("llm-1").starts >= starts

    async def main() -> None:
        async with house(llm(tmp_path)) as at:
            before = len(os.listdir("/proc/self/fd"))
            for count in (1, 2, 3):
                enough = at.state("llm-1").starts + 3
                with room_for(count):
                    os.kill(at.pid("llm-1"), signal.SIGKILL)
                    await at.until(partial(tried, at, enough))
                    assert "could not be started" in at.state("llm-1").reason
                await at.until(lambda: at.state("llm-1").phase is Phase.READY)
            assert len(os.listdir("/proc/self/fd")) == before

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
