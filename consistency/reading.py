"""A text as the graph compares it: words in one form, where each stands, and typed facts. Pure.

Facts are read elsewhere (`Reader`), so that this package needs no reader of its own.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from consistency.observation import Fact

Reader = Callable[[str], tuple[Fact, ...]]
"""Returns the facts of a text. Always the same for the same text."""

_TOKEN = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+(?:[.,:]\d+)*|[^\W\d_]+")


def vocabulary(words: str) -> frozenset[str]:
    """Returns a set of words that are written apart by spaces."""
    return frozenset(words.split())


def _in_order(words: str) -> tuple[str, ...]:
    return tuple(words.split())


_UNITS = _in_order(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
_TENS = {
    word: 10 * ten
    for ten, word in enumerate(_in_order("twenty thirty forty fifty sixty seventy eighty ninety"), 2)
}
_NUMBERS = {word: value for value, word in enumerate(_UNITS)} | _TENS
_ORDINALS = _in_order(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
    "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
_ORDINAL = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)\b")
LONGEST = 600
"""Characters of a text that are read; nobody says more in one turn, and looking for values costs time."""


@dataclass(frozen=True, slots=True)
class Reading:
    """`words`: lower case, numbers as digits. `facts`: as read. `numbers`: every whole number in it, however it is
    meant (the 7 of "7:30", of "the 7th", of "march seven")."""

    text: str
    words: tuple[str, ...]
    facts: tuple[Fact, ...]
    numbers: frozenset[int]

    def find(self, words: Sequence[str]) -> int:
        """Returns where a phrase begins among the words, -1 where it does not stand there."""
        many = len(words)
        if not many:
            return -1
        first = words[0]
        for at, word in enumerate(self.words):
            if word == first and self.words[at : at + many] == tuple(words):
                return at
        return -1

    def of(self, *kinds: str) -> tuple[Fact, ...]:
        """Returns the facts of these kinds."""
        return tuple(fact for fact in self.facts if fact.kind in kinds)


@lru_cache(maxsize=8_192)
def words_of(text: str) -> tuple[str, ...]:
    """Returns the words of a text: lower case, number words and ordinals as digits, possessives without their s."""
    plain = _ORDINAL.sub(r"\1", text[:LONGEST].lower().replace("’", "'").replace("&", " and "))
    return tuple(_digits(_bare(word) for word in _TOKEN.findall(plain)))


def read(text: str, facts: Iterable[Fact]) -> Reading:
    """Returns the reading of a text whose facts are known."""
    words = words_of(text)
    known = tuple(facts)
    numbers = {int(part) for word in words for part in re.findall(r"\d+", word) if len(part) < 10}
    return Reading(text[:LONGEST], words, known, frozenset(numbers))


def _bare(word: str) -> str:
    return word[:-2] if word.endswith("'s") else word


def _digits(words: Iterable[str]) -> list[str]:
    """Number words as digits; "twenty one" becomes one word."""
    found: list[str] = []
    tens = False
    for word in words:
        if word in _NUMBERS:
            value = _NUMBERS[word]
            if tens and 0 < value < 10:
                found[-1] = str(int(found[-1]) + value)
                tens = False
            else:
                found.append(str(value))
                tens = word in _TENS
            continue
        tens = False
        found.append(str(_ORDINALS.index(word) + 1) if word in _ORDINALS and word != "second" else word)
    return found
