"""How alike two spellings sound, by letter-to-sound rules for English; no dictionary.

The rules are coarse on purpose: recognisers confuse what these confuse (vowels, voiced and unvoiced consonants).
"""

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

_VOWELS = frozenset("aeiou")
_ALIKE = {
    frozenset(pair): cost
    for pairs, cost in (
        ("bp dt gk vf zs JC SC JS", 0.35),
        ("sS zJ sT fT dT vT mn nN mN", 0.5),
        ("lr lw rw bv kC gJ tC td tT hw", 0.6),
    )
    for pair in pairs.split()
}


@lru_cache(maxsize=8_192)
def sounds(spelling: str) -> str:
    """Returns the sounds of a word or span, one character each; digits and signs are left out."""
    return "".join(_word(word) for word in spelling.lower().split())


def distance(one: str, other: str) -> float:
    """Returns how differently two spellings sound: 0 the same, 1 nothing in common. Symmetric."""
    return _between(*sorted((sounds(one)[:LONGEST], sounds(other)[:LONGEST])))


@lru_cache(maxsize=8_192)
def _between(one: str, other: str) -> float:
    if one == other:
        return 0.0
    row = [0.0]
    for sound in other:
        row.append(row[-1] + _alone(sound))
    for left in one:
        diagonal = row[0]
        row[0] += _alone(left)
        for index, right in enumerate(other, 1):
            best = min(
                diagonal + _swapped(left, right), row[index] + _alone(left), row[index - 1] + _alone(right)
            )
            diagonal, row[index] = row[index], best
    most = max(sum(map(_alone, one)), sum(map(_alone, other)))
    return min(1.0, row[-1] / most)


def _alone(sound: str) -> float:
    return 0.5 if sound in _VOWELS or sound == "h" else 1.0


def _swapped(left: str, right: str) -> float:
    if left == right:
        return 0.0
    if left in _VOWELS and right in _VOWELS:
        return 0.25
    return _ALIKE.get(frozenset((left, right)), 1.0)


def _word(word: str) -> str:
    letters = [letter for letter in word if letter.isalpha()]
    spelling = "".join(letters)
    found: list[str] = []
    index = 0
    while index < len(spelling):
        for pattern, sound in _RULES:
            if spelling.startswith(pattern, index):
                found.append(sound)
                index += len(pattern)
                break
        else:
            found.append(_letter(spelling, index))
            index += 1
    said = "".join(found)
    # Doubled sounds are said once.
    return "".join(sound for at, sound in enumerate(said) if at == 0 or sound != said[at - 1])


def _letter(spelling: str, index: int) -> str:
    letter, following = spelling[index], spelling[index + 1 : index + 2]
    if letter == "c":
        return "s" if following in {"e", "i", "y"} else "k"
    if letter == "g":
        return "J" if following in {"e", "i", "y"} and index else "g"
    if letter == "j":
        return "J"
    if letter == "e" and index == len(spelling) - 1 and index > 1:
        return ""
    return letter
