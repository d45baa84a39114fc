"""Which words of two texts answer to one another: the cheapest edit alignment, then words that only moved.

A step costs what the words weigh, times how far apart they are: nothing for the same word or fact, little for another
form of it, a synonym or a slip of the fingers, all for another word. The classic dynamic programme (Wagner and Fischer
1974), with joins of two words ("lime light", "limelight") as one step more.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import fsum
from typing import Literal

from consistency import phonetics
from consistency.facts import conflicts
from consistency.observation import Fact
from consistency.related import is_word, relation
from consistency.slips import is_slip
from consistency.wording import CARRIER, DAYS, NUMBERS, Unit, Wording

Kind = Literal["equal", "form", "slip", "synonym", "kind", "other", "fact", "lost", "moved"]
"""equal; form: inflection or spelling; slip: a typing error; synonym; kind: one step of "is a kind of"; other: another
word stands there; fact: another value of a comparable fact; lost: nothing answers to it; moved: elsewhere."""

_FAMILY_COST = {"equal": 0.0, "form": 0.08, "slip": 0.1, "synonym": 0.3, "kind": 0.5}
_SHORTEST_JOIN = 4
_SHORTEST_UNDONE = 3
_UNDOING = ("un", "non")
"""Prefixes that make the opposite of a word whether or not a dictionary lists it; "dis-" has too many false friends."""


@dataclass(frozen=True, slots=True)
class Step:
    """Units of one side that answer to units of the other; one side is empty where `kind` is lost. `opposed`: they are
    opposites (``on/off``); `sound` in [0, 1]: how differently they sound."""

    kind: Kind
    ours: tuple[Unit, ...]
    theirs: tuple[Unit, ...]
    opposed: str = ""
    sound: float = 0.0

    @property
    def weight(self) -> float:
        """The larger weight of both sides."""
        return max(fsum(unit.weight for unit in self.ours), fsum(unit.weight for unit in self.theirs))


def align(ours: Wording, theirs: Wording) -> tuple[Step, ...]:
    """Returns the steps in order; what moved stands at its place in the first text."""
    left, right = ours.units, theirs.units
    head = 0
    while head < min(len(left), len(right)) and _same(left[head], right[head]):
        head += 1
    tail = 0
    while tail < min(len(left), len(right)) - head and _same(left[-1 - tail], right[-1 - tail]):
        tail += 1
    begin = [Step("equal", (one,), (two,)) for one, two in zip(left[:head], right[:head], strict=True)]
    stop = len(left) - tail
    end = [
        Step("equal", (one,), (two,))
        for one, two in zip(left[stop:], right[len(right) - tail :], strict=True)
    ]
    middle = _middle(left[head:stop], right[head : len(right) - tail])
    return _moved((*begin, *middle, *end))


def compare(one: Unit, other: Unit) -> Step:
    """Returns the step that puts `other` in the place of `one`."""
    if one.facts and other.facts:
        cost, conflict = facts_apart(one.facts, other.facts)
        kind: Kind = "fact" if conflict else "other" if cost > 0.6 else "form" if cost else "equal"
        return Step(kind, (one,), (other,), conflict if kind == "fact" else "", cost)
    if one.facts or other.facts:
        return Step("other", (one,), (other,), "", phonetics.distance(one.text, other.text))
    if one.text == other.text:
        return Step("equal", (one,), (other,))
    opposed = opposites(one, other)
    if opposed:
        return Step("other", (one,), (other,), opposed, phonetics.distance(one.text, other.text))
    kind = _words_apart(one.text, other.text)
    if kind in {"other", "kind"} and _same_side(one, other):
        kind = "synonym"
    # Words of grammar count as sounding unlike: their sounds decide nothing and cost time.
    light = min(one.weight, other.weight) < CARRIER
    sound = 0.0 if kind == "form" else 1.0 if light else phonetics.distance(one.text, other.text)
    return Step(kind, (one,), (other,), "", sound)


def opposites(one: Unit, other: Unit) -> str:
    """Returns the axis on whose two sides the units lie; empty where there is none."""
    for axis in one.axes:
        for against in other.axes:
            if axis.name == against.name and axis.side != against.side:
                return axis.name
    short, long = sorted((one.text, other.text), key=len)
    undone = len(short) >= _SHORTEST_UNDONE and any(long == prefix + short for prefix in _UNDOING)
    return f"{short}/{long}" if undone else ""


def facts_apart(ours: tuple[Fact, ...], theirs: tuple[Fact, ...]) -> tuple[float, str]:
    """Returns (how far apart the facts of two units are, in [0, 1]; the conflict in words, empty where none is).

    Facts of one kind decide first: "next friday" is no "next monday" although both are of next week.
    """
    left = {one.kind: one.value for one in ours}
    right = {one.kind: one.value for one in theirs}
    if left == right:
        return 0.0, ""
    found = [_pair_apart(one, other) for one in ours for other in theirs if one.kind == other.kind]
    conflict = next((told for _, told in found if told), "")
    if conflict:
        return 1.0, conflict
    if not found:
        found = [_pair_apart(one, other) for one in ours for other in theirs]
        apart, conflict = min(found, key=lambda entry: entry[0])
        if conflict:
            return 1.0, conflict
        if apart > 0.6:
            return apart, ""
    else:
        apart = max(cost for cost, _ in found)
    return (max(apart, HALF_OPEN), "") if ("half_day" in left) != ("half_day" in right) else (apart, "")


HALF_OPEN = 0.3
"""How far apart two times are of which one tells the half of the day."""


def _pair_apart(one: Fact, other: Fact) -> tuple[float, str]:
    if one.kind == other.kind and one.value == other.value:
        return 0.0, ""
    against = other.value if other.kind == one.kind else f"{other.kind} {other.value}"
    conflict = f"{one.kind} {one.value} against {against}"
    if one.kind in NUMBERS and other.kind in NUMBERS:
        if "time" in {one.kind, other.kind} and _clock_agrees(one, other):
            return 0.1, ""
        if one.kind != other.kind and (_figures(one) == _figures(other) or _may_agree(one, other)):
            return 0.15, ""
        return 1.0, conflict
    if one.kind in DAYS and other.kind in DAYS:
        if one.kind == other.kind:
            agree = one.kind == "date" and (
                one.value.endswith(other.value[1:]) or other.value.endswith(one.value[1:])
            )
            return (0.15, "") if agree else (1.0, conflict)
        return 0.8, ""
    if {one.kind, other.kind} == {"date", "ordinal"}:
        day, ordinal = (one, other) if one.kind == "date" else (other, one)
        return (0.2, "") if day.value.endswith(f"-{ordinal.value.zfill(2)}") else (1.0, conflict)
    return 1.0, conflict if one.kind == other.kind else ""


def _clock_agrees(one: Fact, other: Fact) -> bool:
    """Whether both may be one time: 7:30 and 19:30, 19:30 and a bare 7, 3:30 and 330."""
    values = [fact.value.split(":") if fact.kind == "time" else None for fact in (one, other)]
    if all(values):
        (hour, minute), (hour_2, minute_2) = values[0][:2], values[1][:2]  # type: ignore[index]
        if int(hour) % 12 != int(hour_2) % 12 or minute != minute_2:
            return False
        return (
            len(hour) < 2 or len(hour_2) < 2 or int(hour) == int(hour_2) or max(int(hour), int(hour_2)) == 12
        )
    clock = values[0] or values[1]
    figure = (other if values[0] else one).value
    if clock is None or not figure.isdigit():
        return False
    hour, minute = clock[:2]
    return (int(figure) % 12 == int(hour) % 12 and minute == "00") or figure == f"{int(hour)}{minute}"


def _may_agree(one: Fact, other: Fact) -> bool:
    """Whether a bare number may be the other one without its unit ("ninety", "ninety minutes")."""
    return "number" in {one.kind, other.kind} and not conflicts((one,), (other,))


def _figures(fact: Fact) -> str:
    return "".join(letter for letter in fact.value.split(":")[0] if letter.isdigit()).lstrip("0")


def _same(one: Unit, other: Unit) -> bool:
    if one.facts or other.facts:
        return {(fact.kind, fact.value) for fact in one.facts} == {
            (fact.kind, fact.value) for fact in other.facts
        }
    return one.text == other.text


def _same_side(one: Unit, other: Unit) -> bool:
    return any(axis == against for axis in one.axes[:3] for against in other.axes[:3])


@lru_cache(maxsize=16_384)
def _words_apart(one: str, other: str) -> Kind:
    found = relation(one, other)
    if found == "same" or _root(one) == _root(other):
        return "form"
    if found:
        return "synonym" if found == "synonym" else "kind"
    if is_word(one) != is_word(other) and is_slip(one, other):
        return "slip"
    return "other"


_DERIVED = (("iness", "y"), ("ness", ""), ("ments", ""), ("ment", ""), ("ings", ""), ("ing", ""), ("er", ""))


def _root(word: str) -> str:
    """A word without an ending that makes another part of speech of it ("brightness", "brighter": "bright")."""
    for ending, instead in _DERIVED:
        if word.endswith(ending) and len(word) - len(ending) > 3:
            return word[: -len(ending)] + instead
    return word


def _cost(step: Step) -> float:
    known = _FAMILY_COST.get(step.kind)
    one, other = step.ours[0], step.theirs[0]
    if known is not None:
        return known * step.weight
    if bool(one.facts) != bool(other.facts):
        return one.weight + other.weight + 0.02 if step.sound > 0.3 else 0.9 * step.weight
    gap = abs(one.weight - other.weight)
    return step.weight * (0.6 + 0.4 * step.sound) + 0.5 * gap + 0.01


def _joined(pair: tuple[Unit, ...], single: Unit) -> float | None:
    """How differently two words said as one sound from a single one; None where they are not alike."""
    if single.facts or len(single.text) < _SHORTEST_JOIN or any(unit.facts for unit in pair):
        return None
    together = "".join(unit.text for unit in pair)
    if abs(len(together) - len(single.text)) > 3:
        return None
    if together == single.text:
        return 0.0
    if together[0] != single.text[0] and together[-1] != single.text[-1]:
        return None
    sound = phonetics.distance(together, single.text)
    return sound if sound <= 0.2 else None


def _middle(left: tuple[Unit, ...], right: tuple[Unit, ...]) -> list[Step]:
    if not left or not right:
        return [Step("lost", (one,), ()) for one in left] + [Step("lost", (), (one,)) for one in right]
    rows, columns = len(left) + 1, len(right) + 1
    best = [[0.0] * columns for _ in range(rows)]
    step: list[list[tuple[int, int, Step | None]]] = [[(0, 0, None)] * columns for _ in range(rows)]
    for i in range(rows):
        for j in range(columns):
            if not i and not j:
                continue
            options: list[tuple[float, int, int, Step | None]] = []
            if i and j:
                swap = compare(left[i - 1], right[j - 1])
                options.append((best[i - 1][j - 1] + _cost(swap), 1, 1, swap))
            if i:
                options.append((best[i - 1][j] + left[i - 1].weight + 0.01, 1, 0, None))
            if j:
                options.append((best[i][j - 1] + right[j - 1].weight + 0.01, 0, 1, None))
            if i > 1 and j and (sound := _joined(left[i - 2 : i], right[j - 1])) is not None:
                joined = Step("form", left[i - 2 : i], right[j - 1 : j], "", sound)
                options.append((best[i - 2][j - 1] + sound + 0.1, 2, 1, joined))
            if i and j > 1 and (sound := _joined(right[j - 2 : j], left[i - 1])) is not None:
                joined = Step("form", left[i - 1 : i], right[j - 2 : j], "", sound)
                options.append((best[i - 1][j - 2] + sound + 0.1, 1, 2, joined))
            least = min(options, key=lambda option: option[0])
            best[i][j] = least[0]
            step[i][j] = least[1:]
    steps: list[Step] = []
    i, j = rows - 1, columns - 1
    while i or j:
        back, over, taken = step[i][j]
        steps.append(taken or Step("lost", left[i - back : i], right[j - over : j]))
        i, j = i - back, j - over
    return steps[::-1]


def _moved(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Finds words that answer to nothing, or to another word, but stand elsewhere on the other side."""
    loose = [
        at
        for at, step in enumerate(steps)
        if step.kind in {"lost", "other", "fact", "kind"} and step.weight > 0.1
    ]
    if len(loose) < 2:
        return steps
    ours = [(at, unit) for at in loose for unit in steps[at].ours if unit.weight > 0.1]
    theirs = [(at, unit) for at in loose for unit in steps[at].theirs if unit.weight > 0.1]
    found: list[tuple[float, int, int, Unit, Unit, Kind]] = []
    for at, one in ours:
        for over, other in theirs:
            if at == over:
                continue
            step = compare(one, other)
            if step.kind in {"equal", "form", "slip", "synonym"} or (
                step.kind == "kind" and steps[at].kind == "lost"
            ):
                found.append((_FAMILY_COST[step.kind], at, over, one, other, step.kind))
    gone: list[Unit] = []
    matched: dict[int, list[Step]] = {}
    for _, at, _, one, other, kind in sorted(
        found, key=lambda entry: (entry[0], abs(entry[1] - entry[2]), entry[1], entry[2])
    ):
        if any(one is unit or other is unit for unit in gone):
            continue
        gone += [one, other]
        matched.setdefault(at, []).append(
            Step("moved" if kind in {"equal", "form", "slip"} else kind, (one,), (other,))
        )
    if not gone:
        return steps
    result: list[Step] = []
    for at, step in enumerate(steps):
        left = tuple(unit for unit in step.ours if not any(unit is one for one in gone))
        right = tuple(unit for unit in step.theirs if not any(unit is one for one in gone))
        if (left, right) == (step.ours, step.theirs):
            result.append(step)
        else:
            result += [Step("lost", (unit,), ()) for unit in left] + [
                Step("lost", (), (unit,)) for unit in right
            ]
        result += matched.get(at, [])
    return tuple(result)
