"""Fits the weights of the distance D: `make fit-consistency` runs it after the whitening.

    CHORALE_CONSISTENCY_DATA=... python -m benchmarks.fit_distance

A logistic regression whose weights may not be negative where a feature is a difference, so that another difference
never brings texts nearer. It reads the pairs' texts and labels; neither what was really said nor the intent nor the
planted change is a feature. Labels of natural pairs are the audit's where it has judged them; unclear ones are left
out. The same data give the same file.
"""

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

import consistency
from benchmarks.consistency_pairs import BATCH, Observer, Pair, read_pairs
from benchmarks.data_files import BadData
from benchmarks.detection import threshold_for
from consistency.distance import FILE, UNIT, DistanceModel, compared
from consistency.features import NAMES
from consistency.observation import Observation
from consistency.wording import wording

VERSION = 1
OPERATING_POINT = 0.85
FALSE_POSITIVES = 0.015
"""What share of consistent pairs lies above the operating point, by the fit's own reckoning."""
RIDGE = 2.0
WITHOUT_VECTORS = 0.25
"""Weight of each pair's copy without vectors: D must not lean on a model that may be missing."""

CAPS = {
    "lost_first": 3.0, "lost_second": 3.0, "swapped": 2.0, "swapped_far": 2.0, "swapped_known": 2.0, "heaviest": 2.5,
    "light": 1.0, "moved": 3.0, "places": 3.0, "fact_lost_first": 2.0, "fact_lost_second": 2.0, "number": 1.0,
    "day": 1.0, "half_day": 1.0, "fact_other": 1.0, "conflicts": 1.0, "negation": 1.0, "polarity": 1.0, "opposite": 1.0,
    "opposite_across": 1.0, "roles": 1.0, "synonyms": 3.0, "kinds": 2.0, "slips": 2.0, "siblings": 1.0, "content": 8.0,
}  # fmt: skip
"""What a feature counts at most: a second contradiction is no surer than the first."""

EITHER_SIGN = frozenset(
    {"meaning_absent", "heaviest_sound", "places", "synonyms", "moved", "sound", "sound_share"}
)
"""Features that are no difference by themselves."""

PARTICLES = frozenset({"on", "off", "up", "down", "in", "out"})

DIFFERENCES = (
    "number",
    "half_day",
    "day",
    "negation",
    "answered",
    "light",
    "lost_first",
    "lost_second",
    "moved",
    "slips",
)
"""Where none of these is, two texts have the same words."""

SHARES = (
    ("natural_asr", 0.42),
    ("paraphrase", 0.12),
    ("natural_asr_error", 0.15),
    ("different", 0.07),
    ("hard", 0.28),
)
"""What part of the whole each type weighs; within a type all pairs weigh the same."""


def features_of(
    pairs: Sequence[Pair], observer: Observer, opposites: Mapping[str, str] | None = None
) -> NDArray[np.float64]:
    """Returns one row of features per pair. `opposites`: the axes of words, in place of those of the shipped table."""
    rows = []
    for pair in pairs:
        heard, typed = observer.observe(pair)
        if opposites is not None:
            heard, typed = by_table(heard, opposites), by_table(typed, opposites)
        rows.append(compared(heard, typed, wording(heard), wording(typed)).features)
    return np.array(rows)


def by_table(observation: Observation, opposites: Mapping[str, str]) -> Observation:
    """Returns an observation whose opposites are those of a table, word by word; particles keep theirs."""
    facts = []
    for fact in observation.facts:
        word = observation.text[fact.start : fact.stop].lower()
        if fact.kind != "polarity" or word in PARTICLES:
            facts.append(fact)
        elif word in opposites:
            facts.append(replace(fact, value=opposites[word]))
    return replace(observation, facts=tuple(facts))


def weights_of(pairs: Sequence[Pair]) -> NDArray[np.float64]:
    """Returns what each pair weighs in a fit; unclear ones nothing."""
    weights = np.zeros(len(pairs))
    for prefix, share in SHARES:
        members = [at for at, pair in enumerate(pairs) if _sort(pair) == prefix and pair.judged != "unclear"]
        if members:
            weights[members] = share / len(members)
    scaled: NDArray[np.float64] = weights * len(pairs) / max(weights.sum(), 1e-9)
    return scaled


def _sort(pair: Pair) -> str:
    return pair.type if pair.type.startswith(("natural", "paraphrase")) else pair.type.partition("_")[0]


class TooFewPairs(ValueError):
    """Nothing can be fitted to these pairs."""


def fit(pairs: Sequence[Pair], features: NDArray[np.float64]) -> DistanceModel:
    """Fits a model to labelled pairs, and sets its bias so that 0.85 has its false positive rate.

    Raises `TooFewPairs` where there are not both: contradictions, and consistent pairs that are no paraphrases."""
    truth = np.array([pair.truth for pair in pairs])
    weights = weights_of(pairs)
    plain = np.array([pair.type != "paraphrase" for pair in pairs])
    if not ((weights > 0) & ~truth & plain).any() or not ((weights > 0) & truth).any():
        raise TooFewPairs(
            f"expected consistent and inconsistent pairs of the types {', '.join(one for one, _ in SHARES)}, in every "
            f"fold; one of both is missing among {len(pairs)} pairs"
        )
    caps = np.array([CAPS.get(name, 1e3) for name in NAMES])
    capped = np.minimum(features, caps)
    blind = capped.copy()
    blind[:, NAMES.index("meaning")] = 0.0
    differs = (capped[:, [NAMES.index(name) for name in DIFFERENCES]] > 0).any(axis=1)
    blind[:, NAMES.index("meaning_absent")] = differs
    rows = np.vstack([capped, blind])
    scale = np.where(rows.std(axis=0) > 1e-6, rows.std(axis=0), 1.0)
    found = _descend(rows / scale, np.tile(truth, 2), np.concatenate([weights, WITHOUT_VECTORS * weights]))
    slopes = found[:-1] / scale
    consistent = (weights > 0) & ~truth & plain
    bar, blind_bar = (threshold_for(some @ slopes, ~consistent, FALSE_POSITIVES) for some in (capped, blind))
    # Without vectors the same share of consistent pairs is to lie above the operating point.
    slopes[NAMES.index("meaning_absent")] += bar - blind_bar
    bias = float(np.log(OPERATING_POINT / (1 - OPERATING_POINT))) - bar
    kept = {
        name: round(slope * UNIT) for name, slope in zip(NAMES, slopes, strict=True) if round(slope * UNIT)
    }
    return DistanceModel(
        VERSION,
        round(bias * UNIT),
        kept,
        {name: round(cap * UNIT) for name, cap in CAPS.items() if name in kept},
    )


def _descend(
    rows: NDArray[np.float64], truth: NDArray[np.bool_], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Returns slopes and bias of least weighted log loss plus a ridge, slopes of differences not negative."""
    # Only who fits needs scipy: the benchmarks that import this module run without it.
    from scipy.optimize import minimize  # type: ignore[import-untyped]

    signs = np.where(truth, 1.0, -1.0)

    def loss(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin = signs * (rows @ point[:-1] + point[-1])
        pull = -signs * weights / (1 + np.exp(np.clip(margin, -40, 40)))
        value = float((weights * np.logaddexp(0, -margin)).sum() + RIDGE / 2 * (point[:-1] ** 2).sum())
        return value, np.append(rows.T @ pull + RIDGE * point[:-1], pull.sum())

    bounds = [(None if name in EITHER_SIGN else 0.0, None) for name in NAMES] + [(None, None)]
    result = minimize(loss, np.zeros(rows.shape[1] + 1), jac=True, bounds=bounds, method="L-BFGS-B",
                      options={"maxiter": 3_000, "ftol": 1e-10})  # fmt: skip
    point: NDArray[np.float64] = result.x
    return point


def folds_of(pairs: Sequence[Pair], count: int = 5) -> NDArray[np.int64]:
    """Returns a fold for each pair; pairs of one utterance share it."""
    return np.array([pair.group * 2_654_435_761 % (1 << 32) * count >> 32 for pair in pairs])


def cross_validated(pairs: Sequence[Pair], features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns D of each pair by a model that has seen no pair of its utterance."""
    folds = folds_of(pairs)
    scores = np.zeros(len(pairs))
    for fold in np.unique(folds):
        train = np.flatnonzero(folds != fold).tolist()
        model = fit([pairs[at] for at in train], features[train])
        for at in np.flatnonzero(folds == fold):
            scores[at] = model.of(features[at])
    return scores


def write(model: DistanceModel, path: Path) -> None:
    """Writes a model as it ships."""
    numbers = {"version": model.version, "bias": model.bias, "weights": model.weights, "caps": model.caps}
    path.write_text(json.dumps(numbers, indent=1) + "\n", encoding="ascii")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = os.environ.get("CHORALE_CONSISTENCY_DATA")
    parser.add_argument(
        "--data", type=Path, default=default, required=default is None, help="the data's folder"
    )
    parser.add_argument("--out", type=Path, default=Path(consistency.__file__).with_name(FILE))
    arguments = parser.parse_args()
    try:
        pairs = read_pairs(arguments.data)
    except (BadData, OSError) as error:
        parser.error(str(error))
    observer = Observer()
    texts = {text for pair in pairs for text in (pair.heard, pair.typed)}
    for _ in track(
        observer.embed(sorted(texts)), "sentence vectors", -(-len(texts) // BATCH), transient=True
    ):
        pass
    try:
        write(fit(pairs, features_of(pairs, observer)), arguments.out)
    except TooFewPairs as error:
        parser.error(str(error))
    print(f"{arguments.out.name}: version {VERSION}, fitted on {len(pairs)} pairs")


if __name__ == "__main__":
    main()
