"""Whitened vectors."""

import numpy as np
import pytest
from numpy.typing import NDArray

from consistency.observation import NO_VECTOR, VECTOR_ONE
from consistency.whitening import cosine, fit, shipped


def _drawn(count: int, seed: int = 1) -> NDArray[np.float32]:
    mixed = np.random.default_rng(seed).standard_normal((count, 200)) @ np.random.default_rng(
        9
    ).standard_normal((200, 200))
    return mixed.astype(np.float32)


def test_fit_makes_components_of_unit_variance_and_uncorrelated() -> None:
    """Before they are scaled to unit length, the kept components have the identity as covariance."""
    vectors = _drawn(4_000)
    made = fit(vectors, 3)
    white = (vectors.astype(np.float64) - made.mean) @ made.matrix
    assert np.allclose(np.cov(white.T, bias=True), np.eye(128), atol=1e-3)
    assert made.version == 3


def test_apply_gives_unit_vectors_in_int16() -> None:
    """All of length `VECTOR_ONE`, within rounding; a batch equals its rows."""
    vectors = _drawn(300)
    made = fit(vectors, 1)
    white = made.apply(vectors)
    assert white.dtype == np.int16
    assert np.allclose(np.linalg.norm(white.astype(np.float64), axis=1), VECTOR_ONE, atol=10)
    assert np.array_equal(white[7], made.apply(vectors[7:8])[0])


def test_apply_refuses_vectors_of_another_length() -> None:
    """Vectors of another model are an error, not a wrong number."""
    with pytest.raises(ValueError, match="384"):
        shipped().apply(np.zeros((1, 16), np.float32))


def test_cosine_of_absent_vectors_is_none() -> None:
    """An absent vector is no zero; a vector's cosine with itself is 1."""
    one = shipped().apply(np.random.default_rng(1).standard_normal((1, 384)).astype(np.float32))[0]
    assert cosine(one, NO_VECTOR) is None
    assert cosine(one, one) == pytest.approx(1.0, abs=1e-3)
    assert cosine(one, -one) == pytest.approx(-1.0, abs=1e-3)
