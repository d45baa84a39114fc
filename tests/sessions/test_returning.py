"""Sessions with their runner: links that come back, buffers that were switched, sound in items."""

import asyncio
import base64
from typing import Any

import numpy as np

from orchestrator.clock import US_PER_S
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.work import Replied, Reply, ReplyText, Report, SpeechPiece, Spoke
from orchestrator.sessions import effects as do
from orchestrator.sessions.rules import SessionRules
from tests.fakes.links import FakeLink
from tests.fakes.workers import FakeWorkers
from tests.sessions.running import SILENCE, SPEECH, House, client, in_house, spoken
from tests.sessions.talk import Talk


def sound_item(seconds: int) -> dict[str, Any]:
    audio = base64.b64encode(np.full(24_000 * seconds, 5_000, dtype="<i2").tobytes()).decode()
    return {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": audio}]}


def test_returning_link_gets_the_whole_of_the_answer_that_waited_for_it() -> None:
    """The connection breaks while the question is transcribed: it sees the response from its first event on."""

    async def test(house: House) -> None:
        session, _ = house.open()
        await spoken(session)
        session.detach("link")
        await asyncio.sleep(3)
        back = FakeLink("back")
        back.attach(session)
        await asyncio.sleep(3)
        assert back.types()[:2] == ["session.created", "response.created"]
        assert back.types()[-1] == "response.done"

    in_house(test, FakeWorkers(delay_s=1.0))


def test_returning_to_push_to_talk_after_long_silence_refuses_no_sound() -> None:
    """Detection is switched off after more silence than the buffer holds: what comes then is taken and committed."""

    async def test(house: House) -> None:
        session, link = house.open()
        for _ in range(8):
            session.intake.append(SILENCE)
            await asyncio.sleep(1)
        manual = {"type": "realtime", "audio": {"input": {"turn_detection": None, "transcription": {}}}}
        await client(session, "session.update", session=manual)
        await asyncio.sleep(0.1)
        session.intake.append(SPEECH)
        await client(session, "input_audio_buffer.commit")
        await asyncio.sleep(2)
        assert link.types()[-1] == "conversation.item.input_audio_transcription.completed"
        assert not [event for event in link.events if event["type"] == "error"]

    in_house(test, rules=SessionRules(buffer_s=5, grace_us=10 * US_PER_S))


def test_leaving_nothing_behind_of_a_reply_that_was_cut() -> None:
    """Sound that arrives while its response is being cancelled is not kept."""

    async def test(house: House) -> None:
        session, link = house.open()
        await client(session, "response.create")
        while not link.sound:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.01)
        await client(session, "response.cancel")
        await asyncio.sleep(5)
        statistics = session.statistics()
        assert (statistics.pieces, statistics.links, statistics.inbox.held) == (0, 1, 0)

    def chatty(job: Job) -> list[Report]:
        if isinstance(job.work, Reply):
            return [ReplyText(job.id, "One sentence more. " * 9), Replied(job.id, "stop")]
        pieces: list[Report] = [SpeechPiece(job.id, i, 24_000, 480, bytes(960)) for i in range(50)]
        return [*pieces, Spoke(job.id, 50)]

    in_house(test, FakeWorkers(chatty))


def test_leaving_takes_the_sessions_work_back() -> None:
    """A session that has ended leaves no job in the queue and nothing listening."""

    async def test(house: House) -> None:
        session, _ = house.open()
        await client(session, "response.create")
        await asyncio.sleep(0.01)
        assert house.dispatcher.statistics().sessions == 1
        await house.registry.close()
        assert house.dispatcher.statistics().sessions == 0
        assert house.dispatcher.statistics().jobs.in_flight == 0

    in_house(test, FakeWorkers(delay_s=9))


def test_reading_sound_in_an_item_gives_others_their_turn() -> None:
    """Minutes of sound in one item are read in slices: the loop goes round between them."""

    async def test(house: House) -> None:
        session, _ = house.open()
        rounds = 0

        async def count() -> None:
            nonlocal rounds
            while True:
                rounds += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        await client(session, "conversation.item.create", item=sound_item(60))
        counting.cancel()
        await asyncio.wait([counting])
        assert rounds > 100

    in_house(test)


def test_reading_sound_leaves_nothing_of_an_item_that_is_refused() -> None:
    """An id in use, an unknown place: the clip of such an item is forgotten."""
    talk = Talk()
    talk.typed("first", id="mine")
    item = {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": "clip:1"}]}
    talk.client("conversation.item.create", item={**item, "id": "mine"})
    talk.client("conversation.item.create", item=item, previous_item_id="nobody")
    assert len(talk.errors()) == 2
    assert [e.clip for e in talk.effects if isinstance(e, do.ForgetClip)] == ["1", "1"]
