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
_SHOWN_REASONS = 8
_SHOWN_CHARACTERS = 160


@dataclass(slots=True)
class Source:
    """One thing that the user said, typed or sent, and where it came from.

    `told`: the words that clients know of it, None while they wait for its transcript, which `heard` is then about.
    `work` is how its sound was recognised.
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


def verdict_events(
    verdict: Verdict, before: Verdict | None, item_ids: tuple[str, ...], snapshot: int
) -> tuple[ServerEvent, ...]:
    """Returns what clients who asked for it are told of a verdict on these items; `before` is what stood until now."""
    unit, evidence = verdict.unit, reasons(verdict.evidence)
    verified = verdict.verified if isinstance(verdict, Accept) else not isinstance(verdict, Suspect | Freeze)
    events: list[ServerEvent] = [
        VerdictReached(unit, _NAMES[type(verdict)], verified, item_ids, snapshot, evidence)
    ]
    if isinstance(verdict, Freeze) and not isinstance(before, Freeze):
        events.append(Frozen(unit, item_ids, evidence))
    if isinstance(verdict, RollBack):
        events.append(RolledBack(unit, verdict.to, item_ids, evidence))
    return tuple(events)


def work_for(want: Want, heard: Transcribe, report: Transcribed) -> Score | Transcribe:
    """Returns the recogniser's work for a want about sound that has been recognised before."""
    if isinstance(want, WantScore):
        return Score(
            start=heard.start,
            stop=heard.stop,
            texts=want.texts,
            recognised=report.text.strip(),
            near=report.job_id,
            rung=report.rung,
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
