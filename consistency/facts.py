"""Whether the typed facts of two texts contradict each other. Pure.

`conflicts` pairs facts that cannot both be true of one request; `missing` lists what only one side says, which is no
contradiction by itself. What cannot be compared (a weekday with "tomorrow": today's weekday is not known here) is
neither.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation

from consistency.observation import Fact

Pair = tuple[Fact | None, Fact | None]

_NUMERIC = ("number", "ordinal", "time", "money", "percent", "duration", "year")
"""Kinds that may be the same number understood in two ways ("seven" and "at 7:00")."""
_DAYS = ("weekday", "relative_day", "date")
"""Kinds that name a day in ways that cannot be compared without a calendar."""
_OTHERS = ("half_day", "spelling")
_COUNTED = frozenset({"number", "money"})
"""Kinds in which the same value twice is not the same as once ("one plus one", "one plus two")."""
_SECONDS = (1, 60, 3_600, 86_400, 604_800)
_HALF_A_DAY_MINUTES = 720


def conflicts(a: Iterable[Fact], b: Iterable[Fact]) -> list[Pair]:
    """Returns the facts of `a` and of `b` that contradict each other, in pairs: numbers, days, halves of the day,
    spellings, polarity, negation. A pair with None is a negation that only one side has. Symmetric; a text never
    contradicts itself."""
    left, right = _Side(a), _Side(b)
    found: list[Pair] = []
    found += _numeric(left, right)[0]
    for kind in (*_DAYS, *_OTHERS):
        found += zip(*_unmatched(left.of(kind), right.of(kind)), strict=False)
    found += _polarity(left, right)
    found += _negation(left, right)
    return found if not _cancels(found) else []


def missing(a: Iterable[Fact], b: Iterable[Fact]) -> list[Pair]:
    """Returns facts that one side has and the other says nothing about, each with None for the other side. Polarity and
    negation are left out: their absence says something only by contrast."""
    left, right = _Side(a), _Side(b)
    ones, others = _numeric(left, right)[1]
    for kinds in (_DAYS, *((kind,) for kind in _OTHERS)):
        if not (left.any(kinds) and right.any(kinds)):
            ones += left.of(*kinds)
            others += right.of(*kinds)
    return [(one, None) for one in ones] + [(None, other) for other in others]


class _Side:
    """The facts of one text by kind; what was withdrawn does not count."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._by_kind: dict[str, list[Fact]] = {}
        for fact in facts:
            self._by_kind.setdefault(fact.kind, []).append(fact)

    def of(self, *kinds: str) -> list[Fact]:
        return [fact for kind in kinds for fact in self._by_kind.get(kind, ())]

    def any(self, kinds: Iterable[str]) -> bool:
        return any(kind in self._by_kind for kind in kinds)


def _unmatched(ones: Sequence[Fact], others: Sequence[Fact]) -> tuple[list[Fact], list[Fact]]:
    """What is left of two lists of one kind when every fact that agrees with one of the other side is taken out."""
    if not any(one.kind in _COUNTED for one in (*ones[:1], *others[:1])):
        left = {fact.value: fact for fact in ones}.values()
        right = {fact.value: fact for fact in others}.values()
        return (
            [one for one in left if not any(_agree(one, other) for other in right)],
            [other for other in right if not any(_agree(one, other) for one in left)],
        )
    open_left, open_right = [], list(others)
    for one in ones:
        match = next((other for other in open_right if _agree(one, other)), None)
        if match is None:
            open_left.append(one)
        else:
            open_right.remove(match)
    return open_left, open_right


def _numeric(left: _Side, right: _Side) -> tuple[list[Pair], tuple[list[Fact], list[Fact]]]:
    """Conflicts among everything numeric, and what is left on either side without a partner."""
    ones: list[Fact] = []
    others: list[Fact] = []
    for kind in _NUMERIC:
        more_ones, more_others = _unmatched(left.of(kind), right.of(kind))
        ones += more_ones
        others += more_others
    # The same number, understood in two ways; what has found its like already is no other number's like.
    dates, other_dates = _unmatched(left.of("date"), right.of("date"))
    open_ones = [
        one for one in ones if not any(_agree_across(one, other) for other in (*others, *other_dates))
    ]
    open_others = [other for other in others if not any(_agree_across(one, other) for one in (*ones, *dates))]
    pairs: list[Pair] = []
    for one in list(open_ones):
        other = next((other for other in open_others if _comparable(one, other)), None)
        if other is not None:
            pairs.append((one, other))
            open_ones.remove(one)
            open_others.remove(other)
    return pairs, (open_ones, open_others)


def _comparable(one: Fact, other: Fact) -> bool:
    """Whether two numeric facts that do not agree speak of the same thing: one kind, or a bare number on one side."""
    return one.kind == other.kind or "number" in {one.kind, other.kind}


def _agree(one: Fact, other: Fact) -> bool:
    """Whether two facts of one kind agree: by value, times also where the half of the day is open on one side (halves
    are compared for themselves), dates where one names less and does not differ in the rest."""
    if one.value == other.value:
        return True
    match one.kind:
        case "time":
            minutes, further = _minutes(one.value), _minutes(other.value)
            return (
                minutes is not None and further is not None and (minutes - further) % _HALF_A_DAY_MINUTES == 0
            )
        case "date":
            return any(_same_date(x, y) for x in _dates(one.value) for y in _dates(other.value))
        case _:
            return False


def _minutes(time: str) -> int | None:
    hour, _, minute = time.partition(":")
    return int(hour) * 60 + int(minute) if hour.isdecimal() and minute.isdecimal() else None


def _dates(value: str) -> list[tuple[str, str, str]]:
    """Year, month and day of a date, "" where open: two readings where day and month may be either."""
    if "/" in value:
        first, second, *year = value.split("/")
        known = year[0] if year else ""
        return [(known, first.zfill(2), second.zfill(2)), (known, second.zfill(2), first.zfill(2))]
    year_text, rest = ("", value[2:]) if value.startswith("--") else (value[:4], value[5:])
    month, _, day = rest.partition("-")
    return [(year_text, month, day)]


def _same_date(one: tuple[str, str, str], other: tuple[str, str, str]) -> bool:
    return all(x == y or not x or not y for x, y in zip(one, other, strict=True))


def _agree_across(one: Fact, other: Fact) -> bool:
    """Whether facts of two kinds may be the same number said with more or less around it."""
    if one.kind == other.kind:
        return False
    return bool(_readings(one) & _readings(other))


def _readings(fact: Fact) -> set[Decimal]:
    """The bare numbers that a fact may have been without what stood around it."""
    match fact.kind:
        case "time":
            hour, _, minute = fact.value.partition(":")
            hours = {int(hour), int(hour) % 12, int(hour) % 12 + 12, int(hour) % 12 or 12}
            if minute == "00":
                return {Decimal(one) for one in hours}
            return {Decimal(one * 100 + int(minute)) for one in hours}
        case "duration":
            return {_number(fact.value) / unit for unit in _SECONDS}
        case "money":
            return {_number(fact.value.partition(" ")[2])}
        case "date":
            return {Decimal(day) for _, _, day in _dates(fact.value) if day}
        case _:
            return {_number(fact.value)}


def _number(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal("NaN")


def _polarity(left: _Side, right: _Side) -> list[Pair]:
    """Words that stand on opposite sides of an axis, and that the other side does not have as well."""
    ones, others = left.of("polarity"), right.of("polarity")
    if not ones or not others:
        return []
    have, theirs = Counter(one.value for one in ones), Counter(one.value for one in others)
    only_left, only_right = have - theirs, theirs - have
    left_axes = {fact.value: _axes(fact.value) for fact in ones if fact.value in only_left}
    right_axes = {fact.value: _axes(fact.value) for fact in others if fact.value in only_right}
    found: list[Pair] = []
    for one in ones:
        for other in others:
            here, there = left_axes.get(one.value), right_axes.get(other.value)
            if here is not None and there is not None and _opposed(here, there):
                found.append((one, other))
                del left_axes[one.value], right_axes[other.value]
    return found


def _axes(value: str) -> dict[str, str]:
    return dict(part.rsplit(":", 1) for part in value.split() if ":" in part)


def _opposed(one: dict[str, str], other: dict[str, str]) -> bool:
    """Whether two words lie on opposite sides of an axis: of the one that either of them is best known for, or of any
    where they have no side in common."""
    apart = [axis for axis in one if axis in other and one[axis] != other[axis]]
    if not apart:
        return False
    return next(iter(one)) in apart or next(iter(other)) in apart or not one.items() & other.items()


def _negation(left: _Side, right: _Side) -> list[Pair]:
    """One pair for each negation that only one side has; where both have as many, what they deny is compared."""
    ones, others = left.of("negation"), right.of("negation")
    pairs: list[Pair] = [(one, None) for one in ones[len(others) :]]
    pairs += [(None, other) for other in others[len(ones) :]]
    return pairs


def _cancels(found: Sequence[Pair]) -> bool:
    """Whether one negation and one opposite are all that differ: "don't turn it off" agrees with "leave it on"."""
    kinds = {fact.kind for pair in found for fact in pair if fact is not None}
    return len(found) == 2 and kinds == {"negation", "polarity"}
