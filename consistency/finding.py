"""What came of one pair of observations, or of one alone. Pure data of the engine's own."""

from dataclasses import dataclass
from typing import Literal

from consistency.observation import Observation
from consistency.verdict import Evidence, Want


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one pair. `adopted`: whose text stands for this id. `loser`: whose words count no more. `lost`: what
    stands of an observation that lost some of its slots, `reads` how its words read with the winner's values. `open`:
    only the user can tell; `between`: which of these two readings, where it is not the pair."""

    state: Literal["agreed", "suspect", "frozen", "open"] = "agreed"
    evidence: tuple[Evidence, ...] = ()
    wants: tuple[Want, ...] = ()
    adopted: tuple[str, Observation] | None = None
    loser: Observation | None = None
    lost: Observation | None = None
    reads: Observation | None = None
    verified: bool = True
    between: tuple[Observation, Observation] | None = None
