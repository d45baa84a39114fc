"""Which words may stand for each other: they share a meaning, or one is a kind of the other. From WordNet 3.0.

The table is made by `benchmarks/make_lexicon.py`; WordNet's licence lies beside it (`WORDNET-LICENSE`). Only a word's
more frequent meanings are in it, so that "set" is not related to everything.
"""

import gzip
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal, NamedTuple

Likeness = Literal["same", "synonym", "kind", ""]
"""Forms of one word; words that share a meaning; one a kind of the other; neither."""

_CACHED = 8_192
_ENDINGS = (
    *(("ies", "y"), ("es", ""), ("es", "e"), ("s", "")),
    *(("ied", "y"), ("ed", ""), ("ed", "e")),
    *(("ing", ""), ("ing", "e")),
    *(("ier", "y"), ("er", ""), ("er", "e")),
    *(("iest", "y"), ("est", ""), ("est", "e")),
)
"""Endings of inflected forms and what the lemma has instead (WordNet's own rules of detachment)."""


class Lexicon:
    """Words with their meanings, meanings with what they are kinds of, irregular forms with their words."""

    def __init__(self, meanings: dict[str, str], kinds: dict[str, str], irregular: dict[str, str]) -> None:
        self._meanings = meanings
        self._kinds = kinds
        self._irregular = irregular

    def lemmas(self, form: str) -> frozenset[str]:
        """Returns the known words that a form may belong to, itself too if it is one; empty where none is known."""
        found = [form, self._irregular.get(form, "")]
        for ending, instead in _ENDINGS:
            if form.endswith(ending) and len(form) > len(ending) + 1:
                stem = form[: len(form) - len(ending)] + instead
                found.append(stem)
                if not instead and len(stem) > 2 and stem[-1] == stem[-2]:
                    found.append(stem[:-1])
        return frozenset(lemma for lemma in found if lemma in self._meanings)

    def meanings(self, form: str) -> frozenset[str]:
        """Returns the meanings of all words that a form may belong to."""
        return frozenset(one for lemma in self.lemmas(form) for one in self._meanings[lemma].split())

    def kinds(self, meanings: frozenset[str]) -> frozenset[str]:
        """Returns what these meanings are kinds of, one step up."""
        return frozenset(above for one in meanings for above in self._kinds.get(one, "").split())


@lru_cache(maxsize=_CACHED)
def relation(one: str, other: str) -> Likeness:
    """Returns how two lower-case words are related in form or meaning, the nearest relation first. Symmetric."""
    left, right = _entry(one), _entry(other)
    if one == other or left.lemmas & right.lemmas:
        return "same"
    if left.meanings & right.meanings:
        return "synonym"
    return "kind" if left.kinds & right.meanings or right.kinds & left.meanings else ""


def siblings(one: str, other: str) -> bool:
    """Whether two lower-case words are kinds of the same thing. Symmetric."""
    return bool(_entry(one).kinds & _entry(other).kinds)


class _Entry(NamedTuple):
    lemmas: frozenset[str]
    meanings: frozenset[str]
    kinds: frozenset[str]


@lru_cache(maxsize=_CACHED)
def _entry(form: str) -> _Entry:
    """What the table says of a form; texts are compared word by word, so each is looked up many times."""
    words = lexicon()
    meanings = words.meanings(form)
    return _Entry(words.lemmas(form), meanings, words.kinds(meanings))


def related(one: str, other: str) -> bool:
    """Whether two lower-case words may stand for each other."""
    return relation(one, other) != ""


def is_word(form: str) -> bool:
    """Whether a lower-case form belongs to a word that the table knows."""
    return bool(_entry(form).lemmas)


def lemmas(form: str) -> frozenset[str]:
    """Returns the known words that a form may belong to."""
    return _entry(form).lemmas


@cache
def lexicon() -> Lexicon:
    """Returns the table; it is read once, when first needed."""
    packed = files(__package__).joinpath("related.tsv.gz").read_bytes()
    parts = gzip.decompress(packed).decode("ascii").split("\n\n")
    return Lexicon(*(dict(line.split("\t", 1) for line in part.split("\n") if line) for part in parts))
