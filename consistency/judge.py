"""What the engine needs of those who measure: how two observations stand to each other, how well tokens hang together.

Whoever measures is pure: the same arguments give the same numbers, rounded to 1e-4, whatever was asked before.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from consistency.observation import ForcedScore, Observation, Token
from consistency.verdict import Evidence

Relation = Literal["restatement", "correction", "complement", "unrelated"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two observations stand to each other. `distance` in [0, 1]: the probability that they contradict each other;
    it means something for restatements and corrections only."""

    relation: Relation
    distance: float
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Past:
    """A turn before: what stands of what the user said, and what the assistant answered. Tokens that were rolled back
    are not among it, their texts are."""

    said: tuple[Observation, ...] = ()
    answers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What tokens of a unit may hang on to.

    `said`: the observations of their own unit. `recent`: the turns before, oldest first. `committed`: the tokens that
    hold, oldest first. `today`: the day as ISO 8601, empty where it is not known.
    """

    said: tuple[Observation, ...] = ()
    recent: tuple[Past, ...] = ()
    committed: tuple[Token, ...] = ()
    today: str = ""


@dataclass(frozen=True, slots=True)
class Connectivity:
    """How well tokens hang together with their surroundings, in [0, 1]."""

    value: float
    evidence: tuple[Evidence, ...] = ()


class Judge(Protocol):
    """Compares two observations."""

    def compare(
        self,
        a: Observation,
        b: Observation,
        scores: tuple[ForcedScore, ...] = (),
        second: Observation | None = None,
    ) -> Comparison:
        """Compares an observation with a later one. `scores`: how well the one's text fits the sound of the other, in
        whatever renderings were scored, where one of them was spoken. `second`: what the second recogniser heard in
        that sound, where its scores are among these."""
        ...


class Graph(Protocol):
    """Knows which intents, slots and values go together."""

    def check(self, tokens: tuple[Token, ...], surroundings: Surroundings) -> Connectivity:
        """Returns how well these new tokens hang together with what is around them."""
        ...
