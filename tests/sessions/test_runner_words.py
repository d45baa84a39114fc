"""The words of a reply on their way through a runner: straight where nothing is before them, in their turn else."""

import asyncio
import json

import pytest

from orchestrator.scheduling.job import Job
from orchestrator.scheduling.work import Replied, ReplyText, Report
from orchestrator.sessions import effects as do
from orchestrator.sessions import events as on
from orchestrator.sessions.session import Session
from orchestrator.wire import codec
from tests.fakes.workers import FakeWorkers
from tests.sessions.running import House, in_house

_ASK = codec.decode_client(
    json.dumps({"type": "response.create", "response": {"output_modalities": ["text"]}})
)


def words(count: int) -> FakeWorkers:
    def answer(job: Job) -> list[Report]:
        return [*(ReplyText(job.id, f"{at} ") for at in range(count)), Replied(job.id, "stop")]

    return FakeWorkers(answer)


def test_runner_wakes_no_task_for_the_words_of_a_reply() -> None:
    """The inbox sees the question and the reply's end; the client sees every word."""

    async def test(house: House) -> None:
        session, link = house.open()
        await session.submit("link", _ASK)
        await asyncio.sleep(1)
        assert session.statistics().inbox.put == 2
        deltas = [event["delta"] for event in link.events if event["type"] == "response.output_text.delta"]
        assert deltas == [f"{at} " for at in range(50)]

    in_house(test, words(50))


def test_runner_lets_no_word_overtake_what_came_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in the inbox is handled first, and the words behind it in their order."""

    async def test(house: House) -> None:
        session, _ = house.open()
        await asyncio.sleep(1)
        seen: list[on.Event] = []

        def receive(event: on.Event, now: int) -> tuple[do.Effect, ...]:
            seen.append(event)
            return ()

        monkeypatch.setattr(session.heart, "receive", receive)
        sent = [ReplyText("job", "a"), ReplyText("job", "b"), ReplyText("job", "c")]
        session._deliver(sent[0])
        session._inbox.put_nowait(on.TimePassed())
        session._deliver(sent[1])
        session._deliver(sent[2])
        assert seen == [on.ReportCame(sent[0])]
        await asyncio.sleep(1)
        assert seen[1:] == [on.TimePassed(), on.ReportCame(sent[1]), on.ReportCame(sent[2])]

    in_house(test)


def test_runner_lets_words_take_their_turn_while_a_call_sounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A deadline may hang on them then: the task that keeps deadlines handles them."""

    async def test(house: House) -> None:
        session, _ = house.open()
        await asyncio.sleep(1)
        before = session.statistics().inbox.put
        monkeypatch.setattr(Session, "sounding", property(lambda _: ("resp_1",)))
        session._deliver(ReplyText("job", "a"))
        assert session.statistics().inbox.put == before + 1

    in_house(test)


def test_runner_that_fails_over_a_word_ends_its_session_and_no_other(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As over any other event: its links are closed, other sessions notice nothing."""

    async def test(house: House) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        sick, sick_link = house.open()
        healthy, link = house.open()
        usual = sick.heart.receive

        def receive(event: on.Event, now: int) -> tuple[do.Effect, ...]:
            if isinstance(event, on.ReportCame) and isinstance(event.report, ReplyText):
                raise ZeroDivisionError
            return usual(event, now)

        monkeypatch.setattr(sick.heart, "receive", receive)
        for session in (sick, healthy):
            await session.submit("link", _ASK)
        await asyncio.sleep(1)
        assert sick_link.closed is not None
        assert link.types()[-1] == "response.done"

    in_house(test, words(3))
    assert "session failed" in caplog.text
