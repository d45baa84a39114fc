"""Speech against typed text, judged by the sound too; and whether a slot's value was lost in recognition.

Logistic regressions, fitted by `benchmarks/fit_sound.py`; their numbers ship in ``sound.json``
(docs/model-cards/consistency-sound.md). Each recogniser is a witness: from what it heard, and from how well the typed
text fits the sound under it (forced scoring), it says with which odds both contradict each other. Two witnesses' log
odds are averaged. Sums are of integers and results are rounded to 1e-4: the same on every processor.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from consistency.distance import compared, distance, logistic
from consistency.distance import shipped as texts_model
from consistency.features import NAMES as TEXT_NAMES
from consistency.judge import Comparison as Judgement
from consistency.judge import Judge
from consistency.observation import NO_VECTOR, ForcedScore, Observation
from consistency.policy import SECOND
from consistency.verdict import Evidence
from consistency.wording import CONTENT, wording

FILE = "sound.json"
UNIT = 10_000

TEXT_USED = tuple(name for name in TEXT_NAMES if name not in {"meaning", "meaning_absent", "content"})
_TEXT_CAP = 3.0
FORCED: Mapping[str, tuple[float, float]] = {
    "ratio": (-25.0, 4.0),  # log likelihood of the typed text over that of the recognised one
    "ratio_root": (-5.0, 5.0),  # its root, with its sign
    "mean_gap": (-3.0, 1.0),  # the same per token
    "lowest_gap": (-10.0, 2.0),  # between the least likely tokens
    "lowest": (-12.0, 0.0),  # the least likely token of the typed text
    "recognised_lowest": (-8.0, 0.0),  # of the recognised one
    "recognised_mean": (-1.5, 0.0),
    "worst_place": (-15.0, 2.0),  # the place where recognised words beat typed ones the most
    "added": (-8.0, 0.0),  # words that were typed and have no counterpart
}
"""What is measured of a forced score, and between which bounds it counts."""

BY_TEXTS = "by_texts"
"""Log odds of the distance D that the texts alone have, without vectors: a fit to other data, of many more pairs."""

PAIR_NAMES = (*TEXT_USED, *FORCED, BY_TEXTS)
LOST_NAMES = (
    "log_probability",  # the recogniser's mean per token
    "lowest_word", "mean_word",  # logarithms of the probabilities of its words of content
    "support", "mean_support",  # share of its other texts that have the least, the average word of content
    "words",  # how many there are
    "second_distance",  # D between both recognisers' texts
    "second_missing",  # share of the words of content that the second has not
    "second_log_probability", "second_mean_word",
    "second_mean", "second_lowest",  # the text's forced score under the second
    "second_support", "second_mean_support",  # share of the second's texts that have the text's words of content
)  # fmt: skip
"""What is measured of an utterance; those of the second recogniser are zero where there is none."""

LOST_ALONE = LOST_NAMES[:6]
_SMALLEST = 1e-3
_EDGE = 0.01
"""Keeps the odds of a sure distance finite."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A logistic regression in parts of `UNIT`."""

    names: tuple[str, ...]
    bias: int
    weights: tuple[int, ...]

    def odds(self, features: Sequence[float]) -> int:
        """Returns the log odds in parts of UNIT²."""
        return self.bias * UNIT + sum(self.parts(features))

    def parts(self, features: Sequence[float]) -> tuple[int, ...]:
        """Returns what each feature adds to them."""
        return tuple(
            weight * round(value * UNIT) for weight, value in zip(self.weights, features, strict=True)
        )


@dataclass(frozen=True, slots=True)
class SoundModel:
    """`first` and `second` judge a pair by one recogniser each, `both` stretches the mean of their log odds (slope,
    bias in parts of UNIT). `lost_alone` and `lost_both` judge an utterance by one and by both."""

    version: int
    first: Fit
    second: Fit
    both: tuple[int, int]
    lost_alone: Fit
    lost_both: Fit

    def distance(self, first: Sequence[float], second: Sequence[float] | None = None) -> float:
        """Returns D of a pair from the features of one or two witnesses (`witness`)."""
        odds = self.first.odds(first)
        if second is not None:
            slope, bias = self.both
            odds = slope * ((odds + self.second.odds(second)) // 2) // UNIT + bias * UNIT
        return logistic(odds)

    def by_second(self, features: Sequence[float]) -> float:
        """Returns D of a pair by the second recogniser alone."""
        return logistic(self.second.odds(features))

    def lost(self, features: Sequence[float], with_second: bool) -> float:
        """Returns the probability that an utterance's slot value was misheard (`utterance`)."""
        if with_second:
            return logistic(self.lost_both.odds(features))
        return logistic(self.lost_alone.odds(features[: len(LOST_ALONE)]))


def witness(heard: Observation, typed: Observation, score: ForcedScore) -> tuple[float, ...]:
    """Returns what one recogniser has to say about a typed text, in the order of `PAIR_NAMES`. `heard` is what it
    recognised, `score` how well the typed text fits under it."""
    blind = replace(heard, vector=NO_VECTOR), replace(typed, vector=NO_VECTOR)
    found = compared(*blind, *map(wording, blind))
    apart = texts_model().distance(found)
    texts = tuple(min(found[name], _TEXT_CAP) for name in TEXT_USED)
    ratio = score.total - score.recognised_total
    values = {
        "ratio": ratio,
        "ratio_root": math.copysign(math.sqrt(abs(ratio)), ratio),
        "mean_gap": score.mean - score.recognised_mean,
        "lowest_gap": score.lowest - score.recognised_lowest,
        "lowest": score.lowest,
        "recognised_lowest": score.recognised_lowest,
        "recognised_mean": score.recognised_mean,
        "worst_place": min((one for _, _, one in score.apart), default=0.0),
        "added": min((one for said, text, one in score.apart if text and not said), default=0.0),
    }
    forced = tuple(round(max(low, min(values[name], high)), 4) for name, (low, high) in FORCED.items())
    return (*texts, *forced, round(math.log((apart + _EDGE) / (1 + _EDGE - apart)), 4))


def utterance(
    heard: Observation,
    alternatives: Sequence[tuple[str, float]] = (),
    second: Observation | None = None,
    score: ForcedScore | None = None,
    second_alternatives: Sequence[tuple[str, float]] = (),
) -> tuple[float, ...]:
    """Returns what there is to doubt about an utterance, in the order of `LOST_NAMES`.

    `alternatives`: its likeliest texts with the logarithms of their probabilities. `second`: what another recogniser
    heard, `score`: how well the first one's text fits under that, `second_alternatives`: that one's other texts.
    """
    content = [unit for unit in wording(heard).units if unit.weight >= CONTENT]
    sure = [math.log(max(unit.probability, _SMALLEST)) for unit in content] or [0.0]
    words = [unit.text for unit in content]
    support = _support(words, alternatives)
    own = (
        heard.log_probability,
        min(sure),
        math.fsum(sure) / len(sure),
        min(support),
        math.fsum(support) / len(support),
        float(min(len(content), 12)),
    )
    if second is None:
        return tuple(round(value, 4) for value in own) + (0.0,) * (len(LOST_NAMES) - len(own))
    theirs = {unit.text for unit in wording(second).units}
    missing = sum(unit.text not in theirs for unit in content) / max(1, len(content))
    sure_second = [
        math.log(max(unit.probability, _SMALLEST)) for unit in wording(second).units if unit.weight >= CONTENT
    ] or [0.0]
    backed = _support(words, second_alternatives)
    other = (
        distance(heard, second),
        missing,
        second.log_probability,
        math.fsum(sure_second) / len(sure_second),
        max(score.mean, -6.0) if score else 0.0,
        max(score.lowest, -12.0) if score else 0.0,
        min(backed),
        math.fsum(backed) / len(backed),
    )
    return tuple(round(value, 4) for value in own + other)


def _support(words: Sequence[str], alternatives: Sequence[tuple[str, float]]) -> list[float]:
    """Returns, of each word, the share of the alternatives' probability that has it; 1 where there are none."""
    if not alternatives or not words:
        return [1.0]
    best = max(score for _, score in alternatives)
    weights = [math.exp(score - best) for _, score in alternatives]
    total = math.fsum(weights)
    texts = [text.lower() for text, _ in alternatives]
    return [
        math.fsum(weight for text, weight in zip(texts, weights, strict=True) if word in text) / total
        for word in words
    ]


class SoundJudge:
    """A `Judge` that hears: where a text was scored under the sound of the other, the sound has its say. Everything
    else is left to the judge of texts."""

    def __init__(self, texts: Judge, model: SoundModel | None = None) -> None:
        self._texts = texts
        self._model = model or shipped()

    def doubt(
        self, heard: Observation, second: Observation | None = None, score: ForcedScore | None = None
    ) -> float:
        """Returns how likely a slot's value of an utterance was misheard; 0 where there is no fit for it."""
        if self._model is None:
            return 0.0
        theirs = second.alternatives if second is not None else ()
        features = utterance(heard, heard.alternatives, second, score, theirs)
        return self._model.lost(features, second is not None)

    def compare(
        self,
        a: Observation,
        b: Observation,
        scores: tuple[ForcedScore, ...] = (),
        second: Observation | None = None,
    ) -> Judgement:
        """Compares an observation with a later one."""
        found = self._texts.compare(a, b, scores)
        own = [score for score in scores if score.rung != SECOND]
        if not own or self._model is None:
            return found
        heard, typed = (a, b) if a.modality == "speech" else (b, a)
        best = max(own, key=lambda score: score.total)
        first = witness(heard, typed, best)
        decided = self._model.distance(first)
        told: tuple[Evidence, ...] = (Evidence("sound", decided, _apart(best)),)
        theirs = [score for score in scores if score.rung == SECOND]
        if theirs and second is not None:
            other = max(theirs, key=lambda score: score.total)
            also = witness(second, typed, other)
            told = (Evidence("second_recogniser", self._model.by_second(also), _apart(other)), *told)
            decided = self._model.distance(first, also)
        return Judgement(found.relation, decided, (*told, *found.evidence))


def _apart(score: ForcedScore) -> str:
    """Says where the recognised words beat those of the text the most."""
    if not score.apart:
        return "the same words"
    said, text, ratio = min(score.apart, key=lambda one: one[2])
    return f"{text or '(nothing)'} for {said or '(nothing)'}: {ratio:+.1f}"


@cache
def shipped() -> SoundModel | None:
    """Returns the fit that ships with Chorale; None where its file is missing. Raises `ValueError` where it belongs to
    other features."""
    file = resources.files("consistency").joinpath(FILE)
    if not file.is_file():
        return None
    return from_json(json.loads(file.read_text(encoding="ascii")))


def from_json(numbers: Mapping[str, object]) -> SoundModel:
    """Returns a model from what `to_json` made. Raises `ValueError` where it belongs to other features."""
    fits = {}
    for name, names in (
        ("first", PAIR_NAMES), ("second", PAIR_NAMES), ("lost_alone", LOST_ALONE), ("lost_both", LOST_NAMES)
    ):  # fmt: skip
        told = numbers[name]
        assert isinstance(told, dict)
        if tuple(told["weights"]) != names:
            raise ValueError(f"{FILE}: {name} belongs to other features than are measured")
        fits[name] = Fit(names, told["bias"], tuple(told["weights"].values()))
    both, version = numbers["both"], numbers["version"]
    assert isinstance(both, list)
    assert isinstance(version, int)
    return SoundModel(version, both=(both[0], both[1]), **fits)


def to_json(model: SoundModel) -> dict[str, object]:
    """Returns a model as it ships."""
    fits = {name: getattr(model, name) for name in ("first", "second", "lost_alone", "lost_both")}
    told: dict[str, object] = {"version": model.version, "both": list(model.both)}
    for name, fit in fits.items():
        told[name] = {"bias": fit.bias, "weights": dict(zip(fit.names, fit.weights, strict=True))}
    return told
