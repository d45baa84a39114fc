"""A session's shell and the registry with work that is begun before a turn is certain."""

import asyncio
import json
import logging

import pytest

from modalities.ports import Pcm
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.work import Reply, Report, SpeechPiece
from orchestrator.sessions.rules import SessionRules
from orchestrator.sessions.runner import SessionRunner
from tests.fakes.workers import FakeWorkers, obliging
from tests.sessions.running import SILENCE, SPEECH, House, in_house, spoken


async def paused(session: SessionRunner) -> None:
    """A second of speech and 450 ms of silence, in real time: all of the reply is in by then."""
    await said(session, SPEECH)
    await said(session, SILENCE[:7_200])


async def said(session: SessionRunner, sound: Pcm) -> None:
    for start in range(0, len(sound), 320):
        session.intake.append(sound[start : start + 320])
        await asyncio.sleep(0.02)


def test_runner_keeps_the_sound_of_a_guess_until_its_turn_has_ended() -> None:
    """Sound made in the silence waits in the runner, and is sent whole once the turn is over."""

    async def test(house: House) -> None:
        session, link = house.open()
        await paused(session)
        assert session.statistics().pieces == 1
        assert not link.sound
        await said(session, SILENCE[:3_200])
        assert session.statistics().pieces == 0
        assert [len(entry.pcm) for entry in link.sound] == [len("You said: hello.") * 2_400]
        assert link.types()[-1] == "response.done"
        early = house.registry.statistics().early
        assert (early.transcripts_used, early.replies_used, early.replies_dropped) == (1, 1, 0)

    in_house(test)


def test_runner_lets_the_sound_of_a_dropped_guess_go() -> None:
    """The user goes on: nothing of the guess is kept, and nothing was sent."""

    async def test(house: House) -> None:
        session, link = house.open()
        await paused(session)
        await said(session, SPEECH[:3_200])
        assert session.statistics().pieces == 0
        assert "response.created" not in link.types()
        assert not link.sound
        session.end("done")
        await asyncio.sleep(10)
        early = house.registry.statistics().early
        assert len(house.registry) == 0
        assert (early.replies_started, early.replies_dropped) == (1, 1), "counted though its session is gone"

    in_house(test)


def test_runner_keeps_no_sound_that_nobody_takes() -> None:
    """Sound that comes for work which is none of a synthesiser's, by a worker's fault, is let go at once."""

    def answer(job: Job) -> list[Report]:
        mistaken = (
            [SpeechPiece(job.id, 0, 24_000, 2_400, bytes(4_800))] if isinstance(job.work, Reply) else []
        )
        return [*mistaken, *obliging(job)]

    async def test(house: House) -> None:
        session, link = house.open()
        await spoken(session)
        await asyncio.sleep(2)
        assert link.types()[-1] == "response.done"
        assert session.statistics().pieces == 0

    in_house(test, FakeWorkers(answer), rules=SessionRules(early_replies=False))


def test_runner_logs_the_stages_of_a_turn_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    """One line at INFO for each answered turn: milliseconds since the end of speech."""
    caplog.set_level(logging.INFO, "chorale.session")

    async def test(house: House) -> None:
        session, _ = house.open()
        await spoken(session)
        await asyncio.sleep(2)

    in_house(test, FakeWorkers(delay_s=0.05))
    (line,) = [record for record in caplog.records if record.getMessage() == "turn"]
    shown = line.__dict__
    names = ["transcript_ms", "first_token_ms", "first_sentence_ms", "end_point_ms", "first_sound_ms"]
    stages = [shown[name] for name in names]
    assert stages == sorted(stages)
    assert 500 <= shown["end_point_ms"] <= 560
    assert shown["transcript_ms"] < 300
    assert shown["early"] == "reply"
    assert "hello" not in json.dumps(shown, default=str).lower()
