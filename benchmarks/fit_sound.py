"""Fits the models of `consistency.sound`: `make fit-consistency` runs it after the distance.

    CHORALE_CONSISTENCY_DATA=... python -m benchmarks.fit_sound

It hears the clips of the data with the default recogniser and with Whisper base and scores the typed texts (some six
minutes; what was heard is kept, so that a stopped run goes on from there). Then it fits logistic regressions with a
ridge, both classes weighing the same. Of the labels it reads `label` and the gold slots; what was really said is no
feature. The clips and their texts are CC0.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import consistency
from benchmarks.data_files import BadData
from benchmarks.outcome import RESULTS
from benchmarks.sound_data import HeardClip, HeardPair, ears, listen
from consistency.sound import FILE, LOST_ALONE, LOST_NAMES, PAIR_NAMES, UNIT, Fit, SoundModel, to_json

VERSION = 2
RIDGE_PAIRS, RIDGE_LOST = 15.0, 30.0
FOLDS, SEED = 5, 1
KEEP = RESULTS / "heard"

Numbers = NDArray[np.float64]


def regression(rows: Numbers, labels: NDArray[np.bool_], ridge: float, names: Sequence[str]) -> Fit:
    """Returns the logistic regression with the least log loss plus ridge on standardised features (Newton's method)."""
    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    scale = np.where(spread > 1e-6, spread, 1.0)
    design = np.hstack([(rows - mean) / scale, np.ones((len(rows), 1))])
    weights = np.where(labels, 0.5 / max(labels.mean(), 1e-9), 0.5 / max((~labels).mean(), 1e-9))
    penalty = np.full(design.shape[1], ridge)
    penalty[-1] = 1e-6
    found = np.zeros(design.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-np.clip(design @ found, -35, 35)))
        gradient = design.T @ (weights * (chance - labels)) + penalty * found
        curve = weights * chance * (1 - chance)
        step = np.linalg.solve((design.T * curve) @ design + np.diag(penalty), gradient)
        found = found - step
        if np.abs(step).max() < 1e-8:
            break
    slopes = found[:-1] / scale
    bias = found[-1] - float(mean @ slopes)
    return Fit(tuple(names), round(bias * UNIT), tuple(round(float(one) * UNIT) for one in slopes))


def fit(clips: Sequence[HeardClip], pairs: Sequence[HeardPair]) -> SoundModel:
    """Fits everything to what was heard. Where there is no second recogniser its fits are the first one's."""
    labels = np.array([pair.inconsistent for pair in pairs])
    first = regression(_first(pairs), labels, RIDGE_PAIRS, PAIR_NAMES)
    has_second = all(pair.second is not None for pair in pairs)
    second = regression(_second(pairs), labels, RIDGE_PAIRS, PAIR_NAMES) if has_second else first
    both = (UNIT, 0)
    if has_second:
        # How sure both are together is told by clips that neither has been fitted to.
        mean = np.zeros((len(pairs), 1))
        for inside, outside in folds(np.array([pair.group for pair in pairs])):
            for rows in (_first(pairs), _second(pairs)):
                part = regression(rows[inside], labels[inside], RIDGE_PAIRS, PAIR_NAMES)
                mean[outside, 0] += odds(part, rows[outside]) / 2
        one = regression(mean, labels, 0.01, ("mean",))
        both = (one.weights[0], one.bias)
    known = [clip for clip in clips if clip.lost is not None]
    lost = np.array([bool(clip.lost) for clip in known])
    rows = np.array([clip.features for clip in known])
    alone = regression(rows[:, : len(LOST_ALONE)], lost, RIDGE_LOST, LOST_ALONE)
    return SoundModel(VERSION, first, second, both, alone, regression(rows, lost, RIDGE_LOST, LOST_NAMES))


def folds(groups: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Returns (inside, outside) of each fold; all of a group are in one."""
    names = np.unique(groups)
    order = np.random.default_rng(SEED).permutation(len(names))
    place = {name: int(at) % FOLDS for name, at in zip(names, order, strict=True)}
    of = np.array([place[group] for group in groups])
    return [(np.flatnonzero(of != fold), np.flatnonzero(of == fold)) for fold in range(FOLDS)]


def odds(model: Fit, rows: Numbers) -> Numbers:
    """Returns log odds."""
    return np.array([model.odds(row) / UNIT**2 for row in rows])


def _first(pairs: Sequence[HeardPair]) -> Numbers:
    return np.array([pair.first for pair in pairs])


def _second(pairs: Sequence[HeardPair]) -> Numbers:
    return np.array([pair.second for pair in pairs])


def main() -> None:
    """Fits and writes ``consistency/sound.json``."""
    parser = argparse.ArgumentParser(description="Fit what ships as consistency/sound.json.")
    parser.add_argument("--data", type=Path, default=os.environ.get("CHORALE_CONSISTENCY_DATA"))
    parser.add_argument("--out", type=Path, default=Path(consistency.__path__[0]) / FILE)
    parser.add_argument("--keep", type=Path, default=KEEP, help="a folder that remembers what was heard")
    chosen = parser.parse_args()
    if chosen.data is None:
        parser.error("where is the data? Give --data or set CHORALE_CONSISTENCY_DATA")
    who = ears(keep=chosen.keep)
    if not who.both:
        parser.error("Whisper base is needed: chorale models install --with whisper-base")

    def progress(name: str, done: int, total: int) -> None:
        print(f"\r{name} {done}/{total}", end="" if done < total else "\n", file=sys.stderr, flush=True)

    try:
        clips, pairs = listen(Path(chosen.data), who, progress)
    except (BadData, OSError) as error:
        parser.error(str(error))
    model = fit(clips, pairs)
    chosen.out.write_text(json.dumps(to_json(model), indent=1) + "\n", encoding="ascii")
    print(f"{len(pairs)} pairs, {len(clips)} clips; written to {chosen.out}")


if __name__ == "__main__":
    main()
