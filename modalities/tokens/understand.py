"""Intent by the nearest example, slots by patterns: what a text means in a domain, with nothing trained."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from modalities.ports import Embedder, Slot, Understanding
from modalities.tokens.ontology import Domain, Intent, SlotType

_WORD = re.compile(r"[^\W\d]+")

LONGEST_TEXT = 4_000
"""Characters in which slots are looked for; nobody says more in one turn, and patterns cost time."""


class ExampleUnderstander:
    """Embeds the domain's examples once; a text then costs its own vector and one matrix product."""

    def __init__(self, embedder: Embedder, domain: Domain) -> None:
        self._embedder = embedder
        self._domain = domain
        examples = [example for intent in domain.intents for example in intent.examples]
        counts = [len(intent.examples) for intent in domain.intents]
        self._first_of = np.cumsum([0, *counts[:-1]])
        self._examples = (
            embedder.embed(examples) if examples else np.zeros((0, embedder.dimensions), np.float32)
        )

    def understand(self, texts: Sequence[str]) -> list[Understanding]:
        vectors = self._embedder.embed(texts)
        return [self._one(text, vector) for text, vector in zip(texts, vectors, strict=True)]

    def _one(self, text: str, vector: NDArray[np.float32]) -> Understanding:
        intent, confidence = self._intent(text, vector)
        slots = find_slots(text, self._domain.slots_of(intent))
        return Understanding(vector, intent.name if intent else None, confidence, slots)

    def _intent(self, text: str, vector: NDArray[np.float32]) -> tuple[Intent | None, float]:
        """Returns the intent with the nearest example and its cosine; none where it is far or not clearly ahead."""
        intents = self._domain.intents
        if not intents:
            return None, 0.0
        per_intent = np.maximum.reduceat(self._examples @ vector, self._first_of)
        words = set(_WORD.findall(text[:LONGEST_TEXT].lower()))
        per_intent[[bool(intent.never_with & words) for intent in intents]] = -1.0
        order = np.argsort(per_intent)
        best = float(per_intent[order[-1]])
        lead = best - float(per_intent[order[-2]]) if len(order) > 1 else best
        if best < self._domain.threshold or lead < self._domain.margin:
            return None, 0.0
        return intents[int(order[-1])], min(best, 1.0)


def find_slots(text: str, types: Sequence[SlotType]) -> tuple[Slot, ...]:
    """Returns the slots in a text in the order in which they stand there. Where two overlap, the longer one is it."""
    looked_at = text[:LONGEST_TEXT]
    found = [slot for type_ in types for slot in _matches(looked_at, type_)]
    found.sort(key=lambda slot: (slot.start - slot.stop, slot.start))
    kept: list[Slot] = []
    for slot in found:
        if all(slot.stop <= other.start or slot.start >= other.stop for other in kept):
            kept.append(slot)
    return tuple(sorted(kept, key=lambda slot: slot.start))


def _matches(text: str, type_: SlotType) -> list[Slot]:
    found = []
    for pattern in type_.patterns:
        group: str | int = "value" if "value" in pattern.groupindex else 0
        for match in pattern.finditer(text):
            start, stop = match.span(group)
            found.append(Slot(type_.name, match.group(group), start, stop))
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
