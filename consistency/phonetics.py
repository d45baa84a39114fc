"""How alike two spellings sound, by letter-to-sound rules for English; no dictionary.

The rules are coarse on purpose: recognisers confuse what these confuse (vowels, voiced and unvoiced consonants).
"""

import re
from functools import lru_cache

LONGEST = 28
"""Sounds of a span that are compared: distances cost the product of both lengths."""

_RULES: tuple[tuple[str, str], ...] = (
    ("tious", "Sus"), ("cious", "Sus"), ("tion", "Sun"), ("sion", "Sun"), ("ture", "Cur"), ("eigh", "e"),
    ("augh", "of"), ("ough", "o"), ("tch", "C"), ("sch", "sk"),
    ("igh", "i"), ("dge", "J"), ("ck", "k"), ("ch", "C"), ("sh", "S"),
    ("th", "T"), ("ph", "f"), ("wh", "w"), ("gh", ""), ("qu", "kw"), ("ng", "N"), ("kn", "n"), ("wr", "r"),
    ("mb", "m"), ("ps", "ps"), ("ee", "i"), ("ea", "i"), ("ie", "i"), ("ei", "e"), ("ey", "e"), ("ai", "e"),
    ("ay", "e"), ("oo", "u"), ("ou", "o"), ("ow", "o"), ("oa", "o"), ("oi", "oi"), ("oy", "oi"), ("au", "o"),
    ("aw", "o"), ("ew", "u"), ("ue", "u"), ("ui", "u"), ("eu", "u"), ("x", "ks"), ("y", "i"), ("q", "k"), ("h", "h"),
)  # fmt: skip
"""Spelling to sounds, tried in this order; other letters stand for themselves. S is sh, C ch, J dge, T th, N ng."""

_VOWELS = "aeiou"
_SOUNDS = "abcdefghijklmnopqrstuvwxyzCJNST"
_ALIKE = {
    pair: cost
    for pairs, cost in (
        ("bp dt gk vf zs JC SC JS", 0.35),
        ("sS zJ sT fT dT vT mn nN mN", 0.5),
        ("lr lw rw bv kC gJ tC td tT hw", 0.6),
    )
    for pair in pairs.split()
}


def _swapped(left: str, right: str) -> float:
    if left == right:
        return 0.0
    if left in _VOWELS and right in _VOWELS:
        return 0.25
    return _ALIKE.get(left + right, _ALIKE.get(right + left, 1.0))


_ALONE = {sound: 0.5 if sound in "aeiouh" else 1.0 for sound in _SOUNDS}
"""What a sound costs that the other side lacks."""
_SWAP = {left: {right: _swapped(left, right) for right in _SOUNDS} for left in _SOUNDS}
"""What it costs that one sound stands in another's place."""


@lru_cache(maxsize=8_192)
def sounds(spelling: str) -> str:
    """Returns the sounds of a word or span, one character each; digits and signs are left out."""
    return "".join(_word(word) for word in spelling.lower().split())


@lru_cache(maxsize=16_384)
def distance(one: str, other: str) -> float:
    """Returns how differently two spellings sound: 0 the same, 1 nothing in common. Symmetric."""
    left, right = sounds(one)[:LONGEST], sounds(other)[:LONGEST]
    return _between(left, right) if left <= right else _between(right, left)


def _between(one: str, other: str) -> float:
    if one == other:
        return 0.0
    alone = [_ALONE[sound] for sound in other]
    row = [0.0]
    for cost in alone:
        row.append(row[-1] + cost)
    most = row[-1]
    for left in one:
        lost, swap = _ALONE[left], _SWAP[left]
        diagonal = row[0]
        last = row[0] = diagonal + lost
        for index, right in enumerate(other, 1):
            best = diagonal + swap[right]
            diagonal = row[index]
            if diagonal + lost < best:
                best = diagonal + lost
            last += alone[index - 1]
            if last < best:
                best = last
            row[index] = last = best
    return min(1.0, row[-1] / max(most, sum(_ALONE[sound] for sound in one)))


_PATTERN = re.compile("|".join(spelling for spelling, _ in _RULES) + "|.")
_LETTERS = dict(_RULES) | {"c": "k", "j": "J"}
_DOUBLED = re.compile(r"(.)\1+")


def _word(word: str) -> str:
    spelling = "".join(letter for letter in word if "a" <= letter <= "z")
    return _DOUBLED.sub(r"\1", _PATTERN.sub(lambda found: _letter(found, len(spelling)), spelling))


def _letter(found: re.Match[str], length: int) -> str:
    text = found.group()
    following = found.string[found.end() : found.end() + 1]
    if text == "c" and following in ("e", "i", "y"):
        return "s"
    if text == "g" and following in ("e", "i", "y") and found.start():
        return "J"
    if text == "e" and found.end() == length and length > 2:
        return ""
    return _LETTERS.get(text, text)
