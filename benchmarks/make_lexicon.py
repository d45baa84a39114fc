"""Makes the word tables that ship with Chorale out of WordNet 3.0 (on Debian the package wordnet-base).

    python -m benchmarks.make_lexicon [--wordnet /usr/share/wordnet]

writes `modalities/text/facts/opposites.tsv.gz` (which words stand on opposite sides of one axis) and
`consistency/related.tsv.gz` (which words share a synset or are one step of "is a kind of" apart), and the licence of
WordNet beside each. The same WordNet gives the same bytes.
"""

import argparse
import gzip
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.opposites import COMMANDS, REVERSIBLE
from benchmarks.wordnet import Synset, WordNet, inflected, plain
from modalities.text.facts.sentence import vocabulary

ROOT = Path(__file__).resolve().parent.parent
OPPOSITES = ROOT / "modalities" / "text" / "facts" / "opposites.tsv.gz"
RELATED = ROOT / "consistency" / "related.tsv.gz"
LICENCE = "WORDNET-LICENSE"

DIRECT_SENSES = 12
"""A word's senses, the most frequent first, in which its own antonyms count."""
NEAR_SENSES = 3
"""... in which antonyms of its synonyms, satellites and troponyms count."""
LONGEST_AXES = 8
"""Axes of one word; those by its own antonyms come first."""
RELATED_SENSES = 4
RELATED_SHARE = 0.05
"""Senses that count as related: so many at most, and none that makes up less of a word's tagged uses."""
LEAST_SENSES = 2
"""... but so many at least."""

NEVER_OPPOSITE = vocabulary(
    "a an the this that these those i you he she it we they me us him her them my your his its our their be is are am "
    "was were been being do does did done have has had having can could will would shall should may might must need "
    "not no none nothing never at as by for from of to with and or but so if then than who what when where why how "
    "which one two three four five six seven eight nine ten second third fourth fifth minute hour day days night "
    "nights morning evening afternoon noon midnight today tomorrow week weekend month year march mar sun sat mon in on "
    "off up down out here there ever even just now ready kind pretty much many few very well some any all per going "
    "please pleased kindly thanks thank ok okay hello hi hey oh ah uh um"
)
"""Words of grammar, and of facts that other readers find; and words said in too many senses to be opposed."""

_PREFIXES = {"un": "va", "non": "a"}
"""Prefixes that turn verbs or adjectives into their opposite nearly always. What dis-, in- and de- do ("display",
"delight") only WordNet's own antonyms tell."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--wordnet", type=Path, default=Path("/usr/share/wordnet"), help="the folder of data.* and index.*"
    )
    wordnet = WordNet.read(parser.parse_args().wordnet)
    for path, lines in ((OPPOSITES, opposites(wordnet)), (RELATED, related(wordnet))):
        body = "\n".join(lines) + "\n"
        path.write_bytes(gzip.compress(body.encode(), compresslevel=9, mtime=0))
        path.with_name(LICENCE).write_text(wordnet.licence, encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: {body.count(chr(10))} lines, {path.stat().st_size / 1e3:.0f} kB")


def opposites(wordnet: WordNet, listed: bool = True) -> list[str]:
    """Returns lines ``form<tab>axis:side axis:side``, sorted; an axis is named by the two words of its ends. Without
    `listed` the dictionary alone speaks."""
    sides: dict[str, dict[str, str]] = defaultdict(dict)
    forms: dict[str, list[str]] = defaultdict(list)
    for word, axis, side in [
        *(_listed() if listed else ()),
        *_direct(wordnet),
        *_by_prefix(wordnet),
        *_near(wordnet),
    ]:
        axes = sides[word]
        if word not in NEVER_OPPOSITE and len(axes) < LONGEST_AXES:
            axes.setdefault(axis, side)
    for word in sorted(sides):
        for form in inflected(word, wordnet):
            if form not in NEVER_OPPOSITE:
                forms[form].append(word)
    lines: dict[str, str] = {}
    for form in sorted(sides.keys() | forms.keys()):
        axes = dict(sides.get(form, {}))
        for word in forms.get(form, ()):
            for axis, side in sides[word].items():
                if len(axes) < LONGEST_AXES:
                    axes.setdefault(axis, side)
        if axes:
            lines[form] = " ".join(f"{axis}:{side}" for axis, side in axes.items())
    return [f"{form}\t{lines[form]}" for form in sorted(lines)]


def _axis(one: str, other: str) -> str:
    return "/".join(sorted((one, other)))


def _listed() -> Iterator[tuple[str, str, str]]:
    for ones, others in COMMANDS:
        left, right = ones.split(), others.split()
        axis = _axis(left[0], right[0])
        for word in left:
            yield word, axis, left[0]
        for word in right:
            yield word, axis, right[0]
    for word in REVERSIBLE.split():
        axis = _axis(word, f"un{word}")
        yield word, axis, word
        yield f"un{word}", axis, f"un{word}"


def _pairs(wordnet: WordNet) -> Iterator[tuple[Synset, str, Synset, str]]:
    """Every antonym relation between two single words, each way."""
    for synset in wordnet.synsets.values():
        for word, target, other in synset.antonyms:
            if plain(word) and plain(other):
                yield synset, word, wordnet.synsets[target], other


def _direct(wordnet: WordNet) -> Iterator[tuple[str, str, str]]:
    found = [
        (wordnet.rank(word, synset), word, _axis(word, other))
        for synset, word, _, other in _pairs(wordnet)
        if wordnet.rank(word, synset) < DIRECT_SENSES
    ]
    for _, word, axis in sorted(found):
        yield word, axis, word


def _by_prefix(wordnet: WordNet) -> Iterator[tuple[str, str, str]]:
    """Words and their negations by a prefix (lock, unlock) and by an ending (careful, careless)."""
    for word in sorted(wordnet.words("v") | wordnet.words("a")):
        for prefix, kinds in _PREFIXES.items():
            negated = prefix + word
            if len(word) > 2 and any({word, negated} <= wordnet.words(kind) for kind in kinds):
                yield word, _axis(word, negated), word
                yield negated, _axis(word, negated), negated
        if word.endswith("ful") and (negated := word[:-3] + "less") in wordnet.words("a"):
            yield word, _axis(word, negated), word
            yield negated, _axis(word, negated), negated


def _near(wordnet: WordNet) -> Iterator[tuple[str, str, str]]:
    """Synonyms, satellites and troponyms of words that have antonyms lie on the same axis, on the same side."""
    found = []
    for synset, word, _, other in _pairs(wordnet):
        if wordnet.rank(word, synset) >= DIRECT_SENSES:
            continue
        near = [synset, *(wordnet.synsets[key] for key in synset.similar)]
        if synset.kind == "v":
            near += [wordnet.synsets[key] for key in synset.hyponyms]
        for one in near:
            for name in one.words:
                rank = wordnet.rank(name, one)
                if plain(name) and name != word and rank < NEAR_SENSES:
                    found.append((rank, name, _axis(word, other), word))
    for _, name, axis, side in sorted(found):
        yield name, axis, side


def related(wordnet: WordNet) -> list[str]:
    """Returns lines ``lemma<tab>synset synset``, then after an empty line ``synset<tab>what it is a kind of``, then
    after another ``irregular form<tab>lemma``. Synsets are numbered in base 36 by how often they are used."""
    uses: dict[tuple[str, str], int] = defaultdict(int)
    kept: dict[str, list[tuple[str, str]]] = {}
    for word in sorted({name for kind in "nvar" for name in wordnet.words(kind)}):
        if plain(word) and len(word) > 1:
            kept[word] = list(_senses(wordnet, word))
            for key in kept[word]:
                uses[key] += 1
    links = {key: [one for one in wordnet.synsets[key].hypernyms if one in uses] for key in uses}
    # What nothing else shares or is a kind of can relate no two words.
    shared = {key for key, count in uses.items() if count > 1}
    shared |= {key for key in uses if links[key]} | {one for many in links.values() for one in many}
    ids = {key: _base36(index) for index, key in enumerate(sorted(shared, key=lambda key: (-uses[key], key)))}
    words = [
        f"{word}\t{' '.join(ids[key] for key in keys if key in ids)}"
        for word, keys in kept.items()
        if any(key in ids for key in keys)
    ]
    kinds = [f"{ids[key]}\t{' '.join(ids[one] for one in links[key])}" for key in ids if links[key]]
    forms = [f"{form}\t{lemma}" for form, lemma in sorted(wordnet.irregular.items())]
    return [*words, "", *kinds, "", *forms]


def _senses(wordnet: WordNet, word: str) -> Iterable[tuple[str, str]]:
    for kind in "nvar":
        senses = wordnet.senses(word, kind)
        total = sum(count for _, count in senses) or 1
        for rank, (key, count) in enumerate(senses[:RELATED_SENSES]):
            if rank < LEAST_SENSES or count / total >= RELATED_SHARE:
                yield key


def _base36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    text = ""
    while True:
        number, last = divmod(number, 36)
        text = digits[last] + text
        if not number:
            return text


if __name__ == "__main__":
    main()
