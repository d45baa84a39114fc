"""The audio part of `chorale bench consistency`: speech against typed text, slots lost in recognition, what it costs.

Two judgements stand side by side: of the shipped model, which was fitted on the developer data (on that its figures are
no test), and of models fitted here without the clip they judge (5 folds). Whisper base is the second recogniser where
it is installed; without it those rows are missing.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.detection import Labels, Scores, at, auc, interval, threshold_for
from benchmarks.fit_sound import RIDGE_LOST, fit, folds, odds, regression
from benchmarks.outcome import Claim, Row
from benchmarks.sound_data import HeardClip, HeardPair, Progress, ears, listen
from consistency.distance import logistic
from consistency.sound import LOST_ALONE, LOST_NAMES, UNIT, SoundModel, shipped
from modalities.errors import AdapterUnavailable

OPERATING_POINT = 0.85
FALSE_POSITIVES = 0.03

ONE, BOTH = "tiny.en", "tiny.en + base"


def rows(
    data: Path, embed: object, progress: Progress, limit: int | None = None, keep: Path | None = None
) -> list[Row]:
    """Hears the clips and returns the table; `keep` is a folder that remembers what was heard. Raises OSError where
    there are none, or no recogniser."""
    try:
        who = ears(keep=keep)
    except AdapterUnavailable as missing:
        raise FileNotFoundError(2, str(missing)) from missing
    return table_of(*listen(data, who, progress, limit))


def table_of(clips: Sequence[HeardClip], pairs: Sequence[HeardPair]) -> list[Row]:
    """Returns the rows: pairs by recogniser, of all kinds and of each; lost slots; the time of a forced score."""
    model, found = shipped(), []
    both = all(pair.second is not None for pair in pairs)
    for judged, one, two in _judgements(clips, pairs, model):
        found.append(_row(f"{ONE}, {judged}", one, pairs))
        if both:
            found.append(_row(f"{BOTH}, {judged}", two, pairs))
            found += [
                _row(
                    f"{BOTH}, {judged}: {name}",
                    two[chosen],
                    [pair for pair, wanted in zip(pairs, chosen, strict=True) if wanted],
                )
                for name, chosen in _parts(pairs)
            ]
    found += _lost(clips, model, both)
    found.append(_cost(pairs))
    return found


def claims(found: Sequence[Row]) -> list[Claim]:
    """Returns what the table has to show, by the cross-validated rows."""
    held = {str(row["audio"]): row for row in found}

    def claim(text: str, row: str, column: str, bound: float, at_least: bool = True) -> Claim:
        value = held.get(row, {}).get(column)
        if not isinstance(value, float | int):
            return Claim(f"{text} (not measured here)", True, None)
        return Claim(text, value >= bound if at_least else value <= bound, float(value))

    return [
        claim("speech: AUC of one recogniser at least .97", f"{ONE}, refitted", "AUC", 0.97),
        claim("speech: AUC of two at least .985", f"{BOTH}, refitted", "AUC", 0.985),
        claim("speech: AUC of two in noise at least .975", f"{BOTH}, refitted: noisy", "AUC", 0.975),
        claim(
            "speech: recall at 3 % false positives at least .90", f"{BOTH}, refitted", "R at 3 % FPR", 0.90
        ),
        claim("lost slot: AUC of two recognisers at least .90", f"lost slot, {BOTH}, refitted", "AUC", 0.90),
        claim("forced score: p95 at most 60 ms", "forced score", "p95 ms", 60.0, False),
    ]


def _judgements(
    clips: Sequence[HeardClip], pairs: Sequence[HeardPair], model: SoundModel | None
) -> list[tuple[str, Scores, Scores]]:
    """Returns D of every pair by one recogniser and by two: by the shipped model, and by ones fitted to other clips."""
    found = []
    if model is not None:
        found.append(("shipped", *_scores(pairs, model)))
    one, two = np.zeros(len(pairs)), np.zeros(len(pairs))
    for inside, outside in folds(np.array([pair.group for pair in pairs])):
        if len({pairs[n].inconsistent for n in inside}) == 2 and len(outside):
            part = fit(clips, [pairs[n] for n in inside])
            one[outside], two[outside] = _scores([pairs[n] for n in outside], part)
    return [*found, ("refitted", one, two)]


def _scores(pairs: Sequence[HeardPair], model: SoundModel) -> tuple[Scores, Scores]:
    one = np.array([model.distance(pair.first) for pair in pairs])
    return one, np.array([model.distance(pair.first, pair.second) for pair in pairs])


def _parts(pairs: Sequence[HeardPair]) -> list[tuple[str, NDArray[np.bool_]]]:
    consistent = np.array([not pair.inconsistent for pair in pairs])
    noisy = np.array([pair.noisy for pair in pairs])
    hard = np.array([pair.type.startswith("hard_") for pair in pairs])
    kinds = sorted({pair.type for pair in pairs if pair.inconsistent})
    return [
        ("clean", ~noisy),
        ("noisy", noisy),
        ("hard", hard | consistent),
        *((kind, consistent | np.array([pair.type == kind for pair in pairs])) for kind in kinds),
    ]


def _row(name: str, scores: Scores, pairs: Sequence[HeardPair]) -> Row:
    labels = np.array([pair.inconsistent for pair in pairs])
    groups = np.array([pair.group for pair in pairs])
    return _figures(name, scores, labels, groups)


def _figures(name: str, scores: Scores, labels: Labels, groups: NDArray[np.int64]) -> Row:
    figures = at(scores, labels, OPERATING_POINT)
    strict = at(scores, labels, threshold_for(scores, labels, FALSE_POSITIVES))
    low, high = interval(scores, labels, groups, auc)
    return {
        "audio": name, "n": len(labels), "consistent": int((~labels).sum()), "AUC": auc(scores, labels),
        "95 %": f"{low:.3f}-{high:.3f}", "P": figures.precision, "R": figures.recall, "F1": figures.f1,
        "FPR": figures.false_positives, "R at 3 % FPR": strict.recall,
        **dict.fromkeys(("p50 ms", "p95 ms", "of a decode")),
    }  # fmt: skip


def _lost(clips: Sequence[HeardClip], model: SoundModel | None, both: bool) -> list[Row]:
    known = [clip for clip in clips if clip.lost is not None]
    labels = np.array([bool(clip.lost) for clip in known])
    groups = np.array([clip.group for clip in known])
    features = np.array([clip.features for clip in known])
    found = []
    for name, names in ((ONE, LOST_ALONE), (BOTH, LOST_NAMES))[: 2 if both else 1]:
        if model is not None:
            scores = np.array([model.lost(row, names is LOST_NAMES) for row in features])
            found.append(_figures(f"lost slot, {name}, shipped", scores, labels, groups))
        scores = np.zeros(len(known))
        for inside, outside in folds(groups):
            if len(set(labels[inside].tolist())) == 2 and len(outside):
                part = regression(features[inside][:, : len(names)], labels[inside], RIDGE_LOST, names)
                of = odds(part, features[outside][:, : len(names)])
                scores[outside] = [logistic(round(one * UNIT**2)) for one in of]
        found.append(_figures(f"lost slot, {name}, refitted", scores, labels, groups))
    return found


def _cost(pairs: Sequence[HeardPair]) -> Row:
    """The time of one forced score, beside the recogniser's own decode of the same clip in this run."""
    scored = np.array([pair.scored_s for pair in pairs]) * 1000
    heard = np.array([pair.heard_s for pair in pairs]) * 1000
    blank = dict.fromkeys(("AUC", "95 %", "P", "R", "F1", "FPR", "R at 3 % FPR"))
    return {
        "audio": "forced score", "n": len(pairs), "consistent": None, **blank, "p50 ms": _percentile(scored, 50),
        "p95 ms": _percentile(scored, 95), "of a decode": _percentile(scored / np.maximum(heard, 1e-6), 50),
    }  # fmt: skip


def _percentile(values: NDArray[np.float64], share: float) -> float:
    return float(np.percentile(values, share))
