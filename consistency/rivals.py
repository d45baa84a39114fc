"""What may have been said instead, by the values that a domain lists: "Newark" for a recognised "New York". Pure.

A value is put in the place of the words that sound most like it; numbers are exchanged for those that they are mistaken
for. Whether any of that was said, only the sound can tell.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from consistency.observation import Observation
from consistency.phonetics import distance

MOST = 6
"""Texts for one utterance: each costs a forced score."""

MOST_VALUES = 64
"""Listed values of one slot that are looked at."""

LONGEST = 200
"""Characters of a text that are looked at: nobody fills a slot in more."""

_NEAR = 0.5
_WORD = re.compile(r"[^\W_]+(?:['.][^\W_]+)*")
_TEENS = {"13": "30", "14": "40", "15": "50", "16": "60", "17": "70", "18": "80", "19": "90"}
_SPOKEN = {
    "thirteen": "thirty", "fourteen": "forty", "fifteen": "fifty", "sixteen": "sixty", "seventeen": "seventy",
    "eighteen": "eighty", "nineteen": "ninety",
}  # fmt: skip
_EXCHANGED = {x: y for one, other in (_TEENS | _SPOKEN).items() for x, y in ((one, other), (other, one))}
_SHARE = 0.1
"""How far a number is from the one that it is mistaken for: nearer than any two words."""


class Rival(NamedTuple):
    """A text with `value` in the place of `replaced`. `slot` is empty for a number that is exchanged, `present` tells
    that the words which it replaces are a value themselves. `far`: how differently both sound, in [0, 1]."""

    text: str
    slot: str
    value: str
    replaced: str
    present: bool
    far: float


def rivals(heard: Observation, listed: Mapping[str, Sequence[str]], most: int = MOST) -> tuple[Rival, ...]:
    """Returns what else may have been said, the nearest by sound first, of each text one. `listed`: the values of each
    slot that the utterance may fill."""
    values = tuple((slot, tuple(listed[slot])[:MOST_VALUES]) for slot in sorted(listed))
    return _rivals(heard.text, values)[:most]


@lru_cache(maxsize=256)
def _rivals(text: str, listed: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[Rival, ...]:
    """Remembered, since a unit is judged again whenever something comes in."""
    words = [(hit.start(), hit.end(), hit.group().casefold()) for hit in _WORD.finditer(text[:LONGEST])]
    known = {value.casefold() for _, values in listed for value in values}
    found: dict[str, Rival] = {}
    for start, stop, word in words:
        other = _EXCHANGED.get(word)
        if other is not None:
            changed = f"{text[:start]}{other}{text[stop:]}"
            found.setdefault(changed, Rival(changed, "", other, word, True, _SHARE))
    for slot, values in listed:
        for value in values:
            one = _nearest(text, words, slot, value, known)
            if one is not None and (one.text not in found or one.far < found[one.text].far):
                found[one.text] = one
    return tuple(sorted(found.values(), key=lambda one: (one.far, one.text)))


def _nearest(
    text: str, words: Sequence[tuple[int, int, str]], slot: str, value: str, known: set[str]
) -> Rival | None:
    """Returns the text with a value in place of the words that sound most like it; None where none do, or where it
    stands in the text."""
    wanted = value.casefold().split()
    if not wanted or value.casefold() in text.casefold():
        return None
    best: tuple[float, int, int] | None = None
    for count in range(max(1, len(wanted) - 1), len(wanted) + 2):
        for at in range(len(words) - count + 1):
            span = " ".join(word for _, _, word in words[at : at + count])
            if 2 * abs(len(span) - len(value)) > max(len(span), len(value)):
                continue  # so much longer words cannot be near
            far = distance(span, value)
            if far <= _NEAR and (best is None or far < best[0]):
                best = far, at, at + count
    if best is None:
        return None
    far, first, last = best
    start, stop = words[first][0], words[last - 1][1]
    changed = f"{text[:start]}{value}{text[stop:]}"
    replaced = text[start:stop]
    present = replaced.casefold() in known
    return Rival(changed, slot, value, replaced, present, round(far, 4)) if changed != text else None
