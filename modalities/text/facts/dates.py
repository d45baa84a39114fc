"""Weekdays, relative days, dates and years."""

from modalities.text.facts.amounts import AMOUNT_WORDS
from modalities.text.facts.sentence import Number, Sentence

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sept sep",
            "october oct",
            "november nov",
            "december dec",
        ),
        1,
    )
    for name in names.split()
}
_FULL_MONTHS = frozenset(name for name in _MONTHS if len(name) > 4 or name in {"june", "july"}) - {"march"}
_BEFORE_MONTH = frozenset(
    {"in", "of", "next", "last", "this", "until", "till", "since", "every", "during", "by", "for"}
)
_WEEKDAYS = {
    f"{stem}{ending}": f"{stem}day"
    for stem in ("mon", "tues", "wednes", "thurs", "fri", "satur", "sun")
    for ending in ("day", "days")
}
_SHORT_WEEKDAYS = {
    "mon": "monday",
    "tue": "tuesday",
    "tues": "tuesday",
    "wed": "wednesday",
    "thu": "thursday",
    "thur": "thursday",
    "thurs": "thursday",
    "fri": "friday",
    "sat": "saturday",
    "sun": "sunday",
}
_BEFORE_DAY = frozenset({"on", "next", "this", "last", "every", "until", "by", "till", "coming", "for"})
_DAYS = {
    "today": 0,
    "tonight": 0,
    "tomorrow": 1,
    "tmrw": 1,
    "tmr": 1,
    "tomorow": 1,
    "tommorow": 1,
    "tommorrow": 1,
}
_DAYS |= {"yesterday": -1}
_STEPS = {
    "this": 0,
    "next": 1,
    "last": -1,
    "coming": 0,
    "previous": -1,
    "current": 0,
    "past": -1,
    "following": 1,
}
_SPANS = frozenset({"week", "weekend", "month", "year"})
_PARTS_OF_DAY = frozenset({"morning", "afternoon", "evening", "night"})


def read(sentence: Sentence) -> None:
    """Adds weekdays, relative days, dates and years."""
    for index, word in enumerate(sentence.words):
        if sentence.taken[index]:
            continue
        if word in _MONTHS:
            _month(sentence, index, _MONTHS[word])
        elif word in _WEEKDAYS:
            _weekday(sentence, index, _WEEKDAYS[word])
        elif word in _SHORT_WEEKDAYS and sentence.word(index - 1) in _BEFORE_DAY:
            _weekday(sentence, index, _SHORT_WEEKDAYS[word])
        elif word in _DAYS:
            _relative_day(sentence, index, _DAYS[word])
        elif word in _STEPS:
            _stepped(sentence, index, _STEPS[word])
        elif word[0].isdecimal():
            _written(sentence, index)
    for number in list(sentence.numbers.values()):
        _year(sentence, number)


def _weekday(sentence: Sentence, index: int, day: str) -> None:
    sentence.add("weekday", day, index, index + 1)
    step = _STEPS.get(sentence.word(index - 1))
    if step is not None:
        sentence.add("relative_day", f"week{step:+d}", index - 1, index + 1)


def _relative_day(sentence: Sentence, index: int, days: int) -> None:
    first = index
    sign = {"after": 1, "before": -1}.get(sentence.word(index - 1))
    if days and sign == days and sentence.word(index - 2) == "day":
        days *= 2
        first = index - 2 - (sentence.word(index - 3) == "the")
    sentence.add("relative_day", f"{days:+d}", first, index + 1)


def _stepped(sentence: Sentence, index: int, step: int) -> None:
    following = sentence.word(index + 1)
    if following in _SPANS:
        sentence.add("relative_day", f"{following}{step:+d}", index, index + 2)
    elif following in _PARTS_OF_DAY and sentence.words[index] in {"this", "last"}:
        sentence.add("relative_day", f"{step:+d}", index, index + 2, take=False)


def _month(sentence: Sentence, index: int, month: int) -> None:
    """Reads the date around a month's name: "the 3rd of June 2026", "May twenty-first", "in May"."""
    first, stop = index, index + 1
    day = _day_behind(sentence, index)
    if day is not None:
        stop = day.stop
    else:
        at = index - (sentence.word(index - 1) == "of")
        day = sentence.number_before(at)
        if day is not None and _is_day(sentence, day) and (day.ordinal or at == index):
            first = day.first - (sentence.word(day.first - 1) == "the")
        else:
            day = None
    word = sentence.words[index]
    if day is None and not (word in _FULL_MONTHS or (len(word) > 2 and _is_month(sentence, index))):
        return
    year, stop = _year_behind(sentence, stop)
    start = f"{year:04d}-" if year else "--"
    sentence.add("date", f"{start}{month:02d}" + (f"-{day.whole:02d}" if day else ""), first, stop)


def _is_month(sentence: Sentence, index: int) -> bool:
    """Whether "may" or "march" is the month: a word that goes before months, or a year behind it, shows it."""
    if sentence.words[index] not in {"may", "march"}:
        return False
    return sentence.word(index - 1) in _BEFORE_MONTH or _year_behind(sentence, index + 1)[0] > 0


def _day_behind(sentence: Sentence, index: int) -> Number | None:
    at = index + 1 + (sentence.word(index + 1) == "the")
    day = sentence.numbers.get(at)
    if (
        day is None
        or not _is_day(sentence, day)
        or (sentence.word(day.stop) == ":" and sentence.glued(day.stop))
    ):
        return None
    return day


def _is_day(sentence: Sentence, day: Number) -> bool:
    return 1 <= day.whole <= 31 and sentence.free(day.first, day.stop)


def _year_behind(sentence: Sentence, index: int) -> tuple[int, int]:
    number = sentence.numbers.get(index)
    if number is None or not sentence.free(index, number.stop):
        return 0, index
    return _year_value(sentence, number) or (0, index)


def _year_value(sentence: Sentence, number: Number) -> tuple[int, int] | None:
    """The year that begins at a number, and where it ends: ``1984``, "nineteen eighty four", "two thousand and ten"."""
    if 1_900 <= number.whole <= 2_099:
        return number.whole, number.stop
    if number.whole not in {18, 19, 20} or number.ordinal or not number.spoken:
        return None
    rest_at = number.stop + (sentence.word(number.stop) in {"oh", "o"})
    rest = sentence.numbers.get(rest_at)
    if rest is None or rest.ordinal or sentence.apart(number.stop) or not rest.spoken:
        return None
    if (rest.whole >= 10) == (rest_at > number.stop) or not 1 <= rest.whole <= 99:
        return None
    return number.whole * 100 + rest.whole, rest.stop


def _year(sentence: Sentence, number: Number) -> None:
    """Adds a number from 1900 to 2099 as a year, whatever stands before it: it agrees with the plain number too."""
    year = _year_value(sentence, number) if not number.ordinal else None
    if (
        year is not None
        and sentence.free(number.first, year[1])
        and sentence.word(year[1]) not in AMOUNT_WORDS
    ):
        sentence.add("year", str(year[0]), number.first, year[1])


def _written(sentence: Sentence, index: int) -> None:
    """Reads ``21/5``, ``5/21/2026``, ``2026-05-21``."""
    if sentence.word(index + 1) == "/" and sentence.glued(index + 1) and sentence.glued(index + 2):
        _slashed(sentence, index)
        return
    tokens = sentence.tokens
    if index + 2 >= len(tokens) or tokens[index + 1].gap != "-" or tokens[index + 2].gap != "-":
        return
    parts = sentence.words[index : index + 3]
    if all(part.isdecimal() for part in parts) and len(parts[0]) == 4:
        year, month, day = map(int, parts)
        if 1 <= month <= 12 and 1 <= day <= 31:
            sentence.add("date", f"{year:04d}-{month:02d}-{day:02d}", index, index + 3)


def _slashed(sentence: Sentence, index: int) -> None:
    one, two = sentence.words[index], sentence.word(index + 2)
    if not (one.isdecimal() and two.isdecimal() and len(one) <= 2 and len(two) <= 2):
        return
    a, b = int(one), int(two)
    stop, year = index + 3, ""
    if sentence.word(stop) == "/" and sentence.glued(stop) and sentence.word(stop + 1).isdecimal():
        year = sentence.words[stop + 1]
        year = year if len(year) == 4 else f"20{year}"
        stop += 2
    if a > 12 and 1 <= b <= 12 and a <= 31:
        value = f"{b:02d}-{a:02d}"
    elif b > 12 and 1 <= a <= 12 and b <= 31:
        value = f"{a:02d}-{b:02d}"
    elif 1 <= a <= 12 and 1 <= b <= 12:
        value = f"{a:02d}-{b:02d}" if a == b else ""
        if not value:
            sentence.add("date", f"{a}/{b}" + (f"/{year}" if year else ""), index, stop)
            return
    else:
        return
    sentence.add("date", f"{year}-{value}" if year else f"--{value}", index, stop)
