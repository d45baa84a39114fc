"""A text, and a value, with another value in it: "fifty minutes" with "fifteen" is "fifteen minutes". Pure."""

import re
from dataclasses import replace

from consistency.observation import Observation, Token
from consistency.ontology import SlotSpec
from consistency.reading import Reader

WORD = re.compile(r"[^\W_]+(?:['’&.-][^\W_]+)*")
_HALF = re.compile(
    r"\b(?:[ap]\.\s?m\.?|[ap]m\b|in the (?:morning|afternoon|evening)|at night)", re.IGNORECASE
)
_NAME = re.compile(r"\b[A-Z][\w'’]*(?:\s+[A-Z][\w'’]*)*")
_PARTS = frozenset({"morning", "afternoon", "evening"})
_O_CLOCK = re.compile(r"\s*o'?\s?clock", re.IGNORECASE)


def filled(value: str, new: str, kind: str, slot: SlotSpec | None, read: Reader) -> str:
    """Returns a slot's value with a new one in its place: a bare number keeps what stood around the old one, a time its
    half of the day, free text the words around the name in it. `kind` is that of the new one's fact; it is empty for
    words, which may stand for a listed value."""
    if not kind:
        said = new.lower()
        listed = {} if slot is None else slot.values
        names = [hit.span() for hit in _NAME.finditer(value)]
        is_part = len(names) == 1 and names[0] != (0, len(value)) and slot is not None and slot.kind == "text"
        text = f"{value[: names[0][0]]}{new}{value[names[0][1] :]}" if is_part else new
        return next(
            (one for one, words in listed.items() if said in {one.lower(), *map(str.lower, words)}), text
        )
    half = _HALF.search(value)
    if kind == "half_day":
        said = f"in the {new}" if new.lower() in _PARTS else f"at {new}" if new.lower() == "night" else new
        return f"{value[: half.start()] if half else value} {said}".replace("  ", " ")
    if kind == "number":
        place = _number_in(value, read)
        if place is not None:
            return f"{value[: place[0]]}{new}{value[place[1] :]}"
    is_open = not any(one.kind == "half_day" for one in read(new))
    if kind in {"number", "time"} and half and is_open:
        return f"{_O_CLOCK.sub('', new)} {half.group()}"
    return new


def core_of(value: str, read: Reader) -> str:
    """Returns the number of a value that has other words beside it; the value itself where there is none."""
    place = _number_in(value, read)
    return value if place is None else value[place[0] : place[1]]


def _number_in(value: str, read: Reader) -> tuple[int, int] | None:
    """Where the one number of a value stands that has other words beside it; None where there is no such number."""
    words = list(WORD.finditer(value))
    numbers = [one for one in words if read(one.group())]
    for many in range(len(words) - 1, 0, -1):
        for first in range(len(words) - many + 1):
            start, stop = words[first].start(), words[first + many - 1].end()
            facts = read(value[start:stop])
            whole = [(one.kind, one.start, one.stop) for one in facts] == [("number", 0, stop - start)]
            if whole:
                return (start, stop) if all(start <= one.start() < stop for one in numbers) else None
    return None


def with_value(said: Observation, token: Token, value: str, read: Reader) -> Observation:
    """Returns an observation as it reads with another value for one of its tokens: in the token, and in the text where
    the token stands in it."""
    start, stop = token.start, token.stop
    if not 0 <= start < stop <= len(said.text):
        tokens = tuple(replace(one, value=value) if one is token else one for one in said.tokens)
        return replace(said, tokens=tokens)
    text = f"{said.text[:start]}{value}{said.text[stop:]}"
    moved = len(value) - (stop - start)

    def shifted(one: Token) -> Token:
        if one is token:
            return replace(one, value=value, stop=start + len(value))
        by = moved if one.start >= stop else 0
        return one if not by else replace(one, start=one.start + by, stop=one.stop + by)

    tokens = tuple(map(shifted, said.tokens))
    return replace(said, text=text, normal="", facts=read(text), tokens=tokens, words=())


def reworded(said: Observation, text: str, read: Reader | None) -> Observation:
    """Returns an observation as it reads with another text, its tokens where their values stand in that."""
    places = {one: text.find(one.value) if one.value else -1 for one in said.tokens}
    tokens = tuple(
        replace(one, start=at, stop=at + len(one.value) if at >= 0 else -1) for one, at in places.items()
    )
    facts = () if read is None else read(text)
    return replace(said, text=text, normal="", facts=facts, tokens=tokens, words=())
