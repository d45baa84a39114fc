"""An hour of talk in one session, on virtual time: no turn costs more than an early one, and nothing piles up."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from orchestrator.clock import US_PER_S
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.work import Replied, Reply, ReplyText, Report, Speak, SpeechPiece, Spoke
from orchestrator.sessions.checking import MOST_SOURCES
from orchestrator.sessions.effects import Effect
from orchestrator.sessions.events import Event
from orchestrator.sessions.rules import SessionRules
from orchestrator.sessions.runner import SessionRunner
from tests.fakes.workers import FakeWorkers, obliging
from tests.long.holdings import sizes
from tests.sessions.running import SILENCE, House, client, in_house, spoken

TURNS, FULL = 60, 40
REPLY = " ".join(
    f"This is sentence {n} of a long answer that fills the model's context soon." for n in range(34)
)
"""So long that prompts have their full size before the tenth turn."""

HISTORY = frozenset({"Conversation._entries", "Conversation._by_id"})
"""What a conversation is made of grows with it, up to `SessionRules.max_items`."""

BOUNDED = {
    "Checker._sources": MOST_SOURCES,
    "Checker._verdicts": MOST_SOURCES,
    "VerdictReached.item_ids": MOST_SOURCES,  # one for each verdict of such turns
}
"""What an hour of such turns does not fill: its own bound holds."""

OF_OTHERS = frozenset(
    {"SessionRunner._links", "SessionRunner._dispatcher", "Submitting._dispatcher", "SpeechIntake._detector"}
)


def answer(job: Job) -> Sequence[Report]:
    """Writes long replies and says each sentence in a second."""
    match job.work:
        case Reply():
            return [ReplyText(job.id, REPLY), Replied(job.id, "stop", 1, 0, 1)]
        case Speak():
            return [SpeechPiece(job.id, 0, 24_000, 24_000, bytes(48_000)), Spoke(job.id, 1)]
        case _:
            return obliging(job)


class Meter:
    """Counts the heart's work: calls of functions made, effects wanted."""

    def __init__(self, runner: SessionRunner) -> None:
        self._receive = runner.heart.receive
        runner.heart.receive = self  # type: ignore[method-assign]
        self.calls = 0
        self.effects = 0

    def __call__(self, event: Event, now: int) -> tuple[Effect, ...]:
        sys.setprofile(self._count)
        try:
            effects = self._receive(event, now)
        finally:
            sys.setprofile(None)
        self.effects += len(effects)
        return effects

    def _count(self, _frame: Any, what: str, _argument: Any) -> None:
        self.calls += what in ("call", "c_call")

    def take(self) -> tuple[int, int]:
        taken = self.calls, self.effects
        self.calls = self.effects = 0
        return taken


def test_long_talk_costs_the_same_in_its_last_minutes_as_in_its_first() -> None:
    """Sixty spoken turns in sixty minutes. The last ten take as many calls and effects as the second ten; prompts are
    bounded; whatever a session holds beside its history is no more at the end than after 40 turns, when it is full.
    """
    work: list[tuple[int, int]] = []
    prompts: list[int] = []
    held: list[dict[str, int]] = []

    def noting(job: Job) -> Sequence[Report]:
        if isinstance(job.work, Reply):
            prompts.append(sum(len(message.content) for message in job.work.messages))
        return answer(job)

    async def test(house: House) -> None:
        session, link = house.open()
        audio = {"input": {"transcription": {"model": "x"}}}
        await client(session, "session.update", session={"type": "realtime", "audio": audio})
        meter = Meter(session)
        loop = asyncio.get_running_loop()
        for turn in range(TURNS):
            done = link.types().count("response.done")
            await spoken(session)
            while loop.time() < 60 * (turn + 1):
                session.intake.append(SILENCE)
                await asyncio.sleep(1)
            assert link.types().count("response.done") == done + 1
            work.append(meter.take())
            if turn in (FULL, TURNS - 1):
                held.append(sizes(session, HISTORY | OF_OTHERS))
        assert len(session.heart.conversation) == 2 * TURNS

    rules = SessionRules(max_session_us=2 * 3_600 * US_PER_S)
    in_house(test, FakeWorkers(noting), rules=rules, log_events=400)

    early, late = work[10:20], work[-10:]
    for cost in (0, 1):
        assert sum(turn[cost] for turn in late) <= 1.1 * sum(turn[cost] for turn in early)
    assert 20_000 < max(prompts[:10]) <= 24_100
    assert max(prompts) <= 24_100
    full, _ = held
    grown = {name: (full[name], size) for name, size in held[-1].items() if size > 1.02 * full[name] + 8}
    assert not {name: sizes for name, sizes in grown.items() if sizes[1] > BOUNDED.get(name, 0)}
