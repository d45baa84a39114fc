"""A small part of `chorale bench voice`: two questions by the real voice to the real server, over each transport."""

import asyncio
from pathlib import Path

import pytest

from benchmarks.voice_cases import Case, Measured, run_case
from benchmarks.voice_clips import synthesized
from benchmarks.voice_lines import CallDoors, Doors, SocketDoors
from benchmarks.voice_servers import chorale
from benchmarks.voice_turn import STAGES
from modalities.text.normalize import normalize

pytestmark = pytest.mark.real

QUESTIONS = ("What is the capital of France?", "How many days are in a week?")


def test_questions_are_answered_and_every_stage_is_measured(tmp_path: Path) -> None:
    """By call and by socket: what was said is understood, sound comes, and no stage is missing."""

    async def main() -> list[Measured]:
        clips = synthesized(QUESTIONS)
        async with chorale(tmp_path / "server.log", {}) as server:
            ways: list[tuple[str, Doors]] = [
                ("webrtc", CallDoors(server.url)), ("websocket", SocketDoors(server.url)),
            ]  # fmt: skip
            return [
                await run_case(
                    Case("chorale", way, "server_vad 500", 1, 2), doors, server, clips, lambda _: None
                )
                for way, doors in ways
            ]

    for measured in asyncio.run(main()):
        assert [turn.failure for turn in measured.turns] == ["", ""]
        assert all(set(turn.moments_ms) == set(STAGES) for turn in measured.turns), measured.turns
        assert [normalize(turn.transcript) for turn in measured.turns] == [
            normalize(asked) for asked in QUESTIONS
        ]
        assert all(turn.reply for turn in measured.turns)
        assert measured.all_cores > measured.own_cores > 0
