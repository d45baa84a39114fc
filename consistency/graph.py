"""The slot-intent graph: whether new tokens hang together with the conversation and with what was said. Pure.

Every token is a chain context - intent - slot - value - evidence whose edges are reliabilities. A token is as reliable
as its best path (Dijkstra on -log w); the connectivity of a turn is 0.7 times the mean of its tokens and 0.3 times the
least.
The graph holds only the window that a `Context` keeps, so a verdict costs the same after 10,000 units as after ten.
"""

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache

import networkx as nx

from consistency import context_edges, rules
from consistency.context import Context, Turn
from consistency.mentions import Related, Today, value_of
from consistency.observation import Token
from consistency.ontology import Ontology
from consistency.reading import Reader, Reading, read
from consistency.rules import Edge

MEAN_SHARE, LEAST_SHARE = 0.7, 0.3
INTENT_POWER, EVIDENCE_POWER, KIND_POWER = 0.5, 0.7, 0.7
DIGITS = 4
READINGS = 2_048
MOST_LOOSE = 16
"""Tokens of a turn that are looked for in other spellings; a form of more is compared as it is written."""
_STEP = 1_000_000
"""Path lengths are whole millionths of a neper: sums of them do not depend on their order."""
_LEAST = 1e-6


@dataclass(frozen=True, slots=True)
class TokenReliability:
    """How reliable a token is, in [0, 1], its weakest edge and what that rests on."""

    token: Token
    value: float
    edge: str
    weight: float
    about: str = ""


@dataclass(frozen=True, slots=True)
class Connectivity:
    """`value` in [0, 1], rounded to 1e-4; 1 where a turn has no tokens. `tokens` are in a fixed order."""

    value: float
    tokens: tuple[TokenReliability, ...] = ()

    @property
    def weakest(self) -> TokenReliability | None:
        """The least reliable token."""
        return min(self.tokens, key=lambda one: one.value, default=None)

    @property
    def words(self) -> str:
        """What decided, for people: ``location=New York: not said, San Francisco was``."""
        weakest = self.weakest
        if weakest is None:
            return "no tokens"
        token = weakest.token
        name = f"{token.slot or token.intent}={token.value}" if token.value else token.slot or token.intent
        return f"{name}: {weakest.edge} {weakest.weight:.2f}" + (
            f", {weakest.about}" if weakest.about else ""
        )


@dataclass(frozen=True, slots=True)
class Link:
    """One edge of a chain. Links of one name are alternatives: the best of them is the path."""

    name: str
    edge: Edge
    power: float = 1.0
    where: str = ""

    @property
    def length(self) -> int:
        """-log of the reliability, raised to its power, in whole steps."""
        return round(-math.log(max(self.edge.weight, _LEAST)) * self.power * _STEP)


@dataclass(frozen=True, slots=True)
class Chain:
    """A token's links from the context to the evidence, in order."""

    links: tuple[Link, ...]


class SlotIntentGraph:
    """Judges turns against a context. Holds no conversation of its own: contexts are values, and a snapshot is one."""

    def __init__(self, ontology: Ontology, reader: Reader, related: Related, today: Today = None) -> None:
        """`reader` gives the facts of a text; `related` how two words are related; `today`, where it is known, lets
        "next Monday" be compared with a date."""
        self._ontology = ontology
        # Values and answers come again and again.
        self._reader = lru_cache(maxsize=READINGS)(reader)
        self._related = related
        self._today = today

    def on(self, today: Today) -> "SlotIntentGraph":
        """Returns the same graph on another day; what has been read stays known."""
        if today == self._today:
            return self
        other = copy(self)
        other._today = today
        return other

    def read(self, text: str) -> Reading:
        """Returns the reading of a text, as turns want it."""
        return read(text, self._reader(text))

    def judge(self, context: Context, turn: Turn) -> Connectivity:
        """Returns how well the tokens of a user's turn hang together; changes nothing."""
        tokens = sorted(turn.tokens, key=_order)
        if not tokens:
            return Connectivity(1.0)
        chains = [
            self._chain(context, turn, token, tokens, index < MOST_LOOSE)
            for index, token in enumerate(tokens)
        ]
        values = reliabilities(chains)
        found = tuple(
            _judged(token, chain, value) for token, chain, value in zip(tokens, chains, values, strict=True)
        )
        return Connectivity(connectivity(values), found)

    def _chain(
        self, context: Context, turn: Turn, token: Token, tokens: Sequence[Token], loosely: bool
    ) -> Chain:
        service = self._ontology.service_of(token.service, token.intent, context.service)
        intent = service.intents.get(token.intent) if service else None
        slot = service.slots.get(token.slot) if service else None
        name = service.name if service else token.service
        home = rules.intent_of_service(service, intent, token)
        near = context_edges.intent_in_context(context, turn, name, token.intent, self._ontology)
        known = context.knows(name, token.slot)
        link = rules.slot_of_intent(service, intent, token, known)
        if not token.slot:
            return Chain((Link("intent", home), Link("context", near, 1.0)))
        if token.act == "request":
            cosine = turn.likeness.get(f"slot:{name}.{token.slot}", rules.NEUTRAL_COSINE)
            asks = rules.request_in(slot, turn.reading, self._related, cosine)
            near_link = Link("context", near, INTENT_POWER)
            return Chain(
                (Link("intent", home), near_link, Link("slot", link), Link("evidence", asks, EVIDENCE_POWER))
            )
        value = value_of(token.value, self._reader(token.value))
        borne = context_edges.evidence(context, turn, value, slot, token, self._related, self._today, loosely)
        is_read = f"read:{token.slot}={token.value}" in turn.likeness
        fits = Edge(1.0, "read by a pattern of the slot") if is_read else rules.value_of_kind(slot, value)
        rival = context_edges.rivalry(context, turn, value, slot, service, name, tokens)
        return Chain(
            (
                Link("intent", home),
                Link("context", near, INTENT_POWER),
                Link("slot", link),
                Link("kind", fits, KIND_POWER),
                Link("rival", rival, 1.0),
                *(Link("evidence", edge, EVIDENCE_POWER, where) for where, edge in borne),
            )
        )


def reliabilities(chains: Sequence[Chain]) -> list[float]:
    """Returns the reliability of each chain: its shortest path from context to evidence in one graph of all of them."""
    graph = nx.DiGraph()
    for index, chain in enumerate(chains):
        at: tuple[int, int] | str = "context"
        names = list(dict.fromkeys(link.name for link in chain.links))
        for step, name in enumerate(names):
            to = (index, step)
            for link in chain.links:
                if link.name == name:
                    # An alternative is a way round through a node of its own.
                    via = (index, step, link.where)
                    graph.add_edge(at, via, weight=link.length)
                    graph.add_edge(via, to, weight=0)
            at = to
        graph.add_edge(at, ("evidence", index), weight=0)
    lengths = nx.single_source_dijkstra_path_length(graph, "context")
    return [round(math.exp(-lengths[("evidence", index)] / _STEP), DIGITS) for index in range(len(chains))]


def connectivity(values: Sequence[float]) -> float:
    """Returns 0.7 times the mean and 0.3 times the least of the reliabilities, rounded to 1e-4; 1 for none."""
    if not values:
        return 1.0
    mean = math.fsum(sorted(values)) / len(values)
    return round(MEAN_SHARE * mean + LEAST_SHARE * min(values), DIGITS)


def _judged(token: Token, chain: Chain, value: float) -> TokenReliability:
    best: dict[str, Link] = {}
    for link in chain.links:
        if link.name not in best or link.length < best[link.name].length:
            best[link.name] = link
    weakest = max(best.values(), key=lambda link: link.length)
    return TokenReliability(
        token, value, weakest.name, round(weakest.edge.weight, DIGITS), weakest.edge.about
    )


def _order(token: Token) -> tuple[str, ...]:
    return (token.service, token.intent, token.slot, token.value, token.act)
