"""Sessions before a dispatcher that has too little: what it refuses, and what grows old there, reaches clients."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orchestrator.clock import US_PER_S
from orchestrator.flow.concurrency import FixedLimit
from orchestrator.flow.limiter import Limiter
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.work import REFUSED
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
