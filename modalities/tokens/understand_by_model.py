"""Intent and slots by a language model that is held to the domain's JSON schema.

The model is made to call one tool, whose parameters are the domain: the embedded engine turns them into a grammar, so
that it can write nothing else; endpoints are asked for the same by `tool_choice`. What it answers is checked all the
same.
"""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from modalities.errors import ModalityError
from modalities.ports import (
    ChatMessage,
    Embedder,
    LanguageModel,
    Prompt,
    Slot,
    Tool,
    Understanding,
)
from modalities.tokens.ontology import Domain, Intent, SlotType
from modalities.tokens.understand import LONGEST_TEXT, ExampleUnderstander

log = logging.getLogger(__name__)

TOOL = "understand"
NONE = "none"
"""What the model answers where no intent fits."""
MOST_TOKENS = 160
WITHIN_S = 1.2
"""A turn that waits for its meaning is answered without it after 1.5 s."""
CONFIDENCE = 0.8
"""A model does not say how sure it is."""
MOST_VALUES = 40
"""Listed values of a slot that the schema names; a longer list is left to the model."""


class ModelUnderstander:
    """Asks a language model for each text, and takes the examples' answer where its own is no use, comes too late
    (`within_s`), or does not come since the model failed.

    A text costs a whole reply of the model: hundreds of milliseconds where examples cost ten. `now` gives seconds.
    """

    def __init__(
        self,
        embedder: Embedder,
        model: LanguageModel,
        domain: Domain,
        now: Callable[[], float],
        within_s: float = WITHIN_S,
    ) -> None:
        self._within_s = within_s
        self._now = now
        self._embedder = embedder
        self._model = model
        self._domain = domain
        self._examples = ExampleUnderstander(embedder, domain)
        self._tool = Tool(TOOL, "Say what the user wants.", json.dumps(schema_of(domain)))
        self._instructions = instructions_of(domain)

    @property
    def embedder(self) -> Embedder:
        return self._embedder

    def understand(self, texts: Sequence[str]) -> list[Understanding]:
        """Returns one understanding per text, in order; the vectors are the embedder's."""
        fallback = self._examples.understand(texts)
        if not self._domain.intents:
            return fallback
        return [self._one(text, by_example) for text, by_example in zip(texts, fallback, strict=True)]

    def _one(self, text: str, by_example: Understanding) -> Understanding:
        messages = (ChatMessage("system", self._instructions), ChatMessage("user", text[:LONGEST_TEXT]))
        prompt = Prompt(
            messages, (self._tool,), f"={TOOL}", MOST_TOKENS, 0.0, cache_key=f"{TOOL}:{self._domain.name}"
        )
        until = self._now() + self._within_s
        try:
            completion = self._model.generate(prompt, lambda delta: self._now() < until)
        except ModalityError as fault:
            log.warning("the model that understands failed, the nearest example is taken: %s", fault)
            return by_example
        arguments = next((call.arguments for call in completion.tool_calls if call.name == TOOL), "")
        found = understanding_from(arguments, text, by_example.vector, self._domain)
        return by_example if found is None else replace(found, likeness=by_example.likeness)


def schema_of(domain: Domain) -> dict[str, object]:
    """Returns the JSON schema of what a text of a domain can mean: an intent, and the slots of the domain as texts."""
    slots = domain.slots or {}
    used = dict.fromkeys(slot for intent in domain.intents for slot in intent.slots)
    return {
        "type": "object",
        "properties": {
            "intent": {"type": "string", "enum": [*(intent.name for intent in domain.intents), NONE]},
            "slots": {
                "type": "object",
                "properties": {name: _slot_schema(slots[name]) for name in used},
                "additionalProperties": False,
            },
        },
        "required": ["intent", "slots"],
        "additionalProperties": False,
    }


def _slot_schema(slot: SlotType) -> dict[str, object]:
    listed = sorted(set((slot.values or {}).values()))
    if slot.kind in {"category", "boolean"} and 0 < len(listed) <= MOST_VALUES:
        return {"type": "string", "enum": listed}
    described: dict[str, object] = {"description": slot.description} if slot.description else {}
    return {"type": "string", **described}


def instructions_of(domain: Domain) -> str:
    """Returns what the model is told: each intent with what it means and its first example."""
    lines = [f"- {intent.name}: {intent.description or intent.examples[0]}" for intent in domain.intents]
    told = "\n".join(lines)
    return (
        "Say which of these intents the user's sentence has, and the values of its slots in the user's own words. "
        f"Leave out slots that the sentence says nothing about. If no intent fits, it is {NONE}.\n{told}"
    )


def understanding_from(
    arguments: str, text: str, vector: NDArray[np.float32], domain: Domain
) -> Understanding | None:
    """Returns what a model's answer means; None where it is no answer to the schema. A slot that its intent does not
    have, and a value that neither stands in the text nor is listed, are left out: models invent."""
    try:
        answer = json.loads(arguments)
    except ValueError:
        return None
    if not isinstance(answer, dict) or not isinstance(answer.get("slots"), dict):
        return None
    if answer.get("intent") == NONE:
        return Understanding(vector)
    intent = next((one for one in domain.intents if one.name == answer.get("intent")), None)
    if intent is None:
        return None
    found = [_slot(name, value, text, intent, domain) for name, value in answer["slots"].items()]
    slots = sorted((slot for slot in found if slot is not None), key=lambda slot: (slot.start, slot.name))
    return Understanding(vector, intent.name, CONFIDENCE, tuple(slots))


def _slot(name: str, value: object, text: str, intent: Intent, domain: Domain) -> Slot | None:
    if name not in intent.slots or not isinstance(value, str) or not value.strip():
        return None
    known = (domain.slots or {})[name].values or {}
    said = sorted((words for words, stands in known.items() if stands == value), key=len, reverse=True)
    for words in (value, *said):
        start = text.lower().find(words.lower())
        if start >= 0:
            return Slot(name, known.get(value.lower(), value), start, start + len(words), CONFIDENCE)
    # Inferred: the consistency engine judges it by its own evidence.
    return Slot(name, value, confidence=CONFIDENCE / 2) if value in known.values() else None
