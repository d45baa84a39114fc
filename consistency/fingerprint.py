"""Sixteen bytes for what an observation means: for storing, indexing and cheap checks; decisions are taken on numbers.

The sign bits of the rotated fused vector (Charikar 2002), XOR a key of the typed facts: equal facts leave the Hamming
distance at the semantic angle, any other fact moves it to 64 ± 6 of 128 bits, one more negation turns every bit. All
sums are of integers, so the same observation has the same print on every processor.

How far estimates are off (128 bits, standard deviations): `cosine` 0.14 at most by theory (π · 0.5 / √128), near a
distance of 0.85; `cosine_to` about two thirds of that, for its query keeps its numbers. `chorale bench consistency`
measures both.
"""

import math
from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from consistency.observation import VECTOR_DIMENSIONS, VECTOR_ONE, Fact, Observation, Token

BYTES = 16
BITS = 8 * BYTES
PROSODY = 12
TOKENS = 64
"""Dimensions of the hash of tokens."""

WEIGHTS = {"text": 31_086, "prosody": 7_327, "tokens": 7_327}
"""Square roots of .90, .05 and .05 in parts of 32768: what each block of the fused vector weighs."""

KEYED = frozenset(
    {
        "number",
        "ordinal",
        "time",
        "half_day",
        "weekday",
        "relative_day",
        "date",
        "duration",
        "money",
        "percent",
        "year",
        "spelling",
    }
)
"""Kinds of facts that make another key; polarity is left to the vector, negation turns all bits."""

_SQUARABLE = 17
"""Bits to leave out so that the squares of 128 components add up within 63 bits."""
_PROSODY_UNIT = 4_096
_FILE = "rotation.npz"


def fingerprint(observation: Observation) -> bytes:
    """Returns the 16 bytes of an observation. They compare only with prints of the same `version`."""
    bits = int.from_bytes(np.packbits(rotated(observation) > 0).tobytes(), "big")
    bits ^= key_of(observation.facts, observation.tokens)
    return bits.to_bytes(BYTES, "big")


def versioned(observation: Observation) -> bytes:
    """Returns the version byte and the print behind it."""
    return bytes((version(),)) + fingerprint(observation)


def rotated(observation: Observation) -> NDArray[np.int64]:
    """Returns the fused vector, text .90, prosody .05, tokens .05, in the print's 128 directions. An absent modality is
    a block of zeros."""
    found = np.zeros(BITS, dtype=np.int64)
    text, prosody, tokens = _rotation()[1:]
    if len(observation.vector):
        found += WEIGHTS["text"] * (text @ observation.vector.astype(np.int64))
    if observation.prosody:
        given = [round(value * _PROSODY_UNIT) for value in observation.prosody[:PROSODY]]
        block = np.array(given + [0] * (PROSODY - len(given)), dtype=np.int64)
        found += WEIGHTS["prosody"] * (prosody @ _to_unit(block))
    if observation.tokens:
        found += WEIGHTS["tokens"] * (tokens @ _to_unit(_hashed(observation.tokens)))
    return found


def hamming(one: bytes, other: bytes) -> int:
    """Returns how many of the 128 bits differ."""
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).bit_count()


def cosine(one: bytes, other: bytes) -> float:
    """Estimates the cosine of two fused vectors with equal facts from their prints."""
    return round(math.cos(math.pi * hamming(one, other) / BITS), 4)


def cosine_to(query: Observation, stored: bytes) -> float:
    """Estimates the cosine of an observation at hand to a stored print: nearer than from two prints, because only one
    side has lost its numbers (asymmetric distance; Dong, Charikar and Li 2008)."""
    numbers = rotated(query) >> _SQUARABLE
    length = math.isqrt(int((numbers * numbers).sum())) or 1
    bits = int.from_bytes(stored, "big") ^ key_of(query.facts, query.tokens)
    signs = np.unpackbits(np.frombuffer(bits.to_bytes(BYTES, "big"), dtype=np.uint8)).astype(np.int64) * 2 - 1
    share = int(numbers @ signs) / (length * math.sqrt(BITS))
    return round(max(-1.0, min(1.0, share * math.sqrt(math.pi / 2))), 4)


def key_of(facts: Iterable[Fact], tokens: Iterable[Token] = ()) -> int:
    """Returns 128 bits of a set of facts: exactly half of them set, none where there are no facts; all turned where an
    odd number of negations stands."""
    known = list(facts)
    named = {f"{fact.kind}={fact.value}" for fact in known if fact.kind in KEYED}
    named |= {f"{token.slot}={token.value}" for token in tokens if token.slot}
    key = 0
    if named:
        drawn = blake2b("\n".join(sorted(named)).encode(), digest_size=64).digest()
        drawn += blake2b(drawn, digest_size=64).digest()
        order = sorted(range(BITS), key=drawn.__getitem__)  # equal bytes stay in the order of their bits
        for bit in order[: BITS // 2]:
            key |= 1 << bit
    odd = sum(fact.kind == "negation" for fact in known) % 2
    return key ^ ((1 << BITS) - 1) if odd else key


def version() -> int:
    """The version of the rotation and the whitening under it, 0-255; prints of two versions do not compare."""
    return _rotation()[0]


def _hashed(tokens: Iterable[Token]) -> NDArray[np.int64]:
    """A signed hash of tokens (Weinberger et al. 2009); the same tokens in any order give the same block."""
    block = np.zeros(TOKENS, dtype=np.int64)
    for token in tokens:
        drawn = blake2b(f"{token.intent}\0{token.slot}\0{token.value}".encode(), digest_size=4).digest()
        block[int.from_bytes(drawn[:2], "big") % TOKENS] += 1 if drawn[2] & 1 else -1
    return block


def _to_unit(block: NDArray[np.int64]) -> NDArray[np.int64]:
    """Scales whole numbers to a length of `VECTOR_ONE`, in integers."""
    length = math.isqrt(int((block * block).sum()) << 16)
    return block * (VECTOR_ONE << 8) // length if length else block


@cache
def _rotation() -> tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    with resources.files("consistency").joinpath(_FILE).open("rb") as file, np.load(file) as numbers:
        blocks = [numbers[name].astype(np.int64) for name in ("text", "prosody", "tokens")]
        shapes = [block.shape for block in blocks]
        if shapes != [(BITS, VECTOR_DIMENSIONS), (BITS, PROSODY), (BITS, TOKENS)]:
            raise ValueError(f"{_FILE} holds blocks of {shapes}")
        return int(numbers["version"]), blocks[0], blocks[1], blocks[2]
