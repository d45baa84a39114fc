"""Cuts a reply into pieces to be spoken while it is still being written, and makes written text speakable."""

import re
import unicodedata
from dataclasses import dataclass

from modalities.text.boundaries import (
    CLAUSE_MARKS,
    CLAUSE_WORDS,
    CLOSERS,
    TERMINATORS,
    WIDE_TERMINATORS,
    ends_sentence,
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """Characters [start, stop) of the whole reply; `text` is exactly those, without white space at its ends."""

    text: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Cuts:
    """When a piece may leave before its sentence has ended.

    The first piece of a reply is cut at a clause mark once `first_words` words have come without an end: the first
    sound must not wait for a long sentence. A sentence that has no such mark by then is cut before the next word that
    begins a clause ("and", "which"), as a speaker would breathe there. Any piece is cut once it has
    `longest_characters`.
    """

    first_words: int = 8
    least_clause_words: int = 3
    longest_characters: int = 300


class SentenceStream:
    """Finds sentences in text that arrives in pieces; the result does not depend on how it is cut into pieces.

    A sentence is given out when the first letter of the next one has arrived, or at a line's end. What holds no letter
    and no digit is not given out at all.
    """

    __slots__ = ("_base", "_clause_stop", "_cuts", "_given", "_rest", "_scanned", "_words")

    def __init__(self, cuts: Cuts | None = None) -> None:
        self._cuts = cuts or Cuts()
        self._rest = ""
        self._base = 0
        self._given = 0
        self._begin_piece()

    def feed(self, text: str) -> tuple[Sentence, ...]:
        """Takes more of the reply; returns the pieces that are complete now."""
        self._rest += text
        found: list[Sentence] = []
        while self._scanned < len(self._rest):
            cut = self._step(self._scanned)
            if cut is None:
                self._scanned += 1
            else:
                self._give(cut, found)
        return tuple(found)

    def close(self) -> tuple[Sentence, ...]:
        """The reply is complete: returns what is left."""
        found: list[Sentence] = []
        self._give(len(self._rest), found)
        return tuple(found)

    def _step(self, at: int) -> int | None:
        """Looks at one character of the running piece; returns the length of the piece if it is known now."""
        character = self._rest[at]
        if character == "\n":
            return at + 1
        if at == 0:
            return None
        previous = self._rest[at - 1]
        if character.isspace():
            return None if previous.isspace() else self._word_ended(at, previous)
        if previous.isspace() and ends_sentence(self._rest[:at].rstrip(), character):
            return at
        if previous in WIDE_TERMINATORS and character not in WIDE_TERMINATORS and character not in CLOSERS:
            return at
        return at if at >= 2 * self._cuts.longest_characters else None

    def _word_ended(self, at: int, last: str) -> int | None:
        """Decides whether the piece is long enough to be cut early, now that a word has ended before `at`."""
        self._words += 1
        if last in CLAUSE_MARKS and self._words >= self._cuts.least_clause_words:
            self._clause_stop = at
        if self._given == 0 and self._words >= self._cuts.first_words and last not in TERMINATORS:
            return self._clause_stop or self._clause_start(at)
        if at >= self._cuts.longest_characters:
            return self._clause_stop or at
        return None

    def _clause_start(self, at: int) -> int | None:
        """Returns where the word before `at` begins, if a clause begins with it and the piece is long enough."""
        start = self._rest.rindex(self._rest[:at].split()[-1], 0, at)
        begins = self._words > self._cuts.first_words and self._rest[start:at] in CLAUSE_WORDS
        return start if begins else None

    def _give(self, length: int, found: list[Sentence]) -> None:
        """Ends the running piece after `length` characters and begins the next one."""
        piece = self._rest[:length]
        text = piece.strip()
        if any(character.isalnum() for character in text):
            start = self._base + len(piece) - len(piece.lstrip())
            found.append(Sentence(text, start, start + len(text)))
            self._given += 1
        self._rest = self._rest[length:]
        self._base += length
        self._begin_piece()

    def _begin_piece(self) -> None:
        self._scanned = 0
        self._words = 0
        self._clause_stop = 0


_REWRITES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"```\w*"), " "),
    (re.compile(r"!?\[([^\]]*)\]\([^)\s]*(?:\s+\"[^\"]*\")?\)"), r"\1"),
    (re.compile(r"<?https?://(?:www\.)?([^\s/<>\"')?#]+)[^\s<>\"')]*>?"), r"\1"),
    (re.compile(r"</?[a-zA-Z][^<>]*>"), " "),
    (re.compile(r"^\s*(?:[-*_=]\s*){3,}$", re.MULTILINE), " "),
    (re.compile(r"^\s*(?:#{1,6}\s+|>\s*|[-*+•]\s+)+", re.MULTILINE), ""),
    (re.compile(r"\s*\|\s*"), ", "),
    (re.compile(r"[*`~]+"), ""),
    (re.compile(r"(?<!\w)_+|_+(?!\w)"), ""),
    (re.compile(r"_"), " "),
)
_UNSPOKEN_CATEGORIES = frozenset({"So", "Sk", "Cs", "Co", "Cn", "Cf", "Cc"})
_SPOKEN_SYMBOLS = frozenset("°©®™")


def speakable(text: str) -> str:
    """Returns what a voice should say of a written text: no markup, links by their text, addresses by their host, no
    pictures. "" where nothing is left to say."""
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    spoken = "".join(character for character in text if _is_spoken(character))
    line = " ".join(spoken.split()).strip(" ,")
    return line if any(character.isalnum() for character in line) else ""


def _is_spoken(character: str) -> bool:
    if character.isspace() or character in _SPOKEN_SYMBOLS:
        return True
    return unicodedata.category(character) not in _UNSPOKEN_CATEGORIES
