"""A reply that is begun in the silence behind a question, on the real models."""

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from modalities.adapters.registry import build
from modalities.audio.resample import Resampler
from orchestrator.clients.call import RealtimeCall

pytestmark = pytest.mark.real

SILENCE_MS = 5_000
"""Long enough for a slow machine to have recognised, and to have begun to answer, before the turn has ended."""


def test_a_reply_is_ready_when_its_turn_has_ended(server_url: str, server_log: Path) -> None:
    """The server's log: transcript and first token were in before the end of the turn was certain, and were used."""
    detection = {"type": "server_vad", "silence_duration_ms": SILENCE_MS}
    voice = build("speech", "piper", {"variation": 0.0})
    resampler = Resampler(voice.sample_rate_hz, 48_000)
    spoken = np.concatenate(list(voice.synthesize("What is the capital of France?")))
    question = np.concatenate((resampler.feed(spoken), resampler.flush()))

    async def main() -> None:
        session = {"type": "realtime", "audio": {"input": {"turn_detection": detection}}}
        async with asyncio.timeout(120), RealtimeCall.connect(server_url, session=session) as call:
            saying = asyncio.create_task(call.say(question, lead_s=0.5, tail_s=2 * SILENCE_MS / 1_000))
            async for event in call.events():
                if event["type"] == "output_audio_buffer.started":
                    break
            saying.cancel()

    asyncio.run(main())
    turn = turns(server_log)[-1]
    assert turn["early"] == "reply"
    assert turn["transcript_ms"] < turn["end_point_ms"]
    assert turn["first_token_ms"] < turn["end_point_ms"] <= turn["first_sound_ms"]


def turns(log: Path) -> list[dict[str, Any]]:
    lines = (json.loads(line) for line in log.read_text().splitlines() if line.startswith("{"))
    return [line for line in lines if line["message"] == "turn"]
