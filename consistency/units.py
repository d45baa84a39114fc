"""What the engine judges: everything of one turn, in the order in which it was said, whenever it arrived. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from consistency.observation import ForcedScore, Observation
from consistency.policy import place

MOST_OBSERVATIONS = 16
"""Of one unit: a turn that says more is judged by its last part."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Everything of one turn. `asks`: the user may be asked about it. `expired`: there is no more time to look into it.
    `offers`: what the assistant answered."""

    number: int
    observations: tuple[Observation, ...] = ()
    asks: bool = False
    expired: bool = False
    offers: tuple[str, ...] = ()

    def add(self, observation: Observation, asks: bool) -> "Unit":
        """Returns the unit with this observation in its place. Of the same pass over the same words the one that is
        understood stands, whichever came first."""
        key = (observation.id, observation.revision)
        same = [one for one in self.observations if (one.id, one.revision) == key]
        rest = [one for one in self.observations if (one.id, one.revision) != key]
        best = max((*same, observation), key=_is_understood)
        kept = tuple(sorted((*rest, best), key=place))[-MOST_OBSERVATIONS:]
        return replace(self, observations=kept, asks=self.asks or asks)

    @property
    def standing(self) -> tuple[Observation, ...]:
        """The last pass over each, in order."""
        return last_passes(self.observations)


def last_passes(observations: Iterable[Observation]) -> tuple[Observation, ...]:
    """Returns of each utterance or message the pass with the highest revision, in order."""
    newest: dict[str, Observation] = {}
    for one in observations:
        if one.id not in newest or newest[one.id].revision <= one.revision:
            newest[one.id] = one
    return tuple(sorted(newest.values(), key=place))


def _is_understood(one: Observation) -> tuple[bool, bool]:
    return bool(one.normal or one.tokens or one.facts or one.intent), bool(one.vector.size)


@dataclass(slots=True)
class Answers:
    """What came back of what the engine wanted about one utterance: None where it failed. `second`: scores by
    the second recogniser."""

    scores: dict[str, ForcedScore | None] = field(default_factory=dict)
    second: dict[str, ForcedScore | None] = field(default_factory=dict)
    reheard: dict[int, Observation | None] = field(default_factory=dict)
