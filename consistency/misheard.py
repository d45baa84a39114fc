"""Whether a slot's value was said and not recognised, and what was said instead, from cheap to dear. Pure.

The recogniser's own doubt costs nothing; the values that a domain lists are scored under the sound; then somebody else
listens, the second recogniser where there is one. Only utterances are looked into whose intent takes slots.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from consistency.finding import Finding
from consistency.observation import ForcedScore, Observation, Token
from consistency.policy import SECOND
from consistency.reading import Reader
from consistency.rivals import Rival, rivals
from consistency.slots import same_value
from consistency.sounding import Sounding, forced, ratio
from consistency.verdict import Evidence, WantScore, WantTranscript
from consistency.wording import CONTENT, wording

AGAIN = 2
"""The rung that listens again where there is no second recogniser: it tells other likely texts."""

NEAR = 0.2
"""How alike words and a listed value sound that are looked into although the recogniser had no doubt."""

Listed = Mapping[str, Mapping[str, str]]
"""Slots with the words for the values that a domain lists, maybe none, and these values."""


class Doubt(Protocol):
    """Tells how likely a slot's value was misheard."""

    def doubt(
        self, heard: Observation, second: Observation | None = None, score: ForcedScore | None = None
    ) -> float:
        """Returns the probability, in [0, 1]. `second`: what the second recogniser heard, `score`: how well what was
        heard fits the sound under it."""
        ...


class Domain(Protocol):
    """Knows what is wanted of an utterance."""

    def takes(self, one: Observation) -> Listed:
        """Returns the slots that the intent of an observation takes; none where it has no intent of the domain."""
        ...

    def listed(self) -> Listed:
        """Returns all slots that have listed values."""
        ...


class Misheard:
    """Looks into utterances of one domain."""

    def __init__(self, doubt: Doubt, domain: Domain, read: Reader | None = None) -> None:
        self._doubt = doubt
        self._domain = domain
        self._read = read

    def concerns(self, heard: Observation, most: float, asks: bool = False) -> bool:
        """Whether an utterance is to wait until it is understood, so that it can be looked into. `most`: the doubt that
        is let pass. `asks`: the user may be asked."""
        if heard.modality != "speech" or not heard.words or most >= 1:
            return False
        if asks and rivals(heard, {}):
            return True
        return bool(self._domain.listed()) and self._doubt.doubt(heard) > most

    def find(self, sound: Sounding, asks: bool = False) -> Finding:
        """Looks into what stands of one utterance. Where the user may be asked (`asks`), it is left to him which of
        two numbers he said that are mistaken for each other, should both fit the sound."""
        found = self._lost(sound)
        if not asks or found.state != "agreed" or found.adopted is not None:
            return found
        return self._of_two_numbers(sound, found)

    def _of_two_numbers(self, sound: Sounding, found: Finding) -> Finding:
        heard = sound.heard
        values = " ".join(token.value.casefold() for token in heard.tokens if token.slot and token.intent)
        others = tuple(
            one for one in rivals(heard, {}) if re.search(rf"\b{re.escape(one.replaced)}\b", values)
        )
        if (first := sound.unscored(tuple(one.text for one in others), found.evidence)) is not None:
            return first
        scored = [(one, score) for one in others if (score := sound.known.scores.get(one.text)) is not None]
        fitting = [(one, score) for one, score in scored if ratio(score) >= sound.rules.fits]
        if not fitting:
            return found
        rival, score = max(fitting, key=lambda pair: (ratio(pair[1]), pair[0].text))
        between = (heard, self._with(heard, rival, {}))
        return Finding("open", (forced(score), *found.evidence), verified=found.verified, between=between)

    def _lost(self, sound: Sounding) -> Finding:
        heard, most = sound.heard, sound.rules.lost
        takes = self._domain.takes(heard) if heard.modality == "speech" and heard.words else {}
        if not takes or most >= 1:
            return Finding()
        filled = {token.slot for token in heard.tokens}
        open_slots = {slot: values for slot, values in takes.items() if slot not in filled}
        chance = self._doubt.doubt(heard)
        near = _near(heard, open_slots)
        if chance <= most and not near:
            return Finding()
        told = Evidence("lost_slot", chance, ", ".join(sorted(open_slots)) or "no slot is open")
        evidence: tuple[Evidence, ...] = (told,)
        others = rivals(heard, _words(takes)) if chance > most else near
        texts = tuple(one.text for one in others)
        if (first := sound.unscored(texts, evidence)) is not None:
            return first
        verified = all(text in sound.known.scores for text in texts)
        best = self._best(sound, others)
        if best is not None:
            rival, score = best
            reading = self._with(heard, rival, takes)
            return Finding(
                evidence=(forced(score), *evidence), adopted=(heard.id, reading), verified=verified
            )
        if chance <= most:
            return Finding(evidence=evidence, verified=verified)
        return self._heard_by_others(sound, evidence, verified)

    def _best(self, sound: Sounding, others: tuple[Rival, ...]) -> tuple[Rival, ForcedScore] | None:
        """Returns the listed value that was said: one that fits as well as words of no listed value, or better than
        another value does."""
        scored = [(one, score) for one in others if (score := sound.known.scores.get(one.text)) is not None]
        fitting = [
            (one, score)
            for one, score in scored
            if score.apart and ratio(score) >= (0.0 if one.present else sound.rules.fits)
        ]
        return max(fitting, key=lambda pair: (ratio(pair[1]), pair[0].text), default=None)

    def _heard_by_others(self, sound: Sounding, evidence: tuple[Evidence, ...], verified: bool) -> Finding:
        """Somebody else listens; what is heard then stands where the doubt remains and it fills a slot otherwise."""
        heard, rules = sound.heard, sound.rules
        rung = SECOND if SECOND in rules.rungs else AGAIN
        if rung not in rules.rungs:
            return Finding(evidence=evidence, verified=verified)
        if rung not in sound.known.reheard:
            want = WantTranscript(heard.id, rung)
            return (
                Finding("suspect", evidence, (want,))
                if sound.waits
                else Finding(evidence=evidence, verified=False)
            )
        again = sound.known.reheard[rung]
        if again is None or not again.text:
            return Finding(evidence=evidence, verified=verified)
        if rung == SECOND:
            if heard.text not in sound.known.second:
                want_score = WantScore(heard.id, (heard.text,), SECOND)
                if sound.waits:
                    return Finding("suspect", evidence, (want_score,))
                return Finding(evidence=evidence, verified=False)
            chance = self._doubt.doubt(heard, again, sound.known.second[heard.text])
        else:
            chance = self._doubt.doubt(replace(heard, alternatives=again.alternatives))
        told = Evidence("heard_again", chance, f"rung {rung}: {again.text}"[:120])
        evidence = (told, *evidence)
        if chance > rules.lost and self._fills_more(again, heard):
            return Finding(evidence=evidence, adopted=(heard.id, again), verified=verified)
        return Finding(evidence=evidence, verified=verified)

    def _fills_more(self, again: Observation, heard: Observation) -> bool:
        """Whether what was heard again has all slots of what was heard first, and another value or one more. What fills
        no intent (some number) is none."""
        ours = {token.slot: token.value for token in heard.tokens if token.slot}
        theirs = {token.slot: token.value for token in again.tokens if token.slot and token.intent}
        return ours.keys() <= theirs.keys() and any(
            slot not in ours or not same_value(value, ours[slot], self._read)
            for slot, value in theirs.items()
        )

    def _with(self, heard: Observation, rival: Rival, takes: Listed) -> Observation:
        """Returns an utterance with a listed value in it."""
        others = (one for one in heard.tokens if not rival.slot or one.slot not in ("", rival.slot))
        tokens = tuple(_exchanged(one, rival) for one in others)
        if rival.slot:
            service = next((one.service for one in heard.tokens), "")
            tokens += (
                Token(heard.intent or "", rival.slot, takes[rival.slot][rival.value], service=service),
            )
        return replace(
            heard,
            id=f"{heard.id}~{rival.slot or 'number'}",
            text=rival.text,
            normal="",
            facts=() if self._read is None else self._read(rival.text),
            tokens=tokens,
            revision=heard.revision + 1,
            words=(),
        )


def _exchanged(token: Token, rival: Rival) -> Token:
    """Returns a token with the words exchanged in its value too, should they stand in it."""
    found = re.search(rf"\b{re.escape(rival.replaced)}\b", token.value, re.IGNORECASE)
    value = token.value
    if found is not None:
        value = f"{value[: found.start()]}{rival.value}{value[found.end() :]}"
    return replace(token, value=value, start=-1, stop=-1)


def _words(listed: Listed) -> dict[str, tuple[str, ...]]:
    return {slot: tuple(values) for slot, values in listed.items() if values}


def _near(heard: Observation, listed: Listed) -> tuple[Rival, ...]:
    """The listed values that may stand in the place of words which are none, so alike do they sound. Words that every
    text has are not taken for a value."""
    found = rivals(heard, _words(listed))
    near = tuple(one for one in found if one.slot and not one.present and one.far <= NEAR)
    if not near:
        return ()
    light = {unit.text for unit in wording(heard).units if unit.weight < CONTENT}
    return tuple(one for one in near if not light.issuperset(one.replaced.casefold().split()))
