"""Slots for which two observations name different values. Pure."""

from dataclasses import replace

from consistency.facts import conflicts, missing
from consistency.observation import Observation, Token
from consistency.reading import Reader
from consistency.verdict import Evidence

Apart = tuple[tuple[Token, Token], ...]
"""Tokens of one slot in two values: one side's, and the other's."""

_MAY_BE_LEFT_OUT = frozenset({"half_day", "relative_day"})
"""Kinds of facts that one side may say and the other leave open: seven, seven in the evening; Friday, next Friday."""

_ARTICLES = frozenset({"a", "an", "the"})


def apart(a: Observation, b: Observation, read: Reader | None = None) -> Apart:
    """Returns the slots for which two observations name different values. A slot that one side fills twice agrees with
    either of its values. `read` tells values that are the same in other words ("19:00", "seven pm")."""
    given: dict[str, list[Token]] = {}
    for token in b.tokens:
        if token.slot and token.act == "inform":
            given.setdefault(token.slot, []).append(token)
    return tuple(
        (one, given[one.slot][0])
        for one in a.tokens
        if one.slot in given
        and one.act == "inform"
        and not any(same_value(one.value, other.value, read) for other in given[one.slot])
    )


def same_value(one: str, other: str, read: Reader | None = None) -> bool:
    """Whether two values are the same: in letters, but for articles and signs; or in all of their facts."""
    if _plain(one) == _plain(other):
        return True
    if read is None:
        return False
    left, right = read(one), read(other)
    if not left or not right or conflicts(left, right):
        return False
    alone = [one or other for one, other in missing(left, right)]
    more = sum(fact is not None and fact.kind not in _MAY_BE_LEFT_OUT for fact in alone)
    return more == 0 and any(fact not in alone for fact in left)


def evidence_of(found: Apart) -> tuple[Evidence, ...]:
    """Returns what a verdict says of them."""
    return tuple(
        Evidence("slot", 1.0, f"{one.slot}: {one.value} against {other.value}") for one, other in found
    )


def respelled(heard: Observation, found: Apart, read: Reader | None = None) -> str | None:
    """Returns what was heard with the other's values in the places of its own; None where one of these was not said but
    inferred."""
    places = []
    for one, other in found:
        place = _place(heard, one, read)
        if place is None:
            return None
        places.append((*place, other.value))
    text = heard.text
    for start, stop, value in sorted(places, reverse=True):
        text = f"{text[:start]}{value}{text[stop:]}"
    return text


def _place(heard: Observation, token: Token, read: Reader | None) -> tuple[int, int] | None:
    """Returns where in the text a token's value stands: where it was found, as it is written, or as a fact."""
    if 0 <= token.start < token.stop <= len(heard.text):
        return token.start, token.stop
    start = heard.text.casefold().find(token.value.casefold()) if token.value else -1
    if start >= 0:
        return start, start + len(token.value)
    for fact in heard.facts if read is not None else ():
        if fact.start >= 0 and same_value(heard.text[fact.start : fact.stop], token.value, read):
            return fact.start, fact.stop
    return None


def mended(
    heard: Observation, other: Observation, found: Apart, text: str, read: Reader | None
) -> Observation:
    """Returns what stands for an utterance whose slots were misheard: its words and tokens with the other's values."""
    values = {(one.slot, one.value): two.value for one, two in found}
    tokens = tuple(
        replace(one, value=values.get((one.slot, one.value), one.value), start=-1, stop=-1)
        for one in heard.tokens
    )
    return Observation(
        id=f"{heard.id}~{other.id}",
        modality=heard.modality,
        start_us=heard.start_us,
        stop_us=heard.stop_us,
        text=text,
        facts=() if read is None else read(text),
        tokens=tokens,
        intent=heard.intent,
        revision=heard.revision + 1,
    )


def fills(one: Observation, found: Apart, read: Reader | None = None) -> bool:
    """Whether an observation names the other side's value for each of these slots."""
    return all(
        any(token.slot == two.slot and same_value(token.value, two.value, read) for token in one.tokens)
        for _, two in found
    )


def kept(loser: Observation, winner: Observation, read: Reader | None = None) -> tuple[Token, ...]:
    """Returns the tokens of a loser for which the winner names no other value."""
    named: dict[str, list[str]] = {}
    for token in winner.tokens:
        named.setdefault(token.slot, []).append(token.value)
    return tuple(
        one
        for one in loser.tokens
        if one.slot not in named or any(same_value(one.value, value, read) for value in named[one.slot])
    )


def _plain(value: str) -> str:
    words = "".join(letter if letter.isalnum() else " " for letter in value.casefold()).split()
    return " ".join(word for word in words if word not in _ARTICLES) or value.strip().casefold()
