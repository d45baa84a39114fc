"""How well a text bears a slot's value out: 1 it stands there, 0 nothing of it does. Pure.

What is compared depends on the kind of the slot: times and dates by what they are worth, numbers as numbers, listed
values by their other words and by words that mean the same, names and places by their spelling.
"""

import datetime
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import fsum

from consistency.everyday import said_for
from consistency.observation import Fact
from consistency.ontology import ANY, FALSE, TRUE, SlotSpec
from consistency.reading import Reading, vocabulary, words_of

Related = Callable[[str, str], str]
"""How two words are related: ``same`` (forms of one word), ``synonym``, ``kind``, or nothing."""

Today = datetime.date | None

SAME, ALIAS, HALF_OPEN, DAY_ONLY, SYNONYM, KIND_OF = 1.0, 0.95, 0.95, 0.9, 0.9, 0.75
AGAINST = 0.03
"""The text has another value of that kind, and not this one."""
ABSENT = 0.1
"""Nothing in the text speaks for the value or against it."""
UNKNOWN_DAY = 0.65
"""A weekday against a date, where nobody said what today is."""
LONGEST_LOOSE = 48
"""Characters of a value that is looked for in other spellings; longer ones are sentences."""
LEAST_SPELLING = 0.84

_HALF_A_DAY = 720
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NICKNAMES: dict[str, tuple[str, ...]] = {
    "los angeles": ("la", "lax", "l a"),
    "san francisco": ("sf", "sfo", "san fran", "frisco"),
    "new york": ("ny", "nyc", "big apple", "new york city"),
    "las vegas": ("vegas", "sin city"),
    "san diego": ("sd",),
    "washington": ("dc", "d c", "washington dc"),
    "philadelphia": ("philly", "phl"),
    "chicago": ("chi town", "windy city"),
    "kuala lumpur": ("kl",),
    "seattle": ("sea", "emerald city"),
    "atlanta": ("atl",),
    "phoenix": ("phx",),
    "portland": ("pdx", "rose city"),
    "sacramento": ("sac",),
    "vancouver": ("van",),
    "toronto": ("tdot",),
    "mexico city": ("cdmx",),
    "boston": ("beantown",),
    "new orleans": ("nola", "big easy"),
    "london": ("ldn",),
}
"""Well-known short names of cities, in words as `words_of` gives them."""
_REGIONS = vocabulary(
    "ca california ny or oregon wa washington nv nevada az arizona il ga tx texas pa bc england "
    "france india usa us uk canada australia mexico d c dc germany italy spain"
)
_VERBS = vocabulary("has is allowed good for options ride entry have wants with")
_TOLD = vocabulary(
    "boolean flag whether indicating property available adequate good take inside place hotel restaurant other with "
    "attraction entrance passengers ride flight arrives indicates available user wants there this that house apartment"
)
"""Words of descriptions that say nothing of what a yes-and-no slot is about."""
_ABOUT = {
    of: frozenset(words.split())
    for of, words in (
        ("kids", "kid child children family"),
        ("free", "fee free cost charge pay paid"),
        ("pets", "pet dog cat animals"),
        ("smoking", "smoke smoker smokers"),
        ("wifi", "wi fi internet wireless"),
        ("outdoors", "outside outdoor patio terrace"),
        ("vegetarian", "vegan veggie vegetables"),
        ("shared", "share sharing alone others"),
        ("furnished", "furniture"),
        ("alcohol", "drink drinks wine beer bar cocktails"),
        ("laundry", "washer dryer washing"),
        ("garage", "parking park car"),
        ("parking", "garage park car"),
        ("protection", "insurance insured protect"),
        ("insurance", "insured insure protection"),
        ("refundable", "refund refunds money"),
        ("luggage", "bag bags baggage suitcase luggage"),
        ("private", "public visible privately secret"),
        ("nonstop", "direct stop stops layover layovers"),
        ("music", "live band"),
        ("unisex", "both men women"),
    )
}
"""What people speak of when they mean a yes-and-no slot of that name."""
_SMALL = vocabulary("the a an of at in on to and for by with my some de la le")
_NO = vocabulary("no not without none never don't isn't")
_NONE = vocabulary("any anything whatever either matter matters care preference all every none")


@dataclass(frozen=True, slots=True)
class Value:
    """A value with what was read from it."""

    text: str
    words: tuple[str, ...]
    reading: Reading


def support(
    value: Value, slot: SlotSpec | None, text: Reading, related: Related, today: Today, loosely: bool = True
) -> float:
    """Returns how well a text bears out that a slot has a value, in [0, 1]. `loosely`: other spellings and words of the
    same meaning count too; they are looked for in every word, which costs most of the time."""
    if text.find(value.words) >= 0 and (slot is None or slot.kind not in {"date", "time"}):
        return SAME
    kind = slot.kind if slot else "text"
    lowered = value.text.lower()
    if lowered == ANY:
        return 0.9 if _NONE & set(text.words) else 0.7
    if lowered in {TRUE, FALSE}:
        return _yes_or_no(lowered == TRUE, slot, text, related)
    times, days = value.reading.of("time"), _has_day(value.reading)
    if kind == "time" or (times and kind not in {"name", "text"}):
        return _time(value.reading, text)
    if kind == "date" or (days and kind not in {"name", "text"}):
        return _date(value.reading, text, today)
    if kind == "money" or (
        len(value.reading.numbers) == 1 and len(value.words) <= 3 and kind not in {"name", "text"}
    ):
        return _number(value.reading, text, today)
    found = _named(value, slot, text)
    if found >= ALIAS:
        return found
    if loosely and len(value.text) <= LONGEST_LOOSE:
        found = max(found, _spelled(_core(value.words), text))
    if loosely and found < ALIAS and kind in {"category", "text", "name"}:
        found = max(found, _meant(value.words, text, related))
    if kind == "category" and slot and _names_another(value, slot, text):
        return AGAINST
    return max(found, ABSENT)


def _named(value: Value, slot: SlotSpec | None, text: Reading) -> float:
    """How well a text has a value's name, or what else people say for it."""
    if text.find(value.words) >= 0:
        return SAME
    kind = slot.kind if slot else "text"
    known = slot.values.get(value.text, ()) if slot else ()
    if any(text.find(words_of(word)) >= 0 for word in known):
        return ALIAS
    if kind in {"category", "text"} and any(text.find(phrase) >= 0 for phrase in said_for(value.text)):
        return ALIAS
    core = _core(value.words)
    if len(core) < len(value.words) and text.find(core) >= 0:
        return ALIAS
    name = " ".join(core)
    for short in _NICKNAMES.get(name, ()) or _NICKNAMES.get(name.removesuffix(" city"), ()):
        if text.find(tuple(short.split())) >= 0:
            return ALIAS
    return 0.0


def _core(words: tuple[str, ...]) -> tuple[str, ...]:
    """A name without the state or country behind it."""
    return tuple(word for word in words if word not in _REGIONS) or words


def _names_another(value: Value, slot: SlotSpec, text: Reading) -> bool:
    """Whether a text names another of a slot's listed values: then it does not mean this one."""
    for other in slot.values:
        words = words_of(other)
        telling = tuple(word for word in words if word not in value.words)
        if telling and other.lower() != value.text.lower() and text.find(telling) >= 0:
            return True
    return False


def _yes_or_no(yes: bool, slot: SlotSpec | None, text: Reading, related: Related) -> float:
    """Yes and no are borne out by what they are about ("a shared ride"), or by the word alone where it was asked."""
    if slot is None:
        return 0.5
    about = {word for word in words_of(slot.name.replace("_", " ")) if word not in _VERBS}
    about |= {word for phrase in slot.roles for word in words_of(phrase)}
    about |= {word for word in words_of(slot.description) if len(word) > 3 and word not in _TOLD}
    for word in tuple(about):
        about |= _ABOUT.get(word, frozenset())
    hit = any(
        one == word or related(one, word) == "same" for one in about for word in text.words if len(word) > 1
    )
    denied = bool(_NO & set(text.words))
    if hit:
        return 0.8 if denied == yes else 0.95
    return 0.25


def _time(value: Reading, text: Reading) -> float:
    wanted = [_minutes(fact.value) for fact in value.of("time")] or [
        60 * number for number in value.numbers if number < 25
    ]
    there = [_minutes(fact.value) for fact in text.of("time")]
    if not wanted:
        return ABSENT
    halves = {fact.value for fact in value.of("half_day")}, {fact.value for fact in text.of("half_day")}
    agree = not all(halves) or bool(halves[0] & halves[1])
    if wanted[0] in there:
        return SAME if agree else 0.5
    if any((wanted[0] - one) % _HALF_A_DAY == 0 for one in there):
        return HALF_OPEN if agree else 0.3
    hour, minute = divmod(wanted[0], 60)
    hours = {hour, hour % 12, hour % 12 or 12} & text.numbers
    if hours and (minute == 0 or minute in text.numbers):
        return DAY_ONLY
    words = set(text.words)
    if (minute == 30 and "half" in words and hours) or (minute in {15, 45} and "quarter" in words):
        return DAY_ONLY
    if {"noon", "midday"} & words and hour == 12:
        return ALIAS
    return AGAINST if there else ABSENT


def _minutes(time: str) -> int:
    hour, _, minute = time.partition(":")
    return int(hour) * 60 + int(minute or 0)


def _has_day(reading: Reading) -> bool:
    return bool(reading.of("date", "weekday", "relative_day"))


def _date(value: Reading, text: Reading, today: Today) -> float:
    wanted, there = _days(value, today), _days(text, today)
    if wanted & there:
        return SAME
    for month, day in wanted:
        if any(day == one and (not month or not other) for other, one in there):
            return HALF_OPEN
    if {day for _, day in wanted} & text.numbers:
        return DAY_ONLY
    if today is None and (text.of("weekday", "relative_day") or not wanted):
        return UNKNOWN_DAY
    return AGAINST if there and wanted else ABSENT


def _days(reading: Reading, today: Today) -> frozenset[tuple[int, int]]:
    """The days that a text names, as (month, day of the month); month 0 where it is open. A weekday or "tomorrow" is
    one only where it is known what today is."""
    found: set[tuple[int, int]] = set()
    for fact in reading.facts:
        match fact.kind:
            case "date":
                rest = fact.value[2:] if fact.value.startswith("--") else fact.value.partition("-")[2]
                month, _, day = rest.partition("-")
                if month.isdigit() and day.isdigit():
                    found.add((int(month), int(day)))
            case "ordinal" if fact.value.isdigit() and int(fact.value) < 32:
                found.add((0, int(fact.value)))
            case "relative_day" if today and fact.value.lstrip("+-").isdigit():
                then = today + datetime.timedelta(days=int(fact.value))
                found.add((then.month, then.day))
            case "weekday" if today and fact.value in _WEEKDAYS:
                ahead = (_WEEKDAYS.index(fact.value) - today.weekday()) % 7
                # "Next Monday" is the coming one to some, the one after it to others.
                for days in (ahead, ahead + 7):
                    then = today + datetime.timedelta(days=days)
                    found.add((then.month, then.day))
            case _:
                pass
    return frozenset(found)


def _number(value: Reading, text: Reading, today: Today) -> float:
    if value.numbers & text.numbers:
        return SAME
    number = max((_worth(fact) for fact in value.of("money", "number")), default=-1)
    number = number if number >= 0 else max(value.numbers, default=-1)
    worth = {_worth(fact) for fact in text.of("number", "money", "year", "ordinal")}
    if number in worth:
        return SAME
    if 1900 <= number < 2100 and (
        number % 100 in text.numbers or (today and today.year - number in text.numbers)
    ):
        return DAY_ONLY
    words = set(text.words)
    if number == 1 and {"a", "an", "single", "myself", "alone", "me", "i'm"} & words:
        return 0.7
    if number == 2 and {"couple", "pair", "both", "double"} & words:
        return ALIAS
    if number == 0 and ({"no", "any", "direct", "nonstop"} & words):
        return ALIAS
    return AGAINST if text.numbers else ABSENT


def _worth(fact: Fact) -> int:
    figures = fact.value.rpartition(" ")[2].partition(".")[0]
    return int(figures) if figures.isdigit() else -1


def _spelled(core: tuple[str, ...], text: Reading) -> float:
    """How much of a name stands in the text, in whatever spelling."""
    joined = "".join(core)
    if len(joined) >= 5:
        best = max(
            (alike(joined, candidate) for candidate in _windows(text.words, len(core), len(joined))),
            default=0.0,
        )
        if best >= LEAST_SPELLING:
            return best - 0.05
    if len(core) >= 2 and "".join(word[0] for word in core) in text.words:
        return 0.85
    content = [word for word in core if word not in _SMALL]
    if not content:
        return 0.0
    near = sum(any(_same_word(word, other) for other in text.words) for word in content)
    share = near / len(content)
    return 0.9 * share if len(content) > 1 or share == 1 else 0.0


def _windows(words: tuple[str, ...], many: int, letters: int) -> Iterable[str]:
    """Neighbouring words joined, about as many as the name has and about as long."""
    for length in range(max(1, many - 1), many + 2):
        for at in range(len(words) - length + 1):
            joined = "".join(words[at : at + length])
            if 0.7 * letters <= len(joined) <= 1.4 * letters:
                yield joined


def _same_word(one: str, other: str) -> bool:
    if one == other or (len(one) > 3 and one.rstrip("s") == other.rstrip("s")):
        return True
    return len(one) >= 4 and len(other) >= 4 and alike(one, other) >= 0.88


@lru_cache(maxsize=65_536)
def alike(one: str, other: str) -> float:
    """Jaro and Winkler's similarity of two spellings (Winkler 1990): 1 equal, 0 nothing in common."""
    if one == other:
        return 1.0
    if abs(len(one) - len(other)) > max(len(one), len(other)) // 2:
        return 0.0
    ours, theirs = set(one), set(other)
    if len(ours & theirs) < 0.6 * len(ours | theirs):
        # Most pairs of words are as different as that, and this is the cheapest way to see it.
        return 0.0
    reach = max(max(len(one), len(other)) // 2 - 1, 0)
    taken = [False] * len(other)
    matched: list[str] = []
    for at, letter in enumerate(one):
        for place in range(max(0, at - reach), min(len(other), at + reach + 1)):
            if not taken[place] and other[place] == letter:
                taken[place] = True
                matched.append(letter)
                break
    if not matched:
        return 0.0
    answering = [letter for letter, hit in zip(other, taken, strict=True) if hit]
    crossed = sum(left != right for left, right in zip(matched, answering, strict=True)) / 2
    many = len(matched)
    jaro = (many / len(one) + many / len(other) + (many - crossed) / many) / 3
    prefix = 0
    for left, right in zip(one[:4], other[:4], strict=False):
        if left != right:
            break
        prefix += 1
    return jaro + 0.1 * prefix * (1 - jaro)


def _meant(words: tuple[str, ...], text: Reading, related: Related) -> float:
    """The best word of the same meaning for each word of a value; the weakest of them decides."""
    content = [word for word in words if word not in _SMALL and not word.isdigit()]
    if not content or len(content) > 3:
        return 0.0
    best = [
        max((_STRENGTH.get(related(word, other), 0.0) for other in text.words if len(other) > 2), default=0.0)
        for word in content
    ]
    return fsum(best) / len(best)


_STRENGTH = {"same": ALIAS, "synonym": SYNONYM, "kind": KIND_OF}


def value_of(text: str, facts: tuple[Fact, ...]) -> Value:
    """Returns a value with its words and what was read from it."""
    words = words_of(text)
    numbers = frozenset(
        int(part) for word in words for part in word.split(":") if part.isdigit() and len(part) < 10
    )
    return Value(text, words, Reading(text, words, facts, numbers))
