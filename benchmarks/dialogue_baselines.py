"""What the slot-intent graph is compared with on dialogues: the largest component, and reliabilities without the rules
that read slots, dates and prepositions.

Both are written from their published definitions and share the texts and tokens of the graph, not its rules.
"""

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache

import networkx as nx

from benchmarks.dialogue_data import Dialogue
from consistency.context import Turn
from consistency.mentions import alike
from consistency.observation import Token
from consistency.ontology import Ontology, SlotSpec
from consistency.reading import Reading, words_of

FRAMES = 4
"""Turns whose tokens the largest component is looked for in."""
RECENT = 6


def largest_component(dialogue: Dialogue) -> list[float]:
    """V1: for each user turn with tokens, the share of the nodes of the last four frames that lie in the largest
    component of the co-occurrence graph."""
    frames: list[list[tuple[str, str]]] = []
    found = []
    for step in dialogue.steps:
        nodes = [node for token in step.turn.tokens for node in _nodes(token)]
        if not nodes:
            continue
        frames = [*frames, nodes][-FRAMES:]
        if step.turn.speaker == "user":
            graph = nx.Graph()
            for frame in frames:
                graph.add_nodes_from(frame)
                graph.add_edges_from(itertools.combinations(sorted(set(frame)), 2))
            largest = max(nx.connected_components(graph), key=len)
            found.append(len(largest) / graph.number_of_nodes())
    return found


def _nodes(token: Token) -> list[tuple[str, str]]:
    nodes = [("intent", f"{token.service}.{token.intent}")] if token.intent else []
    if token.slot:
        nodes.append(("slot", f"{token.service}.{token.slot}"))
    if token.value:
        nodes.append(("value", token.value.lower()))
    return nodes


class Reliability:
    """V3w: e1, e2 to the power .5, e3, e4 and e5 to the power .7; .7 of the mean and .3 of the least."""

    def __init__(self, ontology: Ontology) -> None:
        self._ontology = ontology

    def of(self, dialogue: Dialogue) -> list[float]:
        """Returns the connectivity of each user turn with tokens."""
        found: list[float] = []
        past: list[Turn] = []
        for step in dialogue.steps:
            if step.turn.speaker == "user" and step.turn.tokens:
                values = [self._token(token, step.turn, past) for token in step.turn.tokens]
                found.append(0.7 * math.fsum(values) / len(values) + 0.3 * min(values))
            past.append(step.turn)
        return found

    def _token(self, token: Token, turn: Turn, past: Sequence[Turn]) -> float:
        service = self._ontology.services.get(token.service)
        intent = service.intents.get(token.intent) if service else None
        e1 = 1.0 if intent or not token.intent else 1e-6
        e2 = self._context(token, turn, past)
        e3 = 1.0
        slot = service.slots.get(token.slot) if service else None
        if token.slot:
            e3 = 0.05 if slot is None else 0.95 if token.act == "request" else 0.7 if intent is None else 0.6
            if (
                slot is not None
                and token.act != "request"
                and intent is not None
                and intent.takes(token.slot)
            ):
                e3 = 1.0
        if not token.slot:
            return float(e1 * e2**0.5)
        if token.act == "request":
            cosine = turn.likeness.get(f"slot:{token.service}.{token.slot}", 0.3)
            return float(e1 * e2**0.5 * e3 * min(max(0.45 + 1.2 * cosine, 0), 1) ** 0.7)
        e4 = _evidence(token.value, turn, past)
        return float(e1 * e2**0.5 * e3 * e4**0.7 * _kind(token.value, slot) ** 0.7)

    def _context(self, token: Token, turn: Turn, past: Sequence[Turn]) -> float:
        users = [one for earlier in past if earlier.speaker == "user" for one in earlier.tokens]
        if users and (users[-1].service, users[-1].intent) == (token.service, token.intent):
            return 1.0
        every = [one for earlier in past for one in earlier.tokens]
        if any((one.service, one.intent) == (token.service, token.intent) for one in every):
            return 0.95
        if users and users[-1].service == token.service:
            return 0.9
        cosine = max(
            turn.likeness.get(f"intent:{token.service}.{token.intent}", 0.3),
            turn.likeness.get(f"service:{token.service}", 0.3),
        )
        return min(max(0.35 + 1.3 * cosine, 0.0), 1.0)


def _evidence(value: str, turn: Turn, past: Sequence[Turn]) -> float:
    lowered = value.lower()
    if lowered == "dontcare":
        return 0.75
    if lowered in {"true", "false"}:
        return 0.7
    best = _in_text(value, turn.reading)
    for back, earlier in enumerate(reversed(past), 1):
        weight = (0.9 if back <= RECENT else 0.8) * 0.97**back
        if weight <= best:
            break
        shown = any(one.value.lower() == lowered for one in earlier.tokens)
        best = max(best, weight * (1.0 if shown else _in_text(value, earlier.reading)))
    return max(best, min(0.7, 1.1 * turn.likeness.get(f"value:{value}", 0.0)), 1e-3)


def _in_text(value: str, text: Reading) -> float:
    words = words_of(value)
    if text.find(words) >= 0:
        return 1.0
    numbers = {int(word) for word in words if word.isdigit()}
    if ":" in value and not numbers:
        hour, _, minute = value.partition(":")
        if (
            hour.isdigit()
            and minute[:2].isdigit()
            and {int(hour) % 12, int(minute[:2])} <= text.numbers | {0}
        ):
            return 0.95
    if value.count("-") == 2 and value[-2:].isdigit() and int(value[-2:]) in text.numbers:
        return 0.85
    if not words:
        return 0.0
    close = max((alike("".join(words), word) for word in text.words), default=0.0)
    shared = 0.85 * sum(word in text.words for word in words) / len(words)
    return max(close - 0.05 if close > 0.9 else 0.0, shared)


@lru_cache(maxsize=4_096)
def _shape(value: str) -> str:
    if value.lower() in {"true", "false"}:
        return "boolean"
    if ":" in value or value.lower().endswith(("am", "pm")):
        return "time"
    if value.count("-") == 2 or any(
        word in value.lower() for word in ("march", "month", "today", "day", "th", "1st")
    ):
        return "date"
    return "number" if all(word.isdigit() for word in words_of(value)) else "text"


def _kind(value: str, slot: SlotSpec | None) -> float:
    if slot is None or value.lower() == "dontcare":
        return 1.0
    if any(value.lower() == known.lower() for known in slot.values):
        return 1.0
    wanted = {"category": "text", "place": "text", "name": "text", "money": "number"}.get(
        slot.kind, slot.kind
    )
    shape = _shape(value)
    if shape == wanted:
        return 1.0
    return 0.35 if {shape, wanted} == {"time", "number"} else 0.15
