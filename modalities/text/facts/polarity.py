"""Words that have an opposite: which axes they lie on, and on which side. From WordNet and a list of commands.

The table is made by `benchmarks/make_lexicon.py`; WordNet's licence lies beside it (`WORDNET-LICENSE`).
"""

import gzip
from functools import cache
from importlib.resources import files

from modalities.text.facts.sentence import Sentence

_PARTICLES = {"on": "off/on:on", "off": "off/on:off", "up": "down/up:up", "down": "down/up:down"}
_PARTICLES |= {"in": "in/out:in", "out": "in/out:out"}
_PREPOSITIONS = frozenset({"on", "in"})
"""Particles that before a day or a time are none ("on friday")."""
_ARTICLES = frozenset({"the", "a"})


def read(sentence: Sentence) -> None:
    """Adds a polarity fact for each word with an opposite that no other fact has taken."""
    known = table()
    for one in tuple(sentence.found):
        if one.kind == "ordinal" and one.value == "1":
            sentence.add("polarity", known["first"], one.first, one.stop, take=False)
    for index, word in enumerate(sentence.words):
        if sentence.dropped[index] or sentence.taken[index]:
            continue
        value = known.get(word)
        if value is None:
            value = _PARTICLES.get(word)
            if value is None or (word in _PREPOSITIONS and _is_before_day(sentence, index + 1)):
                continue
        sentence.add("polarity", value, index, index + 1, take=False)


def _is_before_day(sentence: Sentence, index: int) -> bool:
    """Whether a day, time or number begins at `index`."""
    index += sentence.word(index) in _ARTICLES
    return index < len(sentence.tokens) and bool(sentence.taken[index])


@cache
def table() -> dict[str, str]:
    """Word forms and their axes; read once, when first needed."""
    packed = files(__package__).joinpath("opposites.tsv.gz").read_bytes()
    lines = gzip.decompress(packed).decode("ascii").split("\n")
    return dict(line.split("\t", 1) for line in lines if line)
