"""The fit of the whitening does not hang on how texts are batched, and what ships whitens the data that made it."""

import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks import fit_whitening
from benchmarks.fit_whitening import embed, rotation, texts_of
from consistency.fingerprint import BITS
from consistency.whitening import fit, shipped

TEXTS = [
    f"{start} {rest}".strip()
    for start in (
        "turn on the lights",
        "no",
        "book a table for two at the old harbour grill on friday evening",
    )
    for rest in ("", "please", "and tell anna that i shall be late for dinner", "in the kitchen")
]


@pytest.mark.real
def test_vectors_are_the_same_in_whatever_company(monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one, in batches of 32 or of 64: short texts beside long ones get what they get alone."""
    found = []
    for batch in (1, 5, 32, 64):
        monkeypatch.setattr(fit_whitening, "BATCH", batch)
        found.append(embed(TEXTS))
    for other in found[1:]:
        assert np.abs(other - found[0]).max() < 1e-6


def test_fit_is_the_same_every_time() -> None:
    """Mean, matrix and rotation, to the last bit."""
    vectors = np.random.default_rng(3).normal(0, 1, (300, 384)).astype(np.float32)
    one, again = fit(vectors, 1), fit(vectors.copy(), 1)
    assert np.array_equal(one.mean, again.mean)
    assert np.array_equal(one.matrix, again.matrix)
    turn = rotation(one.apply(vectors))
    assert np.array_equal(turn, rotation(again.apply(vectors)))
    assert np.abs(turn @ turn.T - np.eye(BITS)).max() < 1e-9


@pytest.mark.real
@pytest.mark.dialogues
def test_what_ships_whitens_a_part_of_its_texts() -> None:
    """Every tenth text that it was fitted on: components lie around zero, vary by one, and hang together little. A fit
    to other texts, or another model's, fails this."""
    vectors = embed(texts_of(Path(os.environ["CHORALE_CONSISTENCY_DATA"]))[::10])
    ours = shipped()
    white = (vectors.astype(np.float64) - ours.mean) @ ours.matrix.astype(np.float64)
    assert np.abs(white.mean(axis=0)).max() < 0.25
    assert 0.7 < white.var(axis=0).min() <= white.var(axis=0).max() < 1.4
    together = np.corrcoef(white.T) - np.eye(white.shape[1])
    assert np.sqrt((together**2).mean()) < 0.08
