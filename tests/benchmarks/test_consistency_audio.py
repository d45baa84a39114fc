"""The audio part of the consistency bench: what is fitted, what counts as lost, and what the table holds."""

import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.consistency_audio import claims, rows, table_of
from benchmarks.fit_sound import fit, folds, odds, regression
from benchmarks.sound_data import HeardClip, HeardPair, is_lost
from consistency.sound import LOST_NAMES, PAIR_NAMES


def heard(count: int = 60, second: bool = True) -> tuple[list[HeardClip], list[HeardPair]]:
    """Clips and pairs whose features all say the truth, with some noise."""
    random = np.random.default_rng(4)
    clips, pairs = [], []
    for group in range(count):
        lost = group % 3 == 0
        doubts = random.normal(float(lost), 0.4, len(LOST_NAMES)).tolist()
        clips.append(HeardClip(group, group % 2 == 0, lost if group % 10 else None, tuple(doubts)))
        for inconsistent in (False, True):
            first, other = random.normal(float(inconsistent), 0.4, (2, len(PAIR_NAMES))).tolist()
            kind = "hard_number" if inconsistent else "typed_same"
            witnesses = tuple(first), tuple(other) if second else None
            pairs.append(HeardPair(kind, inconsistent, group % 2 == 0, group, "x", *witnesses, 0.1, 0.02))
    return clips, pairs


def test_regression_finds_what_separates() -> None:
    """The informative column gets the weight; log odds have the right sign."""
    random = np.random.default_rng(2)
    labels = np.arange(200) % 2 == 0
    values = np.stack([labels * 2.0 + random.normal(0, 0.5, 200), random.normal(0, 1, 200)], axis=1)
    found = regression(values, labels, 1.0, ("telling", "noise"))
    assert found.weights[0] > 5 * abs(found.weights[1])
    assert ((odds(found, values) > 0) == labels).mean() > 0.9


def test_folds_keep_a_clip_together_and_leave_none_out() -> None:
    """Nothing is judged by a model that has seen the same clip."""
    groups = np.repeat(np.arange(23), 3)
    seen: list[int] = []
    for inside, outside in folds(groups):
        assert not set(groups[inside]) & set(groups[outside])
        seen += outside.tolist()
    assert sorted(seen) == list(range(len(groups)))


def test_fit_judges_by_one_and_by_two() -> None:
    """A fitted model separates; two witnesses are at least as right as one."""
    clips, pairs = heard()
    model = fit(clips, pairs)
    apart = [
        np.mean(
            [model.distance(pair.first, pair.second if both else None) for pair in pairs if pair.inconsistent]
        )
        - np.mean(
            [
                model.distance(pair.first, pair.second if both else None)
                for pair in pairs
                if not pair.inconsistent
            ]
        )
        for both in (False, True)
    ]
    assert 0.8 < apart[0] <= apart[1] + 0.02


@pytest.mark.parametrize("second", [True, False])
def test_table_has_equal_columns_and_its_claims(second: bool) -> None:
    """Without a second recogniser its rows are missing, and its claims say so instead of failing."""
    found = table_of(*heard(second=second))
    assert len({tuple(row) for row in found}) == 1
    names = [row["audio"] for row in found]
    assert ("tiny.en + base, refitted: hard_number" in names) == second
    told = {claim.text: claim for claim in claims(found)}
    assert len(told) == 6
    assert all(claim.holds for claim in told.values())
    assert sum("not measured" in text for text in told) == (0 if second else 4)
    cost = next(row for row in found if row["audio"] == "forced score")
    assert cost["of a decode"] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("value", "text", "lost"),
    [
        ("twentieth", "cancel it on the 20th.", False),
        ("fifteen", "set a timer for 50 minutes", True),
        ("Costa Rica", "the forecast for cost or reek it", True),
        ("All Out 60s", "in my all out sixties", False),
    ],
)
def test_lost_is_a_value_that_the_text_has_not(value: str, text: str, lost: bool) -> None:
    """However its numbers are written."""
    assert is_lost([{"slot": "s", "value": value}], text) is lost


@pytest.mark.real
def test_audio_part_hears_a_few_clips_of_the_data() -> None:
    """The real recognisers on a handful of clips: figures for all rows, none of them empty; and the fit that ships
    belongs to what these recognisers hear."""
    data = os.environ.get("CHORALE_CONSISTENCY_DATA")
    if not data:
        pytest.skip("CHORALE_CONSISTENCY_DATA is not set")
    done: list[int] = []
    found = rows(Path(data), None, lambda name, count, total: done.append(count), limit=8)
    assert done[-1] >= 8
    first = found[0]
    assert isinstance(first["n"], int)
    assert first["n"] > 8
    assert first["audio"] == "tiny.en, shipped"
    assert isinstance(first["AUC"], float)
    assert first["AUC"] >= 0.9
