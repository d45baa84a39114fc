"""A text cut into words with their places, which the readers of facts go over one after the other."""

import re
from dataclasses import dataclass, field
from decimal import Decimal

from modalities.text.facts.fact import Fact

LONGEST_TEXT = 4_000
"""Characters that are read; nobody says more in one turn, and reading costs time."""

_TOKEN = re.compile(
    r"\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?|\d+(?:\.\d+)?"
    r"|[ap]\.\s?m\b\.?"
    r"|[^\W\d_]+(?:['’][^\W\d_]+)*"
    r"|[$£€%:/]",
    re.IGNORECASE,
)


def vocabulary(words: str) -> frozenset[str]:
    """Returns the set of words in a text, apart by spaces."""
    return frozenset(words.split())


class Token:
    """A word, number or sign: its characters in lower case, without a possessive ending, and its place in the text.

    `gap` is what stands between it and the token before. The methods are what text2num asks of a token.
    """

    __slots__ = ("gap", "start", "stop", "value")

    def __init__(self, value: str, start: int, stop: int, gap: str) -> None:
        self.value = value
        self.start = start
        self.stop = stop
        self.gap = gap

    def text(self) -> str:
        return self.value

    def nt_separated(self, previous: "Token") -> bool:
        """Whether punctuation parts this token from the one before."""
        return bool(self.gap) and not self.gap.isspace() and self.gap != "-"

    def not_a_number_part(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Number:
    """A number said or written in tokens [first, stop). `spoken`: in words. `ordinal`: twenty-first, 21st."""

    first: int
    stop: int
    value: Decimal
    ordinal: bool = False
    spoken: bool = False

    @property
    def whole(self) -> int:
        """Its value where it is a whole number; -1 otherwise."""
        return int(self.value) if self.value == self.value.to_integral_value() else -1


@dataclass(slots=True)
class Found:
    """A fact read from tokens [first, stop)."""

    kind: str
    value: str
    first: int
    stop: int


@dataclass(slots=True)
class Sentence:
    """Tokens of a text, the numbers found in them by first token, and what has been read so far.

    A token that a fact has *taken* belongs to no other reader's fact of the same sort. *Dropped* tokens were taken back
    by the speaker: no fact that stands is read from them. *Answers* are the tokens "no" that stand for themselves.
    """

    text: str
    tokens: list[Token]
    words: list[str]
    numbers: dict[int, Number] = field(default_factory=dict)
    taken: bytearray = field(default_factory=bytearray)
    dropped: bytearray = field(default_factory=bytearray)
    found: list[Found] = field(default_factory=list)
    answers: set[int] = field(default_factory=set)
    _starting: dict[int, list[Found]] = field(default_factory=dict)

    def word(self, index: int) -> str:
        """The token at `index`; "" before the first and behind the last."""
        return self.words[index] if 0 <= index < len(self.words) else ""

    def apart(self, index: int) -> bool:
        """Whether punctuation stands before the token at `index`, or the text ends there."""
        return index >= len(self.tokens) or self.tokens[index].nt_separated(self.tokens[index])

    def glued(self, index: int) -> bool:
        """Whether nothing stands between the token at `index` and the one before."""
        return 0 < index < len(self.tokens) and not self.tokens[index].gap

    def number_before(self, index: int) -> Number | None:
        """The number whose last token stands before `index`."""
        for first in range(index - 1, max(index - 9, -1), -1):
            number = self.numbers.get(first)
            if number is not None:
                return number if number.stop == index else None
        return None

    def free(self, first: int, stop: int) -> bool:
        """Whether no fact has taken a token of [first, stop)."""
        return not any(self.taken[first:stop])

    def add(self, kind: str, value: str, first: int, stop: int, *, take: bool = True) -> None:
        """Notes a fact read from tokens [first, stop)."""
        one = Found(kind, value, first, stop)
        self.found.append(one)
        self._starting.setdefault(first, []).append(one)
        if take:
            self.taken[first:stop] = b"\x01" * (stop - first)

    def between(self, first: int, stop: int) -> list[Found]:
        """The facts that lie in tokens [first, stop), in their order. Takes time in proportion to those tokens."""
        inside = (one for at in range(max(first, 0), stop) for one in self._starting.get(at, ()))
        return [one for one in inside if one.stop <= stop]

    def remove_last(self) -> Found:
        """Takes the fact back that was noted last, and returns it."""
        one = self.found.pop()
        self._starting[one.first].remove(one)
        return one

    def facts(self) -> tuple[Fact, ...]:
        """What was found, in the order of the text, with its place in characters."""
        tokens = self.tokens
        facts = [
            Fact(one.kind, one.value, tokens[one.first].start, tokens[one.stop - 1].stop)
            for one in self.found
        ]
        facts.sort(key=lambda fact: (fact.start, fact.stop, fact.kind, fact.value))
        return tuple(facts)


def cut(text: str) -> Sentence:
    """Returns a text's tokens; nothing is read from them yet. Characters beyond `LONGEST_TEXT` are left out."""
    looked_at = text[:LONGEST_TEXT]
    tokens: list[Token] = []
    end = 0
    for found in _TOKEN.finditer(looked_at):
        start, stop = found.span()
        value = found.group().lower()
        if "’" in value:
            value = value.replace("’", "'")
        if value.endswith("'s"):
            value, stop = value[:-2], stop - 2
        elif "." in value and value[0] in "ap":
            value = value[0] + "m"
        tokens.append(Token(value, start, stop, looked_at[end:start]))
        end = found.end()
    words = [token.value for token in tokens]
    return Sentence(looked_at, tokens, words, taken=bytearray(len(tokens)), dropped=bytearray(len(tokens)))
