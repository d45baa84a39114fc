"""Sessions before a dispatcher that has too little: what it refuses, and what grows old there, reaches clients."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.clock import US_PER_S
from orchestrator.flow.concurrency import FixedLimit
from orchestrator.flow.limiter import Limiter
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.work import REFUSED
from orchestrator.sessions.events import Event
from orchestrator.sessions.rules import SessionRules
from tests.fakes.links import FakeLink
from tests.fakes.workers import FakeWorkers
from tests.sessions.running import House, client, in_house
from tests.sessions.strict_client import StrictClient

TELL = {"type": "realtime", "chorale": {"events": ["chorale.overload"]}}


class Voiceless(FakeWorkers):
    """The synthesiser never has a place."""

    def free(self) -> Mapping[str, FreeSlots]:
        return {name: slots for name, slots in super().free().items() if name != "speech"}


def of(link: FakeLink, type: str) -> list[dict[str, Any]]:
    return [event for event in link.events if event["type"] == type]


def checked(link: FakeLink) -> None:
    """A client that believes nothing finds no fault with what came."""
    strict = StrictClient(on_the_wire=True)
    for event in link.events:
        strict.feed(event)
    strict.end()


def test_sentences_that_grow_old_in_the_queue_stay_text() -> None:
    """No place at the synthesiser for two seconds: the answer completes without its sound, and says why."""

    async def test(house: House) -> None:
        session, link = house.open()
        await client(session, "session.update", session=TELL)
        await client(session, "response.create")
        await asyncio.sleep(1)
        assert not of(link, "response.done")
        await asyncio.sleep(2)
        (done,) = of(link, "response.done")
        (told,) = of(link, "chorale.overload")
        assert done["response"]["status"] == "completed"
        assert (told["kind"], told["reason"]) == ("speech", "deadline_exceeded")
        assert told["response_id"] == done["response"]["id"]
        assert link.sound == []
        checked(link)

    in_house(test, Voiceless(), rules=replace(SessionRules(), speak_within_us=2 * US_PER_S))


def test_reply_that_is_refused_says_when_to_try_again() -> None:
    """Two sessions ask, one job may be inside: the second fails at once, and works when it comes back."""

    async def test(house: House) -> None:
        first, first_link = house.open()
        second, second_link = house.open()
        await client(second, "session.update", session=TELL)
        await client(first, "response.create")
        await asyncio.sleep(0.1)
        await client(second, "response.create")
        await asyncio.sleep(0.1)
        (done,) = of(second_link, "response.done")
        (told,) = of(second_link, "chorale.overload")
        error = done["response"]["status_details"]["error"]
        assert done["response"]["status"] == "failed"
        assert error["code"] == REFUSED
        assert "try again in" in error["message"]
        assert (told["kind"], told["reason"]) == ("llm", "queue_full")
        assert told["retry_after_s"] >= 0
        await asyncio.sleep(5)
        await client(second, "response.create")
        await asyncio.sleep(5)
        assert of(second_link, "response.done")[-1]["response"]["status"] == "completed"
        assert of(first_link, "response.done")[-1]["response"]["status"] == "completed"
        checked(first_link)
        checked(second_link)

    in_house(test, FakeWorkers(delay_s=1.0), limiter=Limiter(FixedLimit(1)))


def test_runner_lets_others_have_their_turn_between_events_that_take_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Twenty events that came together and take 4 ms each: others run some ten times before the last is done, and what
    the first ones gave is sent by then. Nothing overtakes."""

    async def test(house: House) -> None:
        runner, link = house.open()
        await asyncio.sleep(1)
        turns, taken = 0, []
        usual, late_us = runner._take, 0
        now = runner._now

        def take(event: Event) -> None:
            nonlocal late_us
            taken.append(turns)
            usual(event)
            late_us += 4_000

        async def others() -> None:
            nonlocal turns
            while len(taken) < 20:
                turns += 1
                await asyncio.sleep(0)

        monkeypatch.setattr(runner, "_now", lambda: now() + late_us)
        monkeypatch.setattr(runner, "_take", take)
        beside = asyncio.create_task(others())
        for number in range(20):
            text = [{"type": "input_text", "text": str(number)}]
            item = {"id": f"item_{number}", "type": "message", "role": "system", "content": text}
            await client(runner, "conversation.item.create", item=item)
        await beside
        assert taken == sorted(taken)
        assert taken[-1] - taken[0] >= 9
        await asyncio.sleep(1)
        added = [event["item"]["id"] for event in of(link, "conversation.item.added")]
        assert added == [f"item_{number}" for number in range(20)]

    in_house(test)
