"""Reads WordNet's database files (formats: wndb(5WN), senseidx(5WN), cntlist(5WN))."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

Key = tuple[str, str]
"""A part of speech (n, v, a, r) and an offset in its data file."""

_FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
_VOWELS = frozenset("aeiou")


@dataclass(slots=True)
class Synset:
    """Words of one meaning. `antonyms`: (a word of it, the other synset, the other word)."""

    kind: str
    words: list[str]
    antonyms: list[tuple[str, Key, str]] = field(default_factory=list)
    similar: list[Key] = field(default_factory=list)
    hypernyms: list[Key] = field(default_factory=list)
    hyponyms: list[Key] = field(default_factory=list)


class WordNet:
    """All synsets, and of each word its senses by frequency."""

    def __init__(
        self, licence: str, synsets: dict[Key, Synset], senses: dict[Key, list[tuple[Key, int]]]
    ) -> None:
        self.licence = licence
        self.synsets = synsets
        self.irregular: dict[str, str] = {}
        self._senses = senses

    @classmethod
    def read(cls, folder: Path) -> "WordNet":
        """Raises FileNotFoundError where `folder` holds no WordNet."""
        synsets: dict[Key, Synset] = {}
        pointers: list[tuple[Key, list[str]]] = []
        licence: list[str] = []
        for kind, name in _FILES.items():
            for line in (folder / f"data.{name}").read_text(encoding="latin-1").splitlines():
                if line.startswith("  "):
                    if kind == "n":
                        licence.append(line.strip().partition(" ")[2].rstrip())
                    continue
                fields = line.partition(" | ")[0].split()
                stop = 4 + 2 * int(fields[3], 16)
                words = [word.partition("(")[0].lower() for word in fields[4:stop:2]]
                synsets[kind, fields[0]] = Synset(kind, words)
                pointers.append(((kind, fields[0]), fields[stop + 1 : stop + 1 + 4 * int(fields[stop])]))
        for key, fields in pointers:
            _link(synsets, key, fields)
        wordnet = cls("\n".join(licence).strip() + "\n", synsets, _senses(folder))
        for kind, name in _FILES.items():
            for line in (folder / f"{name}.exc").read_text(encoding="latin-1").splitlines():
                form, lemma = line.split()[:2]
                if plain(form) and plain(lemma) and lemma in wordnet.words(kind):
                    wordnet.irregular.setdefault(form, lemma)
        return wordnet

    @cache  # noqa: B019 - one WordNet lives as long as the script
    def words(self, kind: str) -> frozenset[str]:
        """Every word of a part of speech."""
        return frozenset(word for pos, word in self._senses if pos == kind)

    def senses(self, word: str, kind: str) -> list[tuple[Key, int]]:
        """A word's senses, the most frequent first, each with how often it was tagged in WordNet's texts."""
        return self._senses.get((kind, word), [])

    def rank(self, word: str, synset: Synset) -> int:
        """Which of the word's senses in that part of speech the synset is, from 0."""
        for rank, (key, _) in enumerate(self.senses(word, synset.kind)):
            if self.synsets[key] is synset:
                return rank
        return len(self.synsets)


def plain(word: str) -> bool:
    """Whether a word is one word of plain letters."""
    return word.isascii() and word.isalpha()


def inflected(word: str, wordnet: WordNet) -> Iterator[str]:
    """Yields the inflected forms of a word, irregular ones too."""
    yield from _irregular_forms(wordnet).get(word, ())
    double = (
        len(word) > 2
        and word[-1] not in _VOWELS | set("wxy")
        and word[-2] in _VOWELS
        and word[-3] not in _VOWELS
    )
    stems = [word + word[-1], word] if double and len(word) < 6 else [word]
    if word in wordnet.words("v") or word in wordnet.words("n"):
        yield _plural(word)
    for stem in stems:
        if word in wordnet.words("v"):
            yield from (_with(stem, "ed"), _with(stem, "ing"))
        if word in wordnet.words("a") and len(word) < 8:
            yield from (_with(stem, "er"), _with(stem, "est"))


def _plural(word: str) -> str:
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2:-1] not in _VOWELS:
        return word[:-1] + "ies"
    return word + "s"


def _with(stem: str, ending: str) -> str:
    if stem.endswith("e") and not stem.endswith("ee"):
        return stem[:-1] + ending
    if stem.endswith("y") and stem[-2:-1] not in _VOWELS and ending != "ing":
        return stem[:-1] + "i" + ending
    return stem + ending


@cache
def _irregular_forms(wordnet: WordNet) -> dict[str, list[str]]:
    forms: dict[str, list[str]] = defaultdict(list)
    for form, lemma in wordnet.irregular.items():
        forms[lemma].append(form)
    return forms


def _link(synsets: dict[Key, Synset], key: Key, fields: list[str]) -> None:
    synset = synsets[key]
    for symbol, offset, kind, places in zip(*[iter(fields)] * 4, strict=True):
        target = ("a" if kind == "s" else kind, offset)
        if symbol == "!":
            word, other = int(places[:2], 16), int(places[2:], 16)
            synset.antonyms.append((synset.words[word - 1], target, synsets[target].words[other - 1]))
        elif symbol == "&":
            synset.similar.append(target)
        elif symbol == "@":
            synset.hypernyms.append(target)
        elif symbol == "~":
            synset.hyponyms.append(target)


def _senses(folder: Path) -> dict[Key, list[tuple[Key, int]]]:
    counts: dict[tuple[str, str, int], int] = {}
    numbers = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
    for line in (folder / "cntlist.rev").read_text(encoding="latin-1").splitlines():
        sense, number, count = line.split()
        word, _, rest = sense.partition("%")
        place = (word, numbers[rest[0]], int(number))
        counts[place] = max(counts.get(place, 0), int(count))
    senses: dict[Key, list[tuple[Key, int]]] = {}
    for kind, name in _FILES.items():
        for line in (folder / f"index.{name}").read_text(encoding="latin-1").splitlines():
            if line.startswith("  "):
                continue
            fields = line.split()
            offsets = fields[-int(fields[2]) :]
            senses[kind, fields[0]] = [
                ((kind, offset), counts.get((fields[0], kind, number), 0))
                for number, offset in enumerate(offsets, 1)
            ]
    return senses
