"""What a correction says: the values that it names, what it only denies, and whether it tells something else. Pure."""

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass
from functools import lru_cache

from consistency.observation import Fact, Observation
from consistency.ontology import SlotSpec
from consistency.reading import vocabulary
from consistency.relation import says_all
from consistency.rewording import WORD
from consistency.roles import PREPOSITIONS
from consistency.wording import CONTENT, wording

NUMERIC = frozenset({"number", "ordinal", "time", "money", "percent", "duration", "year"})
DAYS = frozenset({"weekday", "relative_day", "date"})

_MOST_VALUES = 4
_LONGEST_NAME = 3
"""Words of a name that stands for a name."""
_NO_NAME = vocabulary(
    "no not nope nah sorry wait actually correction oops rather instead i meant mean said say make it that change to "
    "let's my mistake wrong oh um uh er well but the a an in at on for from of is be should please thanks thank you "
    "ok okay yes yeah hey hm one ones this these those there here now later never mind "
    "alexa siri google olly assistant computer great perfect excellent fine good cool right correct exactly sure bad "
    "absolutely definitely really nothing nobody none neither both everything anything whatever always enough bye"
)
"""Words that are no name, though a recogniser writes them large behind a full stop: "No. Great." """
_TELLS = vocabulary(
    "said meant asked wanted told thought heard misheard correct right exactly total altogether people"
)
"""Words of content that a correction may have beside its values."""
_OF_A_MONTH = re.compile(
    r"\s+of\s+(?:(?:this|next|the)\s+month|january|february|march|april|may|june|july|august|september|october|"
    r"november|december)\b",
    re.IGNORECASE,
)
_BEHIND_NOT = re.compile(r"\bnot\s+(?:(?:at|on|in|for|the|an?)\s+)*$", re.IGNORECASE)
_ONLY_NOT = re.compile(
    r"\W*(?:(?:no|nope|sorry|wait|actually|oh)\W+)*not\s+(?:(?:in|at|on|for|to|the|an?)\s+)*([^,;.?]{1,40}?)"
    r"(?:,?\s+(?:please|thanks|thank\s+you))?[\s,.!]*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A value that a correction names: its words and their place; `kind` of its fact, empty for words."""

    text: str
    start: int
    stop: int
    kind: str


def pieces(new: Observation, slots: Iterable[SlotSpec], known: Container[str]) -> list[Piece]:
    """Returns the values that a correction names, in their order: its facts, and what the slots list beside these or
    beside `known` words alone; else the words that are left of it."""
    facts = [one for one in new.facts if one.start >= 0 and is_value(one)]
    # "Tonight" is a day before it is a half of one.
    facts.sort(key=lambda one: (one.start, -one.stop, one.kind == "half_day"))
    gone = [(one.start, one.stop) for one in new.facts if one.kind == "withdrawn" and one.start >= 0]
    found: list[Piece] = []
    for fact in facts:
        if _BEHIND_NOT.search(new.text, 0, fact.start):
            continue
        if not found or fact.start >= found[-1].stop:
            # Recognisers write "the nine of March" as it is said.
            month = _OF_A_MONTH.match(new.text, fact.stop) if fact.kind == "number" else None
            stop, kind = (fact.stop, fact.kind) if month is None else (month.end(), "date")
            found.append(Piece(new.text[fact.start : stop], fact.start, stop, kind))
    words = [
        one
        for one in WORD.finditer(new.text)
        if one.group().lower() not in _NO_NAME and not any(a <= one.start() < b for a, b in gone)
    ]
    taken = [*gone, *((one.start, one.stop) for one in found)]
    listed = [
        Piece(new.text[start:stop], start, stop, "")
        for start, stop in _listed(new.text, slots)
        if all(stop <= a or start >= b for a, b in taken)
    ]
    beside = [one for one in words if not any(value.start <= one.start() < value.stop for value in listed)]
    if found or all(one.group().lower() in known for one in beside):
        found += listed
    if found:
        return sorted(found, key=lambda one: one.start)[:_MOST_VALUES]
    if not 0 < len(words) <= _LONGEST_NAME or says_all(new.text):
        return []
    if _BEHIND_NOT.search(new.text, 0, words[0].start()):
        return []
    start, stop = words[0].start(), words[-1].end()
    return [Piece(new.text[start:stop], start, stop, "")]


def counts(new: Observation, piece: Piece) -> str:
    """Returns the word that a bare number counts ("one person"); empty where it counts none."""
    found = WORD.match(new.text, piece.stop + 1) if piece.kind == "number" else None
    word = "" if found is None else found.group().lower()
    return "" if word in _NO_NAME or word in _TELLS - {"people"} or word in PREPOSITIONS else word


def only_denied(new: Observation) -> str:
    """Returns what a text denies where it puts nothing in its place ("no, not Boston"); empty where it does not."""
    found = _ONLY_NOT.fullmatch(new.text)
    return "" if found is None or any(one.kind == "withdrawn" for one in new.facts) else found[1].lower()


def says_more(new: Observation, known: Iterable[str], slots: Iterable[SlotSpec]) -> bool:
    """Whether words of content stand beside the facts of a text that neither are known nor listed: it tells something
    else then."""
    if not any(is_value(fact) for fact in new.facts):
        return False
    expected = {*_TELLS, *_NO_NAME, *known}
    for start, stop in _listed(new.text, slots):
        expected.update(WORD.findall(new.text[start:stop].lower()))
    beside = (one.text for one in wording(new).units if one.weight >= CONTENT and not one.facts)
    return not expected.issuperset(beside)


def denied(text: str, fact: Fact) -> str:
    """Returns the words that a fact says were taken back, without those before a name; empty for other facts."""
    if fact.kind != "withdrawn" or not 0 <= fact.start < fact.stop:
        return ""
    words = text[fact.start : fact.stop].lower().split()
    while words and words[0] in _NO_NAME:
        del words[0]
    return " ".join(words)


def is_value(fact: Fact) -> bool:
    """Whether a fact may fill a slot."""
    return fact.kind in NUMERIC | DAYS | {"half_day"}


def lists(slot: SlotSpec, text: str) -> bool:
    """Whether a slot lists a value in these words."""
    said = text.lower()
    return any(said == word.lower() for value, words in slot.values.items() for word in (value, *words))


def _listed(text: str, slots: Iterable[SlotSpec]) -> list[tuple[int, int]]:
    """Where listed values stand in a text, of two at one place the longer one."""
    known = {
        word for slot in slots for value, words in slot.values.items() for word in (value, *words) if word
    }
    return [hit.span() for hit in _any_of(frozenset(known)).finditer(text)] if known else []


@lru_cache(maxsize=64)
def _any_of(words: frozenset[str]) -> re.Pattern[str]:
    longest_first = sorted(words, key=lambda one: (-len(one), one))
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)", re.IGNORECASE)
