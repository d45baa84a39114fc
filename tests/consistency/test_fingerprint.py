"""Sixteen bytes for what is meant."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from consistency import fingerprint as prints
from consistency.observation import VECTOR_ONE, Fact, Observation, Token
from consistency.whitening import cosine


def _vector(seed: int) -> NDArray[np.int16]:
    drawn = np.random.default_rng(seed).standard_normal(128)
    return np.rint(VECTOR_ONE * drawn / np.linalg.norm(drawn)).astype(np.int16)


def _observation(seed: int, facts: Sequence[tuple[str, str]] = ()) -> Observation:
    named = tuple(Fact(kind, value) for kind, value in facts)
    return Observation("o", "text", 0, 0, "", facts=named, vector=_vector(seed))


_FACTS = st.lists(
    st.tuples(st.sampled_from(["number", "time", "weekday"]), st.sampled_from("0123456789")),
    max_size=4,
    unique=True,
)


@given(st.integers(0, 50), _FACTS, st.integers(0, 4))
def test_fingerprint_does_not_depend_on_the_order_of_facts(
    seed: int, facts: list[tuple[str, str]], by: int
) -> None:
    """Facts are a set: any order gives the same 16 bytes."""
    one = prints.fingerprint(_observation(seed, facts))
    assert len(one) == 16
    assert one == prints.fingerprint(_observation(seed, facts[by:] + facts[:by]))
    assert one == prints.fingerprint(_observation(seed, facts[::-1]))


@given(st.integers(0, 30), st.permutations(range(128)))
def test_fingerprint_is_the_same_in_any_order_of_summation(seed: int, order: list[int]) -> None:
    """Sums of integers: the vector's components may be added in any order."""
    one = _observation(seed)
    _, text, _, _ = prints._rotation()
    permuted = text[:, order] @ one.vector.astype(np.int64)[order]
    assert np.array_equal(prints.rotated(one), prints.WEIGHTS["text"] * permuted)


@given(_FACTS.filter(bool))
def test_key_is_balanced(facts: list[tuple[str, str]]) -> None:
    """Exactly half the bits of a key are set, so other facts move a print to the middle."""
    assert prints.key_of(Fact(kind, value) for kind, value in facts).bit_count() == 64


def test_key_negation_turns_every_bit() -> None:
    """One negation is as far as can be; two cancel."""
    plain, denied = [Fact("number", "5")], [Fact("number", "5"), Fact("negation", "not")]
    assert prints.key_of(plain) ^ prints.key_of(denied) == (1 << 128) - 1
    assert prints.key_of(plain) == prints.key_of([*denied, Fact("negation", "not")])


def test_fingerprint_other_facts_lie_in_the_middle() -> None:
    """Equal meaning with another number: 64 of 128 bits, give or take four standard deviations."""
    far = [
        prints.hamming(
            prints.fingerprint(_observation(seed, [("number", "15")])),
            prints.fingerprint(_observation(seed, [("number", str(100 + seed))])),
        )
        for seed in range(60)
    ]
    assert all(40 <= one <= 88 for one in far)
    assert 60 < np.mean(far) < 68


def test_cosine_estimates_have_their_stated_errors() -> None:
    """Near a cosine of 0.15 two prints tell it within 0.14 (root mean square), a vector and a print within 0.12."""
    errors = []
    for seed in range(400):
        base = _vector(seed).astype(np.float64)
        mixed = 0.15 * base + np.sqrt(1 - 0.15**2) * _vector(10_000 + seed)
        other = replace(
            _observation(0), vector=np.rint(VECTOR_ONE * mixed / np.linalg.norm(mixed)).astype(np.int16)
        )
        one = _observation(seed)
        true = cosine(one.vector, other.vector)
        assert true is not None
        stored = prints.fingerprint(other)
        errors.append(
            (prints.cosine(prints.fingerprint(one), stored) - true, prints.cosine_to(one, stored) - true)
        )
    two, asymmetric = np.sqrt((np.array(errors) ** 2).mean(axis=0))
    assert two < 0.15
    assert asymmetric < 0.125
    assert asymmetric < two


def test_fingerprint_an_absent_modality_is_no_measured_zero() -> None:
    """Prosody of zeros and none give the same print; tokens in any order too."""
    one = _observation(3)
    assert prints.fingerprint(replace(one, prosody=(0.0,) * 12)) == prints.fingerprint(one)
    tokens = (Token("book", "time", "19:00"), Token("book", "people", "4"))
    assert prints.fingerprint(replace(one, tokens=tokens)) == prints.fingerprint(
        replace(one, tokens=tokens[::-1])
    )


def test_versioned_begins_with_the_version() -> None:
    """Seventeen bytes, the first the fit's version."""
    one = _observation(1)
    assert prints.versioned(one) == bytes([prints.version()]) + prints.fingerprint(one)


def test_cosine_of_equal_prints_is_one() -> None:
    """And of inverted ones minus one."""
    one = prints.fingerprint(_observation(1))
    assert prints.cosine(one, one) == 1.0
    assert prints.cosine(one, bytes(byte ^ 0xFF for byte in one)) == pytest.approx(-1.0)
