"""The question that is put where only the user can tell, and what an answer to it settles. Pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher

from consistency.facts import conflicts
from consistency.observation import Observation
from consistency.policy import later
from consistency.reading import Reader
from consistency.slots import apart

_MOST_WORDS = 6
_MARKS = " .,!?;:"
_FIRST = frozenset({"former", "first"})
_SECOND = frozenset({"latter", "second"})


@dataclass(frozen=True, slots=True)
class Question:
    """Two observations that contradict each other, the words in which they differ, and how the user is asked."""

    a: Observation
    b: Observation
    readings: tuple[str, str]
    text: str

    @property
    def of_one_sound(self) -> bool:
        """Whether `b` is what else may have been heard in the sound of `a`."""
        return self.b.id.startswith(f"{self.a.id}~")

    @property
    def unanswered(self) -> Observation:
        """What stands where the answer names neither: what was recognised, or the later word."""
        return self.a if self.of_one_sound else later(self.a, self.b)

    @property
    def names_a_part(self) -> bool:
        """Whether the readings are a part of what was said, so that both may agree in the rest."""
        return self.readings != tuple(one.text.strip(_MARKS) for one in (self.a, self.b))


def question(a: Observation, b: Observation, read: Reader | None = None) -> Question:
    """Returns the question that names both readings: ``fifteen or fifty?`` `read` tells values that are the same in
    other words: nobody is asked whether he means 7:40 or 7.40."""
    readings = differing(a, b, read)
    first, second = (one.strip(_MARKS) for one in readings)
    text = f"Sorry, {first} or {second}?"
    return Question(a, b, (first, second), text)


def differing(a: Observation, b: Observation, read: Reader | None = None) -> tuple[str, str]:
    """Returns the words in which two texts differ: of the facts that contradict each other where there are some, else
    where the texts part; whole texts where that would be most of them."""
    for one, other in conflicts(a.facts, b.facts):
        if one is not None and other is not None and min(one.start, other.start) >= 0:
            left, right = a.text[one.start : one.stop], b.text[other.start : other.stop]
            if left.strip() and right.strip() and left.lower() != right.lower():
                return left, right
    for one_token, other_token in apart(a, b, read):
        return one_token.value, other_token.value
    left_words, right_words = _words(a.text), _words(b.text)
    parts = [
        (" ".join(left_words[i1:i2]), " ".join(right_words[j1:j2]))
        for what, i1, i2, j1, j2 in SequenceMatcher(None, left_words, right_words, False).get_opcodes()
        if what == "replace" and max(i2 - i1, j2 - j1) <= _MOST_WORDS
    ]
    return parts[0] if len(parts) == 1 else (a.text, b.text)


def spliced(heard: Observation, other: Observation) -> str | None:
    """Returns what was heard with the facts in which `other` contradicts it replaced by the other's words; None where
    nothing can be replaced. A typed correction of one word is scored as a whole sentence so."""
    text = heard.text
    places = [
        (one.start, one.stop, other.text[two.start : two.stop])
        for one, two in conflicts(heard.facts, other.facts)
        if one is not None and two is not None and one.start >= 0 and two.start >= 0
    ]
    for start, stop, words in sorted(places, reverse=True):
        text = f"{text[:start]}{words.strip()}{text[stop:]}"
    return text if text != heard.text and text != other.text else None


def chosen(
    asked: Question, answer: Observation, distance: Callable[[Observation, Observation], float]
) -> int | None:
    """Returns which reading an answer names: 0, 1, or None where it names neither, or both."""
    words = set(_words(answer.text.lower()))
    if words & _FIRST and not words & _SECOND:
        return 0
    if words & _SECOND and not words & _FIRST:
        return 1
    named = [
        _names(answer, reading, one) for reading, one in zip(asked.readings, (asked.a, asked.b), strict=True)
    ]
    if named[0] != named[1]:
        return 0 if named[0] else 1
    numbers = [_numbers(one) for one in (asked.a, asked.b)]
    said = [bool(_numbers(answer) & (numbers[which] - numbers[1 - which])) for which in (0, 1)]
    if said[0] != said[1]:
        return 0 if said[0] else 1
    near = [distance(one, answer) for one in (asked.a, asked.b)]
    if min(near) <= 0.5 < max(near):
        return near.index(min(near))
    return None


def _names(answer: Observation, reading: str, said: Observation) -> bool:
    """Whether an answer has the words of a reading, or a fact that stands in these words."""
    words, wanted = _words(answer.text.lower()), _words(reading.lower())
    if any(words[at : at + len(wanted)] == wanted for at in range(len(words) - len(wanted) + 1)):
        return True
    facts = {(one.kind, one.value) for one in answer.facts}
    at = said.text.find(reading)
    inside = [one for one in said.facts if at >= 0 and at <= one.start and one.stop <= at + len(reading)]
    return any((one.kind, one.value) in facts for one in inside)


def _numbers(said: Observation) -> set[str]:
    return set(re.findall(r"\d+(?:[.:]\d+)?", said.normal or said.text))


def _words(text: str) -> list[str]:
    return [word for one in text.split() if (word := one.strip(".,!?;:\"'"))]
