"""The edges of the slot-intent graph: how far each link of a token's chain can be relied on, in [0, 1]. Pure.

context - intent - slot - value - evidence. The weights are set by hand: nothing here was fitted on recorded dialogues
(docs/decisions/dialogue-edges.md). Each rule returns a number and, in a few words, what it rests on.
"""

from collections.abc import Mapping
from typing import NamedTuple

from consistency.everyday import is_kept_in
from consistency.mentions import Related, Value
from consistency.observation import Token
from consistency.ontology import ANY, IntentSpec, ServiceSpec, SlotSpec, ValueKind
from consistency.reading import Reading, words_of
from consistency.roles import role_words


class Edge(NamedTuple):
    """A link's reliability, and what it rests on."""

    weight: float
    about: str = ""


Likeness = Mapping[str, float]
"""Cosines of an utterance with what an ontology describes, computed by the understanding worker: ``service:NAME``,
``intent:SERVICE.NAME``, ``slot:SERVICE.NAME``, ``value:TEXT`` -> [-1, 1]. Missing ones are not held against a token.
``form:SLOT=VALUE`` and ``read:SLOT=VALUE`` mark values that were filled in, or read from the text."""

NEUTRAL_COSINE = 0.3
FOREIGN_INTENT, UNKNOWN_INTENT, UNLISTED = 0.02, 0.7, 0.12

_FITS: dict[ValueKind, dict[str, float]] = {
    "time": {"time": 1.0, "number": 0.6, "date": 0.1, "boolean": 0.03, "words": 0.1, "money": 0.1},
    "date": {"date": 1.0, "number": 0.12, "time": 0.1, "boolean": 0.03, "words": 0.1, "money": 0.1},
    "number": {"number": 1.0, "time": 0.1, "date": 0.05, "boolean": 0.03, "words": 0.1, "money": 0.2},
    "money": {"money": 1.0, "number": 1.0, "time": 0.1, "date": 0.05, "boolean": 0.03, "words": 0.1},
    "duration": {"number": 1.0, "words": 0.3, "time": 0.4, "date": 0.1, "boolean": 0.03, "money": 0.1},
    "boolean": {"boolean": 1.0, "number": 0.03, "time": 0.03, "date": 0.03, "words": 0.05, "money": 0.03},
    "category": {"words": 1.0, "number": 0.05, "time": 0.05, "date": 0.05, "boolean": 0.03, "money": 0.05},
    "place": {"words": 1.0, "number": 0.04, "time": 0.04, "date": 0.04, "boolean": 0.03, "money": 0.04},
    "name": {"words": 1.0, "number": 0.3, "time": 0.1, "date": 0.1, "boolean": 0.03, "money": 0.1},
    "text": {"words": 1.0, "number": 0.3, "time": 0.15, "date": 0.15, "boolean": 0.03, "money": 0.2},
}
"""How well a value of a shape fits a slot of a kind."""


def intent_of_service(service: ServiceSpec | None, intent: IntentSpec | None, token: Token) -> Edge:
    """e1: whether the token's service has the token's intent."""
    if service is None or not token.intent:
        return Edge(1.0)
    if intent is None:
        return Edge(FOREIGN_INTENT, f"{service.name} has no intent {token.intent}")
    return Edge(1.0)


def slot_of_intent(service: ServiceSpec | None, intent: IntentSpec | None, token: Token, known: bool) -> Edge:
    """e3: whether the intent takes the slot. `known`: the slot was asked for or shown in this conversation."""
    if service is None or not token.slot:
        return Edge(1.0)
    if token.start >= 0 and not token.intent and not token.service:
        # A number or a day in a text that has no intent: it is nobody's slot yet.
        return Edge(1.0)
    if token.slot not in service.slots:
        return Edge(0.03, f"{token.slot} is no slot of {service.name}")
    if token.act == "request":
        return Edge(0.95)
    if intent is None:
        return Edge(UNKNOWN_INTENT)
    if intent.takes(token.slot):
        return Edge(1.0)
    if known:
        return Edge(0.9)
    elsewhere = any(one.takes(token.slot) for one in service.intents.values())
    return Edge(0.6 if elsewhere else 0.4, f"{intent.name} takes no {token.slot}")


def shape_of(value: Value) -> str:
    """Returns what a value looks like: boolean, time, date, money, number or words."""
    lowered = value.text.lower()
    if lowered in {"true", "false"}:
        return "boolean"
    kinds = {fact.kind for fact in value.reading.facts}
    if "money" in kinds:
        return "money"
    if "time" in kinds:
        return "time"
    if kinds & {"date", "weekday", "relative_day"} and len(value.words) <= 5:
        return "date"
    if kinds & {"half_day"} and value.reading.numbers:
        return "time"
    if kinds & {"ordinal"} and len(value.words) <= 2:
        return "date"
    if value.words and all(word.replace(".", "").isdigit() for word in value.words):
        return "number"
    if kinds & {"duration", "percent"} or ("number" in kinds and len(value.words) <= 2):
        return "number"
    return "words"


def value_of_kind(slot: SlotSpec | None, value: Value) -> Edge:
    """e5: whether a value of this shape can be the value of the slot."""
    if slot is None or value.text.lower() == ANY:
        return Edge(1.0)
    if any(value.text.lower() == known.lower() for known in slot.values):
        return Edge(1.0)
    shape = shape_of(value)
    if slot.kind == "category" and slot.values and not is_kept_in(value.text, tuple(slot.values)):
        return Edge(
            UNLISTED if shape == "words" else 0.05, f"{value.text} is none of the values of {slot.name}"
        )
    weight = _FITS[slot.kind].get(shape, 1.0)
    return Edge(weight, f"{value.text} is no {slot.kind}" if weight < 1 else "")


def request_in(slot: SlotSpec | None, text: Reading, related: Related, cosine: float) -> Edge:
    """e4 of a request: whether the utterance asks for that slot, by its words or by the likeness to its description."""
    if slot is None:
        return Edge(min(max(0.45 + 1.2 * cosine, 0.0), 1.0))
    words = role_words(slot.name, slot.roles, "", slot.description)
    words |= {word for word in words_of(slot.description) if len(word) > 4}
    hit = any(_asks(word, text, related) for word in words if len(word) > 2)
    likely = min(max(0.45 + 1.2 * cosine, 0.0), 1.0)
    return Edge(
        1.0 if hit else likely, f"{slot.name} was asked for" if hit else f"nothing asks for {slot.name}"
    )


def _asks(word: str, text: Reading, related: Related) -> bool:
    return word in text.words or any(
        len(other) > 2 and related(word, other) in {"same", "synonym"} for other in text.words
    )
