"""Calls that come back to their session, with its runner: what is played again, from which sample, and what is not."""

import asyncio

import numpy as np
import pytest

from orchestrator.clock import US_PER_S
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.work import Replied, Reply, ReplyText, Report, SpeechPiece, Spoke
from orchestrator.sessions.links import LinkKind, LoggedAudio
from orchestrator.sessions.rules import SessionRules
from orchestrator.sessions.runner import SessionRunner
from tests.fakes.links import FakeLink, FakePlayout
from tests.fakes.workers import FakeWorkers
from tests.sessions.running import ASK, House, client, in_house


class Track(FakePlayout):
    """Keeps the samples themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.pcm = b""

    def play(self, response_id: str, pcm: bytes) -> None:
        super().play(response_id, pcm)
        self.pcm += pcm

    @property
    def heard(self) -> bytes:
        """What was played of it."""
        return self.pcm[: self.played * 2]


def counting(job: Job) -> list[Report]:
    """One sentence of 5 s whose samples count, so that any that is missing, or comes twice, is seen."""
    if isinstance(job.work, Reply):
        return [ReplyText(job.id, "A sentence that takes a while. "), Replied(job.id, "stop")]
    samples = np.arange(120_000, dtype="<u2").tobytes()
    size = 9_600
    pieces: list[Report] = [
        SpeechPiece(job.id, number, 24_000, size // 2, samples[at : at + size])
        for number, at in enumerate(range(0, len(samples), size))
    ]
    return [*pieces, Spoke(job.id, len(pieces))]


def call(session: SessionRunner, id: str) -> tuple[FakeLink, Track]:
    link, track = FakeLink(id, LinkKind.CALL), Track()
    link.playout = track
    link.attach(session)
    return link, track


def logged(session: SessionRunner) -> bytes:
    entries = [entry for _, entry in session.read(session.statistics().log.first - 1, 9_999)]
    return b"".join(entry.pcm for entry in entries if isinstance(entry, LoggedAudio))


@pytest.mark.parametrize("cuts", [[(0, 0)], [(1, 4_801), (60_000, 60_001), (119_999, 119_999)]])
@pytest.mark.parametrize("is_late", [True, False])
def test_calls_hear_every_sample_once_wherever_they_are_cut(
    cuts: list[tuple[int, int]], is_late: bool
) -> None:
    """What all tracks played, put together, is the reply, to the sample; `is_late`: the old call still is when the new
    one comes. The last is told as done once all was played."""

    async def test(house: House) -> None:
        session = house.registry.open(ASK, LinkKind.CALL)
        link, track = call(session, "call 0")
        heard = b""
        await client(session, "response.create")
        for number, cut in enumerate(at for pair in cuts for at in pair):
            track.played = max(0, min(cut * 2, len(logged(session))) - len(heard)) // 2
            heard += track.heard
            if not is_late:
                session.detach(link.id)
                await asyncio.sleep(0.5)
            old, (link, track) = link, call(session, f"call {number + 1}")
            await asyncio.sleep(0.5)
            if is_late:
                assert old.closed == (1000, "Another call took over.")
                session.detach(old.id)
        assert track.finished
        track.played = 10**9
        heard += track.heard
        assert heard == logged(session)
        assert len(heard) == 240_000
        session.playout_drained(track.finished[0])
        await asyncio.sleep(0.1)
        assert link.types()[-1] == "output_audio_buffer.stopped"
        assert session.statistics().links == 1

    in_house(test, FakeWorkers(counting), rules=SessionRules(grace_us=10 * US_PER_S))


def test_call_whose_sound_the_log_has_lost_is_told_so() -> None:
    """What the log no longer holds is not played over: the sound ends where the first call was."""

    async def test(house: House) -> None:
        session = house.registry.open(ASK, LinkKind.CALL)
        link, track = call(session, "one")
        await client(session, "response.create")
        await asyncio.sleep(1)
        track.played = 48_000
        session.detach("one")
        await asyncio.sleep(1)
        session.forget_log()
        link, track = call(session, "two")
        await asyncio.sleep(1)
        assert link.types()[1:] == ["output_audio_buffer.cleared", "conversation.item.truncated"]
        assert link.events[-1]["audio_end_ms"] == 2_000
        assert track.pcm == b""
        assert track.flushes == 1

    in_house(test, FakeWorkers(counting), rules=SessionRules(grace_us=10 * US_PER_S))


def test_last_words_of_a_calls_track_count() -> None:
    """How far it had come is asked when the call goes, and not from when somebody last looked."""

    async def test(house: House) -> None:
        session = house.registry.open(ASK, LinkKind.CALL)
        watching = FakeLink("side", LinkKind.SIDEBAND)
        watching.attach(session)
        _, track = call(session, "one")
        await client(session, "response.create")
        await asyncio.sleep(1)
        track.played = 36_000
        session.detach("one")
        await asyncio.sleep(11)
        assert watching.types()[-2:] == ["output_audio_buffer.cleared", "conversation.item.truncated"]
        assert watching.events[-1]["audio_end_ms"] == 1_500

    in_house(test, FakeWorkers(counting), rules=SessionRules(grace_us=10 * US_PER_S))
