"""The distance D of two texts: the probability that they contradict each other, where each may be as likely.

A logistic regression on the features of `consistency.features`, fitted by `benchmarks/fit_distance.py`; its numbers
ship in ``distance.json`` (docs/model-cards/consistency-distance.md). Sums are of integers and D is rounded to 1e-4: it
is the same on every processor. 0.85 is its operating point. Without a fit a noisy-or of the same features stands in.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from consistency.features import NAMES, Comparison, measure
from consistency.judge import Comparison as Judgement
from consistency.observation import ForcedScore, Observation
from consistency.related import lexicon
from consistency.relation import relate
from consistency.verdict import Evidence
from consistency.wording import Wording, wording

FILE = "distance.json"
UNIT = 10_000
"""Features, weights and D are whole multiples of 1 / UNIT."""

_MOST_EVIDENCE = 6
_LEAST_SHARE = 0.02
_SURE = 0.8
"""A recogniser's word probability from which a differing word is no doubt worth naming."""

NOISY_OR: Mapping[str, float] = {
    "number": 0.95, "half_day": 0.95, "day": 0.95, "fact_other": 0.9, "conflicts": 0.9, "negation": 0.95,
    "opposite": 0.95, "opposite_across": 0.8, "polarity": 0.8, "roles": 0.7,
    "swapped_far": 0.75, "swapped": 0.3, "siblings": 0.5,
    "fact_lost_first": 0.4, "fact_lost_second": 0.4, "lost_share_first": 0.6, "lost_share_second": 0.6, "answered": 0.5,
}  # fmt: skip
"""How much one unit of a feature says where no fit exists; hand-set."""


@dataclass(frozen=True, slots=True)
class DistanceModel:
    """Weights of a logistic regression in parts of `UNIT`, by feature, and its bias; `caps` bound what a feature
    counts.

    `version` is that of the fit; 0 means that there is none and the noisy-or is used.
    """

    version: int
    bias: int
    weights: Mapping[str, int]
    caps: Mapping[str, int]

    def distance(self, found: Comparison) -> float:
        """Returns D of two compared texts."""
        return self.of(found.features)

    def of(self, features: Sequence[float]) -> float:
        """Returns D of a row of features, in the order of `NAMES`."""
        if not self.version:
            return _noisy_or(dict(zip(NAMES, features, strict=True)))
        return logistic(self.bias * UNIT + sum(self._parts(features).values()))

    def evidence(self, found: Comparison) -> tuple[Evidence, ...]:
        """Returns what decided, the weightiest first: the features with the largest part in D, for or against."""
        if self.version:
            parts: dict[str, float] = {
                name: part / UNIT**2 for name, part in self._parts(found.features).items()
            }
        else:
            parts = {name: found[name] * weight for name, weight in NOISY_OR.items()}
        total = math.fsum(map(abs, parts.values())) or 1.0
        named = sorted(parts, key=lambda name: (-abs(parts[name]), name))
        return tuple(found.evidence(name) for name in named if abs(parts[name]) > _LEAST_SHARE * total)[
            :_MOST_EVIDENCE
        ]

    def _parts(self, features: Sequence[float]) -> dict[str, int]:
        parts: dict[str, int] = {}
        for name, value in zip(NAMES, features, strict=True):
            weight = self.weights.get(name, 0)
            if weight and value:
                parts[name] = weight * min(round(value * UNIT), self.caps.get(name, UNIT * UNIT))
        return parts


class TextJudge:
    """Compares what was said with what was typed: relation first, then D. A `consistency.judge.Judge` for texts; it
    does not look at forced scores."""

    def __init__(self, model: DistanceModel | None = None) -> None:
        """Reads the word tables, so that no later comparison waits for them."""
        self._model = model or shipped()
        lexicon()

    def compare(
        self,
        a: Observation,
        b: Observation,
        scores: tuple[ForcedScore, ...] = (),
        second: Observation | None = None,
    ) -> Judgement:
        """Compares an observation with a later one."""
        ours, theirs = wording(a), wording(b)
        found = compared(a, b, ours, theirs)
        earlier_first = found if not _turned(a, b) else measure(a, b, ours, theirs)
        related = relate(a, b, earlier_first, ours, theirs)
        distance = self._model.distance(found)
        evidence = (
            Evidence("distance", distance),
            related.evidence,
            *self._model.evidence(found),
            *_doubts(found),
        )
        return Judgement(related.relation, distance, evidence)


def _doubts(found: Comparison) -> tuple[Evidence, ...]:
    """Names the heard word that the recogniser was least sure of among those that differ, if it was unsure of one."""
    heard = [unit for step in found.steps if step.kind != "equal" for unit in step.ours]
    least = min(heard, key=lambda unit: unit.probability, default=None)
    if least is None or least.probability >= _SURE:
        return ()
    return (Evidence("confidence", round(least.probability, 4), least.text),)


def compared(a: Observation, b: Observation, ours: Wording, theirs: Wording) -> Comparison:
    """Measures two observations, what was heard first: recognisers lose words, hands mistype them."""
    return measure(b, a, theirs, ours) if _turned(a, b) else measure(a, b, ours, theirs)


def _turned(a: Observation, b: Observation) -> bool:
    """Whether the second is what was heard, and the first is not."""
    heard = {"speech", "caption"}
    return b.modality in heard and a.modality not in heard


def distance(a: Observation, b: Observation, model: DistanceModel | None = None) -> float:
    """Returns D of two observations' texts."""
    return (model or shipped()).distance(compared(a, b, wording(a), wording(b)))


def logistic(scaled: int) -> float:
    """Returns the probability of log odds given in parts of UNIT², rounded to 1e-4."""
    odds = scaled / UNIT**2
    if abs(odds) > 30:
        return 1.0 if odds > 0 else 0.0
    return round(1.0 / (1.0 + math.exp(-odds)), 4)


@cache
def shipped() -> DistanceModel:
    """Returns the fit that ships with Chorale; the noisy-or where its file is missing."""
    file = resources.files("consistency").joinpath(FILE)
    if not file.is_file():
        return DistanceModel(0, 0, {}, {})
    numbers = json.loads(file.read_text(encoding="ascii"))
    unknown = set(numbers["weights"]) - set(NAMES)
    if unknown:
        raise ValueError(f"{FILE} knows features that are not measured: {', '.join(sorted(unknown))}")
    return DistanceModel(numbers["version"], numbers["bias"], numbers["weights"], numbers["caps"])


def _noisy_or(values: Mapping[str, float]) -> float:
    agreement = 1.0
    for name, weight in sorted(NOISY_OR.items()):
        agreement *= (1.0 - weight) ** max(0.0, min(values[name], 3.0))
    if not values["meaning_absent"]:
        agreement *= 1.0 - 0.85 * max(0.0, min(1.0, values["meaning"] - 0.15))
    return round(1.0 - agreement, 4)
