"""Sessions whose user says one thing in several ways, before judges whose opinion is written down."""

from typing import Any

from consistency.policy import EngineRules, Policy
from orchestrator.scheduling.work import (
    FactFound,
    Score,
    Scored,
    SlotFound,
    TextFit,
    Transcribe,
    Transcribed,
    Understood,
    WordsApart,
)
from orchestrator.sessions.rules import ConsistencyRules, SessionRules
from tests.consistency.saying import said
from tests.fakes.judges import ScriptedGraph, ScriptedJudge
from tests.sessions.talk import Shown, Talk

FIFTY = "set a timer for fifty minutes"
FIFTEEN = "set a timer for fifteen minutes"
EVENTS = ["chorale.verdict", "chorale.frozen", "chorale.realigned", "chorale.rolled_back"]
PAIRS = {
    (FIFTY, FIFTEEN): ("restatement", 0.97),
    (FIFTEEN, "no, fifteen"): ("correction", 0.1),
    (FIFTY, "no, fifteen"): ("correction", 0.9),
}
SLOTS = {"seven": ("time", "7"), "eight": ("time", "8"), "loosely": ("time", "loose")}


def meaning(text: str) -> Understood:
    """Numbers in a text are facts, and some words are values of slots."""
    one = said(text, 0.0)
    facts = tuple(FactFound(fact.kind, fact.value, fact.start, fact.stop) for fact in one.facts)
    slots = tuple(
        SlotFound(*SLOTS[word], text.index(word), text.index(word) + len(word), 1.0)
        for word in text.split()
        if word in SLOTS
    )
    return Understood("", normal=one.normal, facts=facts, slots=slots, intent="book" if slots else None)


def rules(policy: Policy = "later", asks: bool = False, **changes: Any) -> SessionRules:
    """Rules with judges that know the timers."""
    consistency = ConsistencyRules(
        engine=EngineRules(policy=policy),
        asks=asks,
        judge=ScriptedJudge(PAIRS),  # type: ignore[arg-type]
        graph=ScriptedGraph({"loose": 0.4}),
    )
    return SessionRules(**{"consistency": consistency, **changes})


def talk(
    policy: Policy = "later",
    asks: bool = False,
    typed_turns: bool = True,
    modality: str = "text",
    **changes: Any,
) -> Talk:
    """A session of a client that wants to be told everything, answered in text."""
    one = Talk(rules=rules(policy, asks, **changes))
    one.meaning = meaning
    one.update(
        output_modalities=[modality],
        audio={"input": {"transcription": {"model": "x"}}},
        chorale={"typed_turns": typed_turns, "events": EVENTS},
    )
    return one


def conflict(one: Talk) -> tuple[str, str]:
    """The user says fifty (as far as is recognised) and types fifteen; returns both items' ids."""
    one.speak()
    spoken = one.last("input_audio_buffer.committed")["item_id"]
    one.typed(FIFTEEN)
    typed = one.last("conversation.item.added")["item"]["id"]
    one.transcribed(FIFTY)
    return spoken, typed


def scores(one: Talk) -> list[str]:
    return one.open_jobs(Score)


def fits(one: Talk, ratio: float) -> list[Shown]:
    """The recogniser says how much likelier what was typed is than what it had heard."""
    job_id = scores(one)[0]
    work = one.jobs.pop(job_id).work
    assert isinstance(work, Score)
    heard = TextFit(work.recognised, work.recognised, -10.0, -1.0, -2.0)
    found = tuple(
        TextFit(
            text, text, -10.0 + ratio, -1.0 + ratio / 8, -2.0 + ratio / 2, (WordsApart("x", "y", ratio / 2),)
        )
        for text in work.texts
    )
    return one.report(Scored(job_id, heard, found))


def recognised_again(one: Talk, text: str) -> list[Shown]:
    """The recogniser has listened once more."""
    (job_id,) = one.open_jobs(Transcribe)
    del one.jobs[job_id]
    return one.report(Transcribed(job_id, text))


def verdicts(one: Talk) -> list[str]:
    return [event["verdict"] for event in one.all("chorale.verdict")]
