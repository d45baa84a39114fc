"""Speech against typed words on the real server: its recogniser, its understanding, its judges."""

import asyncio
import base64
from typing import Any

import numpy as np
import pytest

from modalities.adapters.registry import build
from modalities.audio.resample import Resampler
from modalities.ports import Pcm
from orchestrator.clients.text_socket import RealtimeSocket
from tests.real.test_one_conversation import typed, until

pytestmark = pytest.mark.real

COMPLETED = "conversation.item.input_audio_transcription.completed"
FIFTEEN = "Set a timer for fifteen minutes."
FIFTY = "Set a timer for fifty minutes."
EVENTS = ["chorale.verdict", "chorale.frozen", "chorale.realigned", "chorale.rolled_back"]
SESSION = {
    "type": "realtime",
    "output_modalities": ["text"],
    "audio": {"input": {"transcription": {"model": "default"}, "turn_detection": None}},
    "chorale": {"events": EVENTS},
}
Event = dict[str, Any]


@pytest.fixture(scope="module")
def fifteen() -> Pcm:
    """The command, spoken, at 24 kHz."""
    voice = build("speech", "piper", {"variation": 0.0})
    resampler = Resampler(voice.sample_rate_hz, 24_000)
    return np.concatenate((*map(resampler.feed, voice.synthesize(FIFTEEN)), resampler.flush()))


async def said_and_typed(url: str, sound: Pcm, text: str) -> list[Event]:
    """Speaks, types, asks for the answer; returns everything that was told."""
    async with RealtimeSocket.connect(url) as socket:
        events = socket.events()
        await socket.send({"type": "session.update", "session": SESSION})
        for start in range(0, len(sound), 4_800):
            piece = base64.b64encode(sound[start : start + 4_800].tobytes()).decode()
            await socket.send({"type": "input_audio_buffer.append", "audio": piece})
        await socket.send({"type": "input_audio_buffer.commit"})
        seen = await until(events, COMPLETED)
        await socket.send(typed(text))
        await socket.send({"type": "response.create"})
        return seen + await until(events, "response.done")


def verdicts(seen: list[Event]) -> list[str]:
    return [event["verdict"] for event in seen if event["type"] == "chorale.verdict"]


def test_a_typed_word_that_contradicts_speech_is_held_against_the_sound(
    server_url: str, fifteen: Pcm
) -> None:
    """Fifteen was said and fifty typed: the sound is asked, and denies what was typed before anything is answered."""
    seen = asyncio.run(said_and_typed(server_url, fifteen, FIFTY))
    told = [event for event in seen if event["type"] == "chorale.verdict"]
    assert "suspect" in verdicts(seen)
    last = told[-1]
    assert (last["verdict"], last["verified"]) == ("accept", True)
    ratios = [reason["value"] for reason in last["evidence"] if reason["name"] == "forced_score"]
    assert ratios, last
    assert max(ratios) < -3.0
    types = [event["type"] for event in seen]
    assert types.index("response.output_text.delta") > len(types) - 1 - types[::-1].index("chorale.verdict")


def test_the_same_words_typed_and_spoken_are_answered_at_once(server_url: str, fifteen: Pcm) -> None:
    """Digits or words, with another spelling: nothing is suspect."""
    seen = asyncio.run(said_and_typed(server_url, fifteen, "set a timer for 15 minutes"))
    assert set(verdicts(seen)) == {"accept"}
