"""What a user said, as the consistency engine sees it: the words of clients and workers become observations. Pure."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from consistency.observation import (
    NO_VECTOR,
    VECTOR_DIMENSIONS,
    Fact,
    ForcedScore,
    Modality,
    Observation,
    Token,
    Word,
)
from consistency.policy import SECOND
from consistency.verdict import Accept, Ask, Evidence, Freeze, RollBack, Suspect, Verdict, Want, WantScore
from orchestrator.clock import US_PER_S
from orchestrator.scheduling.work import Score, Scored, Transcribe, Transcribed, Understood
from orchestrator.sessions.utterance import Heard
from orchestrator.wire.client import GiveTokens
from orchestrator.wire.server import Frozen, Reason, RolledBack, ServerEvent, VerdictName, VerdictReached

_NAMES: dict[type[Verdict], VerdictName] = {
    Accept: "accept",
    Suspect: "suspect",
    Freeze: "freeze",
    Ask: "ask",
    RollBack: "roll_back",
}
ALTERNATIVES = 5
"""Other likely texts that are asked for where an utterance is recognised again with a wide beam."""

_SHOWN_REASONS = 8
_SHOWN_CHARACTERS = 160


@dataclass(slots=True)
class Source:
    """One thing that the user said, typed or sent, and where it came from.

    `told`: the words that clients know of it, None while they wait for its transcript, which `heard` is then about.
    `work` is how its sound was recognised, `second` what the second recogniser made of it.
    """

    id: str
    item_id: str
    unit: int
    modality: Modality
    start_us: int
    stop_us: int
    text: str
    tokens: tuple[Token, ...] = ()
    report: Transcribed | None = None
    work: Transcribe | None = None
    heard: Heard | None = None
    told: str | None = None
    revision: int = 0
    asks: bool = False
    observed: bool = False
    second: Transcribed | None = None


def observation(
    source: Source, found: Understood | None, id: str = "", report: Transcribed | None = None
) -> Observation:
    """Returns what an utterance, a message or a form claims. `report` is another recognition of the same sound, with an
    `id` of its own."""
    report = report or source.report
    return Observation(
        id=id or source.id,
        modality=source.modality,
        start_us=source.start_us,
        stop_us=source.stop_us,
        text=report.text.strip() if report is not None else source.text,
        normal="" if found is None else found.normal,
        facts=() if found is None else tuple(Fact(f.kind, f.value, f.start, f.stop) for f in found.facts),
        vector=NO_VECTOR if found is None else _vector(found.vector),
        words=() if report is None else _words(report, source.start_us),
        tokens=source.tokens or tokens_of(found),
        intent=None if found is None else found.intent,
        log_probability=0.0 if report is None else report.average_logprob,
        no_speech_probability=0.0 if report is None else report.no_speech_probability,
        revision=source.revision,
        likeness=()
        if found is None
        else tuple((name, much / 10_000) for name, much in found.likeness.items()),
        alternatives=()
        if report is None
        else tuple((one.text, one.log_probability) for one in report.alternatives),
    )


def tokens_of(found: Understood | None) -> tuple[Token, ...]:
    """Returns what was understood of a text as tokens."""
    if found is None:
        return ()
    intent = found.intent or ""
    slots = tuple(
        Token(intent, slot.name, slot.value, "inform", slot.confidence, slot.start, slot.stop)
        for slot in found.slots
    )
    return slots or ((Token(intent, confidence=found.confidence),) if intent else ())


def given_tokens(event: GiveTokens) -> tuple[Token, ...]:
    """Returns what a client's form says as tokens."""
    intent = event.intent or ""
    return tuple(Token(intent, slot.name, slot.value) for slot in event.slots) or (Token(intent),)


def written(event: GiveTokens) -> str:
    """Returns a client's form in words, for models and people: ``book: time = 19:00, people = 4``."""
    slots = ", ".join(f"{slot.name} = {slot.value}" for slot in event.slots)
    return ": ".join(part for part in (event.intent, slots) if part)


def forced_scores(report: Scored, rung: int) -> tuple[ForcedScore, ...]:
    """Returns how well texts fit the sound, beside what was recognised; from rung 3 on by the second recogniser."""
    heard = report.recognised
    if heard is None:
        return ()
    return tuple(
        ForcedScore(
            text=fit.text,
            total=fit.total,
            mean=fit.mean,
            lowest=fit.lowest,
            recognised_total=heard.total,
            recognised_mean=heard.mean,
            recognised_lowest=heard.lowest,
            apart=tuple((words.recognised, words.text, words.ratio) for words in fit.apart),
            rung=rung,
        )
        for fit in report.fits
    )


def reasons(evidence: tuple[Evidence, ...]) -> tuple[Reason, ...]:
    """Returns what a verdict rests on as clients are told."""
    return tuple(
        Reason(one.name, round(one.value, 4), one.about[:_SHOWN_CHARACTERS])
        for one in evidence[:_SHOWN_REASONS]
    )


@dataclass(frozen=True, slots=True)
class Told:
    """A verdict, and the event by which clients were told of it."""

    verdict: Verdict
    event: VerdictReached


def tell(verdict: Verdict, item_ids: tuple[str, ...], snapshot: int) -> Told:
    """Returns a verdict on these items with its event."""
    verified = verdict.verified if isinstance(verdict, Accept) else not isinstance(verdict, Suspect | Freeze)
    event = VerdictReached(
        verdict.unit, _NAMES[type(verdict)], verified, item_ids, snapshot, reasons(verdict.evidence)
    )
    return Told(verdict, event)


def verdict_events(now: Told, before: Told | None) -> tuple[ServerEvent, ...]:
    """Returns what clients who asked for it are told; `before` is what they were told last of this unit, if anything.

    Nothing is said twice. While a unit waits, more evidence for the same is no news: the verdict that settles it names
    all of it.
    """
    event = now.event
    if before is not None and (
        before.event == event
        or (isinstance(now.verdict, Suspect | Freeze) and _waits_as(event) == _waits_as(before.event))
    ):
        return ()
    events: list[ServerEvent] = [event]
    if isinstance(now.verdict, Freeze) and not (before and isinstance(before.verdict, Freeze)):
        events.append(Frozen(event.unit, event.item_ids, event.evidence))
    if isinstance(now.verdict, RollBack):
        last = before.verdict if before is not None else None
        if not isinstance(last, RollBack) or last.to != now.verdict.to:
            events.append(RolledBack(event.unit, now.verdict.to, event.item_ids, event.evidence))
    return tuple(events)


def _waits_as(event: VerdictReached) -> tuple[VerdictName, tuple[str, ...]]:
    return event.verdict, event.item_ids


def work_for(want: Want, source: Source) -> Score | Transcribe | None:
    """Returns the recogniser's work for a want about sound that has been recognised before; None where it has not."""
    heard, report = source.work, source.report
    if heard is None or report is None:
        return None
    if isinstance(want, WantScore):
        if want.rung == SECOND:
            report = source.second
        if report is None:
            return None
        return Score(
            start=heard.start,
            stop=heard.stop,
            texts=want.texts,
            recognised=report.text.strip(),
            near=report.job_id,
            rung=want.rung or report.rung,
            language=heard.language,
            clip=heard.clip,
        )
    return Transcribe(
        start=heard.start,
        stop=heard.stop,
        rung=want.rung,
        language=heard.language,
        prompt=heard.prompt,
        clip=heard.clip,
        alternatives=ALTERNATIVES if want.rung > 1 else 0,
    )


def _vector(data: bytes) -> NDArray[np.int16]:
    """Vectors of any other space than the whitened one cannot be compared here."""
    vector = np.frombuffer(data, dtype="<i2")
    return vector.astype(np.int16) if len(vector) == VECTOR_DIMENSIONS else NO_VECTOR


def _words(report: Transcribed, start_us: int) -> tuple[Word, ...]:
    return tuple(
        Word(
            word.text,
            word.probability,
            start_us + round(word.start_s * US_PER_S),
            start_us + round(word.stop_s * US_PER_S),
        )
        for word in report.words
    )
