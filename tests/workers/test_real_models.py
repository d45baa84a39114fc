"""Real models in real worker processes: what one says, another hears."""

import asyncio
import os
import re
import signal

import numpy as np
import pytest

from consistency.observation import VECTOR_DIMENSIONS
from modalities.audio.resample import Resampler
from orchestrator.scheduling.work import (
    Replied,
    Speak,
    SpeechPiece,
    Spoke,
    Transcribe,
    Transcribed,
    Understand,
    Understood,
)
from orchestrator.workers.speak import OUTPUT_RATE_HZ
from orchestrator.workers.spec import WorkerSpec
from orchestrator.workers.supervision import Supervision
from tests.modalities.tokens.test_understand import DOMAIN_SETTINGS
from tests.workers.house import House, house

pytestmark = pytest.mark.real

PATIENT = Supervision(backoff_first_s=0.05)
VOICE = WorkerSpec("speech", "piper", {"variation": 0.0})
EAR = WorkerSpec("asr", "faster_whisper", parallel=4)
SENTENCE = "What is the weather like today?"


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower().replace("10", "ten"))


async def _said(at: House, id: str, text: str) -> bytes:
    """Returns what the voice makes of a text, at 24 kHz."""
    at.submit(id, Speak(text), id)
    assert isinstance(await at.end_of(id, id), Spoke)
    return b"".join(one.audio for one in at.inbox[id] if isinstance(one, SpeechPiece))


def _at_16_khz(audio: bytes) -> bytes:
    resampler = Resampler(OUTPUT_RATE_HZ, 16_000)
    pcm = np.frombuffer(audio, dtype="<i2")
    return np.concatenate((resampler.feed(pcm), resampler.flush())).astype("<i2").tobytes()


def test_real_voice_is_heard_as_its_words_alone_and_in_a_batch() -> None:
    """A sentence goes through both workers and comes back; three at once give what each gives alone (F-L7)."""

    async def main() -> None:
        async with house(VOICE, EAR, supervision=PATIENT) as at:
            assert at.pool.ready, [state.reason for state in at.pool.states()]
            texts = [SENTENCE, "Set a timer for ten minutes.", "Turn off the lights in the kitchen."]
            clips = [_at_16_khz(await _said(at, f"say{n}", text)) for n, text in enumerate(texts)]
            alone = []
            for n, clip in enumerate(clips):
                at.submit(f"alone{n}", Transcribe(0, 0, audio=clip), f"alone{n}")
                alone.append(await at.end_of(f"alone{n}", f"alone{n}"))
            for n, clip in enumerate(clips):
                at.submit(f"batch{n}", Transcribe(0, 0, audio=clip), f"batch{n}")
            for n, text in enumerate(texts):
                single, together = alone[n], await at.end_of(f"batch{n}", f"batch{n}")
                assert isinstance(single, Transcribed)
                assert isinstance(together, Transcribed)
                assert together.text == single.text
                assert _words(single.text) == _words(text)

    asyncio.run(main())


def test_real_voice_starts_without_delay_and_in_pieces() -> None:
    """Less than 30 ms of silence before the sound, no piece longer than 200 ms."""

    async def main() -> None:
        async with house(VOICE, supervision=PATIENT) as at:
            audio = await _said(at, "say", SENTENCE)
            pieces = [one for one in at.inbox["say"] if isinstance(one, SpeechPiece)]
            assert all(one.samples <= OUTPUT_RATE_HZ // 5 for one in pieces)
            loud = np.abs(np.frombuffer(audio, dtype="<i2").astype(int)) > 200
            assert int(np.argmax(loud)) < 0.03 * OUTPUT_RATE_HZ

    asyncio.run(main())


def test_real_language_model_killed_in_mid_reply_completes_the_same_reply() -> None:
    """The repeat says the same again, so the session gets one whole reply: what an undisturbed run says."""
    question = "Tell me about the moon in three sentences."

    async def main() -> None:
        async with house(WorkerSpec("llm", "llama_cpp", parallel=2), supervision=PATIENT) as at:
            at.submit("job", question, "undisturbed")
            assert isinstance(await at.end_of("job", "undisturbed"), Replied)
            expected = at.text("job", "undisturbed")
            at.dispatcher.drop_session("undisturbed")
            at.submit("job", question, "killed")
            await at.reports(5, "killed")
            (state,) = at.pool.states()
            assert state.pid is not None
            os.kill(state.pid, signal.SIGKILL)
            assert isinstance(await at.end_of("job", "killed"), Replied)
            assert at.text("job", "killed") == expected
            assert at.pool.states()[0].starts == 2

    asyncio.run(main())


def test_real_understanding_names_intent_and_slots_of_a_batch() -> None:
    """The shipped domain with the shipped embedder, in its worker."""

    async def main() -> None:
        spec = WorkerSpec("understand", "minilm_onnx", {"domain": DOMAIN_SETTINGS}, parallel=8)
        async with house(spec, supervision=PATIENT) as at:
            texts = {
                "a": "please set a timer for twelve minutes",
                "b": "is it going to rain in London tomorrow",
            }
            for session, text in texts.items():
                at.submit(session, Understand(text), session)
            timer, weather = await at.end_of("a", "a"), await at.end_of("b", "b")
            assert isinstance(timer, Understood)
            assert isinstance(weather, Understood)
            assert (timer.intent, weather.intent) == ("set_timer", "get_weather")
            assert [(slot.name, slot.value) for slot in timer.slots] == [("duration", "twelve minutes")]
            assert [(slot.name, slot.value) for slot in weather.slots] == [
                ("city", "London"),
                ("day", "tomorrow"),
            ]
            vector = np.frombuffer(timer.vector, dtype="<i2") / 32_767
            assert len(vector) == VECTOR_DIMENSIONS
            assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-3)

    asyncio.run(main())
