"""Which words may stand for each other: they share a meaning, or one is a kind of the other. From WordNet 3.0.

The table is made by `benchmarks/make_lexicon.py`; WordNet's licence lies beside it (`WORDNET-LICENSE`). Only a word's
more frequent meanings are in it, so that "set" is not related to everything.
"""

import gzip
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

SAME, KIND, NONE = 1.0, 0.7, 0.0
"""What `related` returns: a meaning shared, one a kind of the other, neither."""

_CACHED_PAIRS = 4_096
_ENDINGS = (
    ("ies", "y"),
    ("es", ""),
    ("es", "e"),
    ("s", ""),
    ("ied", "y"),
    ("ed", ""),
    ("ed", "e"),
    ("ing", ""),
    ("ing", "e"),
    ("ier", "y"),
    ("er", ""),
    ("er", "e"),
    ("iest", "y"),
    ("est", ""),
    ("est", "e"),
)
"""Endings of inflected forms and what the lemma has instead (WordNet's own rules of detachment)."""


@dataclass(frozen=True, slots=True)
class _Table:
    meanings: dict[str, str]
    kinds: dict[str, str]
    irregular: dict[str, str]


@lru_cache(maxsize=_CACHED_PAIRS)
def related(one: str, other: str) -> float:
    """Returns how near two lower-case words are in meaning: `SAME`, `KIND` or `NONE`. Symmetric; inflected forms count
    as their lemma."""
    if one == other:
        return SAME
    left, right = _meanings(one), _meanings(other)
    if not left or not right:
        return SAME if set(lemmas(one)) & set(lemmas(other)) else NONE
    if left & right or set(lemmas(one)) & set(lemmas(other)):
        return SAME
    return KIND if _kinds(left) & right or _kinds(right) & left else NONE


@lru_cache(maxsize=_CACHED_PAIRS)
def lemmas(word: str) -> tuple[str, ...]:
    """Returns the words of the table that a form may belong to, itself first if it is one; empty if none is known."""
    table = _table()
    found = [word] if word in table.meanings else []
    if word in table.irregular:
        found.append(table.irregular[word])
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 1:
            stem = word[: len(word) - len(ending)] + instead
            # "stopped", "running": the last letter was doubled.
            single = stem[:-1] if len(stem) > 2 and not instead and stem[-1] == stem[-2] else stem
            found += [lemma for lemma in (stem, single) if lemma in table.meanings]
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=_CACHED_PAIRS)
def _meanings(word: str) -> frozenset[str]:
    table = _table()
    return frozenset(meaning for lemma in lemmas(word) for meaning in table.meanings.get(lemma, "").split())


def _kinds(meanings: frozenset[str]) -> set[str]:
    """What these meanings are kinds of, one step up."""
    kinds = _table().kinds
    return {above for meaning in meanings for above in kinds.get(meaning, "").split()}


@cache
def _table() -> _Table:
    """The table, read once, when first needed."""
    packed = files(__package__).joinpath("related.tsv.gz").read_bytes()
    parts = gzip.decompress(packed).decode("ascii").split("\n\n")
    meanings, kinds, irregular = (
        dict(line.split("\t", 1) for line in part.split("\n") if line) for part in parts
    )
    return _Table(meanings, kinds, irregular)
