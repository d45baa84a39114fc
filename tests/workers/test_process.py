"""Real processes that die, stall and lie: sessions notice as little as possible. Engines are scripted."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from orchestrator.scheduling.work import (
    Failed,
    Replied,
    Speak,
    SpeechPiece,
    Spoke,
    Transcribe,
    Transcribed,
)
from orchestrator.workers.spec import WorkerSpec
from orchestrator.workers.supervision import Supervision
from tests.workers.house import WATCHFUL, asr, engine, house, is_alive, llm

# --- work -------------------------------------------------------------------------------------------------------------


def test_process_reports_arrive_complete_and_in_order(tmp_path: Path) -> None:
    """Two replies of 2,000 deltas side by side: each text arrives whole and in order, then its end."""

    async def main() -> None:
        async with house(llm(tmp_path)) as at:
            at.submit("a", "count 2000", "s")
            at.submit("b", "count 2000", "t")
            await at.end_of("a", "s")
            await at.end_of("b", "t")
            expected = "".join(f"{value} " for value in range(2000))
            assert (at.text("a", "s"), at.text("b", "t")) == (expected, expected)
            assert isinstance(at.inbox["s"][-1], Replied)

    asyncio.run(main())


def test_process_noise_on_standard_output_does_not_reach_the_frames(tmp_path: Path) -> None:
    """A library that prints, also past Python, harms nothing: frames have a pipe of their own."""

    async def main() -> None:
        async with house(asr(tmp_path)) as at:
            for number in range(20):
                at.submit(f"j{number}", Transcribe(0, 0, audio=bytes(2 * (number + 1))))
            await at.end_of("j19")
            assert [one.job_id for one in at.inbox["s"]] == [f"j{number}" for number in range(20)]
            assert all(isinstance(one, Transcribed) for one in at.inbox["s"])
            assert at.pool.states()[0].starts == 1

    asyncio.run(main())


def test_process_jobs_of_one_tick_are_one_batch(tmp_path: Path) -> None:
    """Clips of several sessions go through the recogniser in one call."""

    async def main() -> None:
        async with house(asr(tmp_path)) as at:
            for number in range(5):
                at.submit(f"j{number}", Transcribe(0, 0, audio=bytes(200)), f"s{number}")
            report = await at.end_of("j4", "s4")
            assert isinstance(report, Transcribed)
            assert report.text == "100 samples in a batch of 5"

    asyncio.run(main())


def test_process_one_bad_clip_does_not_fail_its_batch(tmp_path: Path) -> None:
    """When a batch fails its members are tried one by one."""

    async def main() -> None:
        async with house(asr(tmp_path)) as at:
            for number in range(3):
                prompt = "fail" if number == 1 else None
                at.submit(f"j{number}", Transcribe(0, 0, audio=bytes(200), prompt=prompt), f"s{number}")
            reports = [await at.end_of(f"j{number}", f"s{number}") for number in range(3)]
            assert [type(one) for one in reports] == [Transcribed, Failed, Transcribed]
            failed = reports[1]
            assert isinstance(failed, Failed)
            assert failed.code == "worker_failed"
            assert "anything of this" not in failed.message, "the engine's own words are for the log"

    asyncio.run(main())


def test_process_large_sound_never_holds_up_the_event_loop(tmp_path: Path) -> None:
    """10 MB are handed to a process that does not read: the call returns, the loop goes on, and nothing is lost."""

    async def main() -> None:
        patient = Supervision(silence_s=60)
        async with house(asr(tmp_path), supervision=patient) as at:
            pid = at.pid("asr-1")
            os.kill(pid, signal.SIGSTOP)
            at.submit("big", Transcribe(0, 0, audio=bytes(10_000_000)))
            for _ in range(100):
                await asyncio.sleep(0)
            assert at.dispatcher.statistics().scheduler.running["asr"] == 1
            assert at.inbox["s"] == []
            os.kill(pid, signal.SIGCONT)
            report = await at.end_of("big")
            assert isinstance(report, Transcribed)
            assert report.text == "5000000 samples in a batch of 1"

    asyncio.run(main())


def test_process_speech_comes_in_short_pieces_at_the_output_rate(tmp_path: Path) -> None:
    """At most 200 ms a piece, 24 kHz, numbered, without the silence before the first sound."""

    async def main() -> None:
        async with house(WorkerSpec("speech", engine("Voice"))) as at:
            at.submit("say", Speak("two words"))
            end = await at.end_of("say")
            pieces = [one for one in at.inbox["s"] if isinstance(one, SpeechPiece)]
            assert end == Spoke("say", len(pieces))
            assert [one.index for one in pieces] == list(range(len(pieces)))
            assert all(one.rate_hz == 24_000 and 0 < one.samples <= 4_800 for one in pieces)
            assert all(len(one.audio) == 2 * one.samples for one in pieces)
            samples = sum(one.samples for one in pieces)
            assert 48_000 <= samples <= 48_000 + 0.03 * 24_000

    asyncio.run(main())


# --- cancel -----------------------------------------------------------------------------------------------------------


def test_process_cancel_reaches_the_engine_and_frees_its_slot(tmp_path: Path) -> None:
    """The engine stops by itself, nothing more is delivered, and the only slot does the next job."""

    async def main() -> None:
        async with house(llm(tmp_path, parallel=1)) as at:
            at.submit("endless", "forever")
            await at.reports(3)
            at.dispatcher.cancel("endless")
            seen = len(at.inbox["s"])
            at.submit("next", "count 3")
            await at.end_of("next")
            assert (tmp_path / "stopped").exists()
            assert at.text("next") == "0 1 2 "
            assert [one.job_id for one in at.inbox["s"][seen:]] == ["next"] * (len(at.inbox["s"]) - seen)
            assert at.pool.states()[0].starts == 1

    asyncio.run(main())


def test_process_that_does_not_let_go_of_a_cancelled_job_is_killed(tmp_path: Path) -> None:
    """An engine that is deaf to cancels loses its process after `stuck_s`; the next job gets through."""

    async def main() -> None:
        times = Supervision(stuck_s=0.3, backoff_first_s=0.05)
        async with house(llm(tmp_path, parallel=1), supervision=times) as at:
            at.submit("deaf", "deaf")
            await at.reports(1)
            at.dispatcher.cancel("deaf")
            at.submit("next", "count 1")
            assert isinstance(await at.end_of("next"), Replied)
            assert at.pool.states()[0].starts == 2

    asyncio.run(main())


def test_process_expired_job_is_taken_from_the_engine(tmp_path: Path) -> None:
    """A deadline stops a running job, tells its session once, and frees the slot."""

    async def main() -> None:
        async with house(llm(tmp_path, parallel=1)) as at:
            at.submit("slow", "forever", ttl_s=0.1)
            report = await at.end_of("slow")
            assert isinstance(report, Failed)
            assert report.code == "deadline_exceeded"
            at.submit("next", "count 1")
            assert isinstance(await at.end_of("next"), Replied)
            assert (tmp_path / "stopped").exists()

    asyncio.run(main())


# --- death ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_process_killed_in_the_middle_of_a_job_is_replaced_and_the_job_repeated(
    tmp_path: Path, blow: signal.Signals
) -> None:
    """The session sees one unbroken reply; the new process is another one."""

    async def main() -> None:
        async with house(llm(tmp_path)) as at:
            old = at.pid("llm-1")
            at.submit("a", "stall")
            await at.until(lambda: at.text("a") == "0 1 2 ")
            os.kill(old, blow)
            assert isinstance(await at.end_of("a"), Replied)
            assert at.text("a") == "0 1 2 3 4 5 "
            state = at.pool.states()[0]
            assert state.starts == 2
            assert state.pid != old
            assert not is_alive(old)
            assert at.dispatcher.statistics().scheduler.repeated == 1

    asyncio.run(main())


def test_process_that_is_stopped_is_found_by_its_silence(tmp_path: Path) -> None:
    """SIGSTOP closes no pipe: the heartbeat finds it, the process is killed, the job repeated."""

    async def main() -> None:
        async with house(llm(tmp_path), supervision=WATCHFUL) as at:
            old = at.pid("llm-1")
            at.submit("a", "stall")
            await at.until(lambda: at.text("a") == "0 1 2 ")
            os.kill(old, signal.SIGSTOP)
            assert isinstance(await at.end_of("a"), Replied)
            assert at.text("a") == "0 1 2 3 4 5 "
            assert not is_alive(old)
            assert any("silent" in line for _, line in at.progress)

    asyncio.run(main())


def test_process_whose_interpreter_is_stalled_is_found_by_its_silence(tmp_path: Path) -> None:
    """An engine that holds the interpreter's lock for ever is dead, though its process runs."""

    async def main() -> None:
        async with house(llm(tmp_path), supervision=WATCHFUL) as at:
            at.submit("a", "hold")
            assert isinstance(await at.end_of("a"), Replied)
            assert at.text("a") == "ab"
            assert at.pool.states()[0].starts == 2

    asyncio.run(main())


def test_process_busy_engine_that_lets_others_run_is_not_silent(tmp_path: Path) -> None:
    """A job twice as long as the silence limit does not cost the worker its life."""

    async def main() -> None:
        async with house(llm(tmp_path), supervision=WATCHFUL) as at:
            at.submit("a", "quiet")
            assert isinstance(await at.end_of("a"), Replied)
            assert at.pool.states()[0].starts == 1

    asyncio.run(main())


def test_process_poisonous_job_fails_and_its_company_gets_through(tmp_path: Path) -> None:
    """A clip that kills the recogniser each time fails after its repeats; the clips of its batch do not."""

    async def main() -> None:
        async with house(asr(tmp_path)) as at:
            for number in range(3):
                prompt = "die" if number == 0 else None
                at.submit(f"j{number}", Transcribe(0, 0, audio=bytes(200), prompt=prompt), f"s{number}")
            reports = [await at.end_of(f"j{number}", f"s{number}") for number in range(3)]
            assert [type(one) for one in reports] == [Failed, Transcribed, Transcribed]

    asyncio.run(main())
