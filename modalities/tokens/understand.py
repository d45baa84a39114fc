"""Intent by the nearest example, slots by patterns: what a text means in a domain, with nothing trained."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from modalities.ports import Embedder, Slot, Understanding
from modalities.text.facts.standing import blanked
from modalities.tokens.leanings import as_meant, is_denied, leaning
from modalities.tokens.ontology import Domain, Intent, SlotType

_WORD = re.compile(r"[^\W\d]+")

LONGEST_TEXT = 4_000
"""Characters in which slots are looked for; nobody says more in one turn, and patterns cost time."""

PER_SLOT = 0.04
"""How much nearer an intent is for each slot of the text that it takes; half of it further for each other."""
A_LITTLE_FAR, CLEARLY_AHEAD = 0.08, 0.08
"""An intent that is below the threshold by so much is it all the same where it is so far ahead of the next."""


class ExampleUnderstander:
    """Embeds the domain's examples once; a text then costs its own vector and one matrix product.

    A text that corrects itself, or opens with a word of manners, costs a second vector: of what it means.
    """

    def __init__(self, embedder: Embedder, domain: Domain) -> None:
        self._embedder = embedder
        self._domain = domain
        examples = [example for intent in domain.intents for example in intent.examples]
        counts = [len(intent.examples) for intent in domain.intents]
        self._first_of = np.cumsum([0, *counts[:-1]])
        self._leanings = [leaning(example) for example in examples]
        self._slots = tuple((domain.slots or {}).values())
        told = descriptions(domain)
        self._described = tuple(told)
        self._descriptions = (
            embedder.embed(list(told.values())) if told else np.zeros((0, embedder.dimensions), np.float32)
        )
        self._examples = (
            embedder.embed(examples) if examples else np.zeros((0, embedder.dimensions), np.float32)
        )

    @property
    def embedder(self) -> Embedder:
        return self._embedder

    def understand(self, texts: Sequence[str]) -> list[Understanding]:
        meant = [as_meant(text[:LONGEST_TEXT]) for text in texts]
        more = [at for at, text in enumerate(texts) if meant[at] != text and self._domain.intents]
        vectors = self._embedder.embed([*texts, *(meant[at] for at in more)])
        of_meaning = dict(zip(more, vectors[len(texts) :], strict=True))
        return [
            self._one(text, meant[at], vectors[at], of_meaning.get(at, vectors[at]))
            for at, text in enumerate(texts)
        ]

    def _one(
        self, text: str, meant: str, vector: NDArray[np.float32], of_meaning: NDArray[np.float32]
    ) -> Understanding:
        intent, confidence = self._intent(text, meant, of_meaning)
        slots = find_slots(text, self._domain.slots_of(intent))
        return Understanding(
            vector, intent.name if intent else None, confidence, slots, self._likeness(of_meaning)
        )

    def _likeness(self, vector: NDArray[np.float32]) -> dict[str, float]:
        """Cosines with what is described; an intent is also what its examples are."""
        if not self._domain.intents:
            return {}
        described = (self._descriptions @ vector).tolist()
        found = {name: float(much) for name, much in zip(self._described, described, strict=True)}
        near = np.maximum.reduceat(self._examples @ vector, self._first_of).tolist()
        for intent, much in zip(self._domain.intents, near, strict=True):
            name = f"intent:{intent.service}.{intent.name}"
            found[name] = max(float(much), found.get(name, -1.0))
        return found

    def _intent(self, text: str, meant: str, vector: NDArray[np.float32]) -> tuple[Intent | None, float]:
        """Returns the intent with the nearest example and its likeness; none where it is far or not clearly ahead. What
        is a little far may be further ahead instead. Which one is ahead, the slots of the text tell too."""
        intents = self._domain.intents
        if not intents:
            return None, 0.0
        points = leaning(meant)
        likeness = self._examples @ vector
        likeness += np.array([points.towards(example) for example in self._leanings], np.float32)
        near = np.maximum.reduceat(likeness, self._first_of)
        words = set(_WORD.findall(meant.lower()))
        near[[bool(intent.never_with & words) for intent in intents]] = -1.0
        found = {slot.name for slot in find_slots(text, self._slots)}
        taken = [len(found & set(one.slots)) - len(found - set(one.slots)) / 2 for one in intents]
        ranked = near + PER_SLOT * np.array(taken, np.float32)
        order = np.argsort(-ranked, kind="stable")
        best = float(near[order[0]])
        lead = float(ranked[order[0]] - ranked[order[1]]) if len(order) > 1 else CLEARLY_AHEAD
        is_near = best >= self._domain.threshold and lead >= self._domain.margin
        is_ahead = best >= self._domain.threshold - A_LITTLE_FAR and lead >= CLEARLY_AHEAD
        first = int(order[0])
        if not (is_near or is_ahead) or (points.forbids and not self._forbids(first, likeness)):
            return None, 0.0
        return intents[first], min(best, 1.0)

    def _forbids(self, intent: int, likeness: NDArray[np.float32]) -> bool:
        """Whether the nearest example of an intent forbids something itself: nobody is given what he forbids, however
        near the words are."""
        start = int(self._first_of[intent])
        count = len(self._domain.intents[intent].examples)
        return self._leanings[start + int(np.argmax(likeness[start : start + count]))].forbids


def descriptions(domain: Domain) -> dict[str, str]:
    """Returns the sentences in which a domain tells its services and intents, by the names of `Understanding.likeness`.
    Services without intents are nobody's."""
    found: dict[str, str] = {}
    services = domain.services or {}
    for intent in domain.intents:
        found.setdefault(f"service:{intent.service}", services.get(intent.service, ""))
        found[f"intent:{intent.service}.{intent.name}"] = intent.description
    return {name: text for name, text in found.items() if text}


def find_slots(text: str, types: Sequence[SlotType]) -> tuple[Slot, ...]:
    """Returns the slots in a text in the order in which they stand there. Where two overlap, the longer one is it. What
    was taken back ("Boston, no, Austin") or is not wanted ("not on Friday") is none."""
    looked_at = blanked(text[:LONGEST_TEXT])
    found = [slot for type_ in types for slot in _matches(looked_at, type_)]
    found.sort(key=lambda slot: (slot.start - slot.stop, slot.start))
    kept: list[Slot] = []
    for slot in found:
        if all(slot.stop <= other.start or slot.start >= other.stop for other in kept):
            kept.append(slot)
    wanted = (slot for slot in kept if not is_denied(looked_at, slot.start))
    return tuple(sorted(wanted, key=lambda slot: slot.start))


def _matches(text: str, type_: SlotType) -> list[Slot]:
    found = []
    for pattern in type_.patterns:
        group: str | int = "value" if "value" in pattern.groupindex else 0
        for match in pattern.finditer(text):
            start, stop = match.span(group)
            value = " ".join(match.group(group).split())
            if value:  # nothing but what was taken back may stand there
                found.append(Slot(type_.name, value, start, stop))
    lower = "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)
    for words, value in (type_.values or {}).items():
        start = lower.find(words)
        while start >= 0:
            stop = start + len(words)
            if _is_whole(lower, start, stop):
                found.append(Slot(type_.name, value, start, stop))
            start = lower.find(words, stop)
    return found


def _is_whole(text: str, start: int, stop: int) -> bool:
    before = text[start - 1] if start else " "
    after = text[stop] if stop < len(text) else " "
    return not before.isalnum() and not after.isalnum()
