"""Amounts with a unit: lengths of time, money, percentages."""

from decimal import Decimal

from modalities.text.facts.numbers import canonical
from modalities.text.facts.sentence import Number, Sentence, vocabulary

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
UNITS = {
    name: seconds
    for names, seconds in (
        ("second seconds sec secs", 1),
        ("minute minutes min mins", _MINUTE),
        ("hour hours hr hrs", _HOUR),
        ("day days", _DAY),
        ("week weeks", 7 * _DAY),
        ("fortnight fortnights", 14 * _DAY),
        ("month months", 30 * _DAY),
        ("year years", 365 * _DAY),
    )
    for name in names.split()
}
"""Seconds of a unit of time; a month counts 30 days, a year 365."""

_GLUED_UNITS = {"s": 1, "m": _MINUTE, "h": _HOUR, "d": _DAY}
_BEFORE_LENGTH = vocabulary("in for within after about takes take lasts than")
_AFTER_LENGTH = vocabulary("ago from later before earlier and")
_CURRENCIES = {
    name: code
    for names, code in (
        ("$ dollar dollars buck bucks usd", "USD"),
        ("£ pound pounds quid gbp", "GBP"),
        ("€ euro euros eur", "EUR"),
        ("rupee rupees inr", "INR"),
        ("yen jpy", "JPY"),
    )
    for name in names.split()
}
_SIGNS = frozenset("$£€")
_CENTS = frozenset({"cent", "cents", "penny", "pence"})
AMOUNT_WORDS = frozenset([*UNITS, *_CURRENCIES, *_CENTS, "%", "percent"])
"""Words that make the number before them an amount, so that it is no time of day."""


def read_percentages(sentence: Sentence) -> None:
    """Adds ``50 %``, "fifty percent", "fifty per cent"."""
    for index, word in enumerate(sentence.words):
        if word in {"%", "percent"}:
            stop = index + 1
        elif word == "per" and sentence.word(index + 1) == "cent":
            stop = index + 2
        else:
            continue
        number = sentence.number_before(index)
        if number is not None and sentence.free(number.first, stop):
            sentence.add("percent", canonical(number.value), number.first, stop)


def read_money(sentence: Sentence) -> None:
    """Adds ``$15.50``, "fifteen dollars (and) fifty (cents)", "ninety cents"."""
    words = sentence.words
    for index, word in enumerate(words):
        if word in _SIGNS:
            number = sentence.numbers.get(index + 1)
            if number is not None:
                _add_money(sentence, _CURRENCIES[word], number.value, index, number.stop)
        elif word in _CURRENCIES:
            number = sentence.number_before(index)
            if number is not None and sentence.free(number.first, index + 1):
                cents, stop = _cents(sentence, index + 1)
                _add_money(sentence, _CURRENCIES[word], number.value + cents, number.first, stop)
        elif word in _CENTS:
            number = sentence.number_before(index)
            if number is not None and sentence.free(number.first, index + 1):
                code = "GBP" if word == "pence" else "USD"
                _add_money(sentence, code, number.value / 100, number.first, index + 1)


def _cents(sentence: Sentence, index: int) -> tuple[Decimal, int]:
    """Cents said behind a currency, and the end of what was read."""
    joined = sentence.word(index) == "and"
    number = sentence.numbers.get(index + joined)
    if number is None or not 0 < number.whole < 100 or sentence.apart(index):
        return Decimal(0), index
    if sentence.word(number.stop) in _CENTS:
        return number.value / 100, number.stop + 1
    if joined or sentence.word(number.stop) in AMOUNT_WORDS or number.whole < 10:
        return Decimal(0), index
    return number.value / 100, number.stop


def _add_money(sentence: Sentence, code: str, value: Decimal, first: int, stop: int) -> None:
    sentence.add("money", f"{code} {value:.2f}", first, stop)


def read_durations(sentence: Sentence) -> None:
    """Adds "ninety minutes", "an hour and a half", "1 hour 30 minutes", ``1h30m`` in seconds."""
    index = 0
    while index < len(sentence.tokens):
        part = _part(sentence, index)
        if part is None:
            index += 1
            continue
        first, seconds, unit, stop = index, part[0], part[1], part[2]
        while (more := _further(sentence, stop, unit)) is not None:
            seconds, unit, stop = seconds + more[0], more[1], more[2]
        if sentence.free(first, stop):
            sentence.add("duration", canonical(seconds), first, stop)
        index = stop


def _part(sentence: Sentence, index: int) -> tuple[Decimal, int, int] | None:
    """One number and unit at `index`: seconds, seconds of the unit, end."""
    number = sentence.numbers.get(index)
    if number is not None:
        return None if number.ordinal else _counted(sentence, number)
    word = sentence.words[index]
    if word == "half" and sentence.word(index + 1) in {"a", "an"}:
        unit = UNITS.get(sentence.word(index + 2))
        return None if unit is None else (Decimal(unit) / 2, unit, index + 3)
    if word not in {"a", "an"}:
        return None
    following = sentence.word(index + 1)
    if following == "couple":
        at = index + 2 + (sentence.word(index + 2) == "of")
        unit = UNITS.get(sentence.word(at))
        return None if unit is None else (Decimal(2 * unit), unit, at + 1)
    share = {"half": Decimal("0.5"), "quarter": Decimal("0.25")}.get(following)
    if share is not None:
        at = index + 2 + (sentence.word(index + 2) == "of")
        at += sentence.word(at) in {"a", "an"}
        unit = UNITS.get(sentence.word(at))
        return None if unit is None else (share * unit, unit, at + 1)
    unit = UNITS.get(following)
    if unit is None or unit == 1 or following.endswith("s"):
        return None
    if unit >= _DAY and not _is_length(sentence, index):
        return None
    extra, stop = _and_a_half(sentence, index + 2)
    return (1 + extra) * unit, unit, stop


def _is_length(sentence: Sentence, index: int) -> bool:
    """Whether "a day" at `index` is a length of time, not any day ("what a day", "twice a day")."""
    return sentence.word(index - 1) in _BEFORE_LENGTH or sentence.word(index + 2) in _AFTER_LENGTH


def _counted(sentence: Sentence, number: Number) -> tuple[Decimal, int, int] | None:
    word = sentence.word(number.stop)
    if word == "of" and sentence.word(number.stop + 1) in {"a", "an"} and number.value < 1:
        unit = UNITS.get(sentence.word(number.stop + 2))
        return None if unit is None else (number.value * unit, unit, number.stop + 3)
    unit = UNITS.get(word)
    if unit is None and word in _GLUED_UNITS and sentence.glued(number.stop):
        unit = _GLUED_UNITS[word]
    if unit is None or (
        sentence.apart(number.stop) and sentence.tokens[number.stop].gap.strip() not in {"", "-"}
    ):
        return None
    extra, stop = _and_a_half(sentence, number.stop + 1)
    return (number.value + extra) * unit, unit, stop


def _and_a_half(sentence: Sentence, index: int) -> tuple[Decimal, int]:
    if sentence.word(index) == "and" and sentence.word(index + 1) == "a":
        share = {"half": Decimal("0.5"), "quarter": Decimal("0.25")}.get(sentence.word(index + 2))
        if share is not None and sentence.word(index + 3) not in {"past", "to"}:
            return share, index + 3
    return Decimal(0), index


def _further(sentence: Sentence, index: int, unit: int) -> tuple[Decimal, int, int] | None:
    """A smaller part that belongs to the same length of time: "(and) thirty minutes", the 30 of ``1h30``."""
    if index >= len(sentence.tokens):
        return None
    number = sentence.numbers.get(index)
    if number is not None and unit == _HOUR and sentence.glued(index):
        return number.value * _MINUTE, _MINUTE, number.stop + (sentence.word(number.stop) in {"m", "min"})
    at = index + (sentence.word(index) == "and")
    if at >= len(sentence.tokens) or at not in sentence.numbers:
        return None
    part = _part(sentence, at)
    return part if part is not None and part[1] < unit else None
