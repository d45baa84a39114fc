"""What sentence vectors do not see of a text: which way its words point, what is denied, what was taken back. Pure.

"Lights on" and "lights off" are neighbours among vectors; so are a wish and its opposite.
"""

import re
from dataclasses import dataclass

from modalities.text.facts import facts_of
from modalities.text.facts.standing import as_corrected

OPPOSED, SAME_SIDE, DENIED = 0.1, 0.05, 0.1
"""What a text loses in likeness to an example that points the other way on an axis of opposites; what it gains where
both point the same way; what it loses where one of them is denied and the other is not."""

_MANNERS = "nope|sorry|wait|actually|oops|well|please|hey|hi|hello|okay|ok|um|uh|oh"
_ANSWERS = (
    rf"no(?=\s*(?:[,.!?;:]|$)|\s+(?:no|not|{_MANNERS}|i|it|we|you|that|this|the|on|at|in|for|to|turn|switch|put)\b|"
    r"\s+\w+\s+(?:the|an?|my|our|it|that|them|me|us|off|up|some|all)\b)"
)
"""A "no" that stands for itself, and none that denies what follows it ("no lights in the hall")."""
_OPENING = re.compile(rf"^(?:(?:{_ANSWERS}|{_MANNERS})\b(?![-'])[\s,.!;:]*)+", re.IGNORECASE)
_FORBIDS = re.compile(
    r"^(?:i\s+(?:do\s+not|don['’]?t)\s+(?:want|need)|(?:can|could|would|will)\s+you\s+(?:please\s+)?not|"
    r"do\s+not|don['’]?t|never|no)\s+(?!mind\b)[^,;.!?]*(?:,?\s*please)?\W*$",
    re.IGNORECASE,
)
_LONGEST_PROHIBITION = 200
"""Characters: who says more than that asks for something too."""
_ANOTHER_CLAUSE = re.compile(r"\b(?:but|because|so|then|until|unless|instead)\b", re.IGNORECASE)
_BESIDE = r"(?:(?:on|at|in|for|to|from|the|a|an|this|next|too|very)\s+){0,2}$"
_DENYING = re.compile(
    r"(?<!\bwhy )(?<!\bif )(?<!\bor )\b(?:not|no|without|except(?:\s+for)?|other\s+than|rather\s+than|instead\s+of|"
    rf"anything\s+but|(?:any|every)\s+\w+\s+but)\s+{_BESIDE}",
    re.IGNORECASE,
)
_LOOKED_BACK = 48
_PREPOSITION = {("in/out", "in")}
"""It mostly says where."""


@dataclass(frozen=True, slots=True)
class Leaning:
    """Sides of the axes on which a text has words, and whether it is denied. `forbids`: it says no more than that
    something is not to be done."""

    sides: frozenset[tuple[str, str]]
    is_denied: bool
    forbids: bool = False

    def towards(self, example: "Leaning") -> float:
        """Returns what is to be added to the likeness of a text and an example."""
        axes = {axis for axis, _ in self.sides} & {axis for axis, _ in example.sides}
        shared = {axis for axis, _ in self.sides & example.sides}
        if not axes:
            return -DENIED if self.is_denied != example.is_denied else 0.0
        # What is not to be on is to be off.
        is_opposed = bool(axes - shared) != (self.is_denied != example.is_denied)
        return -OPPOSED if is_opposed else SAME_SIDE


def leaning(text: str) -> Leaning:
    """Returns which way a text points."""
    facts = facts_of(text)
    parts = (part for fact in facts if fact.kind == "polarity" for part in fact.value.split())
    sides = frozenset((axis, side) for axis, found, side in (part.rpartition(":") for part in parts) if found)
    sides -= _PREPOSITION
    denied = sum(fact.kind == "negation" for fact in facts) % 2 == 1
    is_short = len(text) <= _LONGEST_PROHIBITION
    forbids = denied and is_short and bool(_FORBIDS.match(text)) and not _ANOTHER_CLAUSE.search(text)
    return Leaning(sides, denied, forbids)


def as_meant(text: str) -> str:
    """Returns a text without what was taken back in it and without the manners that open it; the text itself where
    nothing else is in it."""
    stands = as_corrected(text)
    return _OPENING.sub("", stands).strip() or stands


def is_denied(text: str, start: int) -> bool:
    """Whether the value that begins at `start` is what is not wanted: "not on Friday", "any day but Sunday"."""
    return _DENYING.search(text[max(0, start - _LOOKED_BACK) : start]) is not None
