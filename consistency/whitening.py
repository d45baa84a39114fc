"""Sentence vectors whose components are uncorrelated, so that a cosine means the same everywhere.

Whitening as in Su et al. 2021 (arXiv:2103.15316): y = (x - mean) · U · L^(-1/2), the leading 128 components kept. The
numbers ship in ``whitening.npz``; `benchmarks/fit_whitening.py` makes them.
"""

from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from consistency.observation import VECTOR_DIMENSIONS, VECTOR_ONE

FILE = "whitening.npz"


@dataclass(frozen=True, slots=True, eq=False)
class Whitening:
    """One fit: `mean` (n,) and `matrix` (n, 128), float32. `version` is in 0-255 and names the fit in fingerprints."""

    version: int
    mean: NDArray[np.float32]
    matrix: NDArray[np.float32]

    def apply(self, vectors: NDArray[np.float32]) -> NDArray[np.int16]:
        """Returns unit vectors in whitened space, (k, 128) int16 of length `VECTOR_ONE`, of (k, n) sentence vectors.

        Floating point: called where the model runs; from its result on everything is in integers. Raises ValueError
        where the vectors are not as long as those of the fit.
        """
        if vectors.ndim != 2 or vectors.shape[1] != len(self.mean):
            raise ValueError(f"whitening takes vectors of {len(self.mean)} components, not {vectors.shape}")
        white = (vectors.astype(np.float64) - self.mean) @ self.matrix.astype(np.float64)
        length = np.linalg.norm(white, axis=1, keepdims=True)
        unit: NDArray[np.int16] = np.rint(VECTOR_ONE * white / np.maximum(length, 1e-9)).astype(np.int16)
        return unit


def fit(vectors: NDArray[np.float32], version: int) -> Whitening:
    """Returns the whitening of (k, n) sentence vectors; k must be well above 128."""
    centred = vectors.astype(np.float64)
    mean = centred.mean(axis=0)
    centred = centred - mean
    strength, axes = np.linalg.eigh(centred.T @ centred / len(centred))
    kept = np.argsort(strength)[::-1][:VECTOR_DIMENSIONS]
    matrix = axes[:, kept] / np.sqrt(strength[kept])
    return Whitening(version, mean.astype(np.float32), matrix.astype(np.float32))


@cache
def shipped() -> Whitening:
    """Returns the fit that ships with Chorale (for all-MiniLM-L6-v2, 384 components)."""
    with resources.files("consistency").joinpath(FILE).open("rb") as file, np.load(file) as numbers:
        return Whitening(
            int(numbers["version"]), numbers["mean"].astype(np.float32), numbers["matrix"].astype(np.float32)
        )


def cosine(one: NDArray[np.int16], other: NDArray[np.int16]) -> float | None:
    """Returns the cosine of two vectors of length `VECTOR_ONE`, summed in integers; None where one is absent."""
    if not len(one) or not len(other):
        return None
    product = int(one.astype(np.int64) @ other.astype(np.int64))
    return max(-1.0, min(1.0, product / (VECTOR_ONE * VECTOR_ONE)))
