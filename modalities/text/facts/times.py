"""Times of day and halves of the day, as they are said and written."""

from modalities.text.facts.amounts import AMOUNT_WORDS
from modalities.text.facts.sentence import Number, Sentence, vocabulary

_HALVES = {"am": "am", "pm": "pm"}
_PARTS_OF_DAY = {
    "morning": "am",
    "afternoon": "pm",
    "evening": "pm",
    "night": "pm",
    "mornings": "am",
    "evenings": "pm",
}
_PARTS_OF_DAY |= {"afternoons": "pm", "nights": "pm"}
_NAMED = {"noon": ("12:00", "pm"), "midday": ("12:00", "pm"), "midnight": ("00:00", "am")}
_BEFORE_TIME = frozenset(
    {"at", "until", "till", "til", "by", "before", "after", "around", "from", "since", "about", "to", "@"}
)
_AFTER_TIME = vocabulary(
    "thanks thank thx pls ok on tomorrow today tonight for to and or in with please that every this next the if when "
    "so because then but until till monday tuesday wednesday thursday friday saturday sunday sharp instead not no i my "
    "me as a an am pm"
)
_MOSTLY_NOT_TIME = frozenset({"to", "about", "from"})
_OF_DAY = frozenset({"time", "half_day"})
_PAST = frozenset({"past", "after"})
_TO = frozenset({"to", "before", "til", "till", "of"})
_PAST_OR_TO = _PAST | _TO
_ROUND_MINUTES = frozenset({5, 10, 20, 25})
"""Minutes that are said before "past" and "to" without the word; with others "to" joins a range."""
_CALCULATING = frozenset(
    {"divided", "multiplied", "increased", "decreased", "reduced", "raised", "up", "down"}
)
_MINUTE_WORDS = frozenset({"minute", "minutes", "min", "mins"})


def read_times(sentence: Sentence) -> None:
    """Adds times of day, each with its half of the day where that is said beside it."""
    index = 0
    while index < len(sentence.tokens):
        index = _time_at(sentence, index)


def clock(hour: int, minute: int, half: str) -> str:
    """Returns a time's canonical form; `half`: am, pm or "" where it is open."""
    if half == "pm" and hour < 12:
        hour += 12
    elif half == "am" and hour == 12:
        hour = 0
    if half or hour > 12 or hour == 0:
        return f"{hour:02d}:{minute:02d}"
    return f"{hour}:{minute:02d}"


def _time_at(sentence: Sentence, index: int) -> int:
    """Reads a time that begins at `index`, and returns where to go on."""
    if not sentence.taken[index]:
        word = sentence.words[index]
        if word in _NAMED:
            value, half = _NAMED[word]
            sentence.add("time", value, index, index + 1)
            sentence.add("half_day", half, index, index + 1)
        elif word in {"half", "quarter"}:
            return _relative(sentence, index, index + 1, 30 if word == "half" else 15) or index + 1
        elif (number := sentence.numbers.get(index)) is not None and not number.ordinal:
            return _from_number(sentence, number) or number.stop
    return index + 1


def _from_number(sentence: Sentence, number: Number) -> int | None:
    if not sentence.free(number.first, number.stop):
        return None
    if number.whole < 0:
        return _dotted(sentence, number)
    stop = number.stop
    counted = sentence.word(stop) in _MINUTE_WORDS
    at = stop + counted
    is_range = sentence.word(number.first - 1) == "from"
    if (counted or number.whole in _ROUND_MINUTES) and sentence.word(at) in _PAST_OR_TO and not is_range:
        done = _relative(sentence, number.first, at, number.whole)
        if done is not None:
            return done
    named = _NAMED.get(sentence.word(stop))
    if named is not None and number.whole == 12:
        sentence.add("time", named[0], number.first, stop + 1)
        sentence.add("half_day", named[1], number.first, stop + 1)
        return stop + 1
    return _hour_and_minute(sentence, number)


def _relative(sentence: Sentence, first: int, at: int, minutes: int) -> int | None:
    """Reads "half past seven", "ten to eight", "half seven" whose "past" or "to" stands at `at`."""
    word = sentence.word(at)
    hour_at = at + 1 if word in _PAST_OR_TO else at
    if hour_at == at and minutes != 30:
        return None
    hour = sentence.numbers.get(hour_at)
    if hour is None or hour.ordinal or not 1 <= hour.whole <= 12 or not sentence.free(hour_at, hour.stop):
        named = _NAMED.get(sentence.word(hour_at))
        if named is None or hour_at == at:
            return None
        return _shifted(
            sentence, first, hour_at + 1, (0 if named[1] == "am" else 12) * 60, minutes, word, named[1]
        )
    if word == "of" and minutes != 15:
        return None
    if word in {"before", "after"} and minutes % 5:
        return None
    if hour_at == at and sentence.word(hour.stop) in AMOUNT_WORDS:
        return None
    stop = hour.stop + (sentence.word(hour.stop) == "o'clock")
    if sentence.word(stop) in AMOUNT_WORDS:
        return None
    half, stop = _half(sentence, stop, hour.whole)
    base = int(clock(hour.whole, 0, half).split(":")[0]) * 60 if half else hour.whole * 60
    if sentence.word(first - 1) == "a" and sentence.words[first] == "quarter":
        first -= 1
    return _shifted(sentence, first, stop, base, minutes, word, half)


def _shifted(sentence: Sentence, first: int, stop: int, base: int, minutes: int, word: str, half: str) -> int:
    total = base - minutes if word in _TO else base + minutes
    hour, minute = divmod(total % 1_440, 60)
    if half:
        _add(sentence, f"{hour:02d}:{minute:02d}", "am" if hour < 12 else "pm", first, stop)
    else:
        _add(sentence, clock(hour or 12, minute, ""), "", first, stop)
    return stop


def _hour_and_minute(sentence: Sentence, number: Number) -> int | None:
    words, stop, hour = sentence.words, number.stop, number.whole
    prompted = (
        sentence.word(number.first - 1) in _BEFORE_TIME
        and sentence.word(number.first - 2) not in _CALCULATING
    )
    if sentence.word(stop) == ":" and sentence.glued(stop):
        return _written(sentence, number)
    if sentence.word(stop) == "o'clock" or (
        sentence.word(stop) == "o" and sentence.word(stop + 1) == "clock"
    ):
        end = stop + (1 if words[stop] == "o'clock" else 2)
        return _finish(sentence, number.first, end, hour, 0) if hour <= 24 else None
    if 100 <= hour <= 2359 and hour % 100 < 60 and sentence.word(stop) not in AMOUNT_WORDS:
        half = _half(sentence, stop, hour // 100)[0]
        zero = words[number.first].startswith("0")
        if half or (
            prompted and words[number.first - 1] in {"at", "until", "by"} and (hour // 100 <= 12 or zero)
        ):
            return _finish(sentence, number.first, stop, hour // 100, hour % 100)
    if not number.spoken and "." in words[number.first]:
        return None
    if hour > 23:
        return None
    minutes = _minutes(sentence, number, prompted)
    if minutes is not None:
        return _finish(sentence, number.first, minutes[1], hour, minutes[0])
    if _half(sentence, stop, hour)[0]:
        return _finish(sentence, number.first, stop, hour, 0)
    following = sentence.word(stop)
    if not prompted or not 1 <= hour <= 12 or not (sentence.apart(stop) or following in _AFTER_TIME):
        return None
    if words[number.first - 1] in _MOSTLY_NOT_TIME and not _in_range(sentence, number):
        return None
    return _finish(sentence, number.first, stop, hour, 0)


def _in_range(sentence: Sentence, number: Number) -> bool:
    """Whether "from six to eight" joins this number to another time."""
    if sentence.words[number.first - 1] == "from":
        return sentence.word(number.stop) in _TO and number.stop + 1 in sentence.numbers
    return bool(sentence.taken[number.first - 2]) and number.first > 1 and sentence.found[-1].kind in _OF_DAY


def _minutes(sentence: Sentence, number: Number, prompted: bool) -> tuple[int, int] | None:
    """The minutes said behind an hour ("seven thirty", "seven oh five") and where they end."""
    stop = number.stop
    if sentence.word(stop) in {"oh", "o"}:
        minute = sentence.numbers.get(stop + 1)
        if minute is not None and 1 <= minute.whole <= 9 and not minute.ordinal:
            return minute.whole, minute.stop
        return None
    minute = sentence.numbers.get(stop)
    if minute is None or minute.ordinal or sentence.apart(stop) or number.whole < 1:
        return None
    if not 10 <= minute.whole <= 59 or sentence.word(minute.stop) in AMOUNT_WORDS:
        return None
    if minute.stop in sentence.numbers and not sentence.apart(minute.stop):
        return None
    if _half(sentence, minute.stop, number.whole)[0] or prompted:
        return minute.whole, minute.stop
    likely = number.spoken and minute.spoken and number.whole <= 12
    alone = sentence.number_before(number.first) is None
    ends = sentence.apart(minute.stop) or sentence.word(minute.stop) in _AFTER_TIME
    return (minute.whole, minute.stop) if likely and alone and ends else None


def _written(sentence: Sentence, number: Number) -> int | None:
    """Reads ``19:30`` and ``19:30:15``; seconds are left out."""
    at = number.stop + 1
    if (
        not sentence.glued(at)
        or number.whole > 24
        or len(sentence.word(at)) != 2
        or not sentence.word(at).isdecimal()
    ):
        return None
    minute = int(sentence.word(at))
    if minute > 59:
        return None
    stop = at + 1
    if sentence.word(stop) == ":" and sentence.glued(stop) and sentence.word(stop + 1).isdecimal():
        stop += 2
    zero = sentence.words[number.first].startswith("0")
    return _finish(sentence, number.first, stop, number.whole, minute, known="am" if zero else "")


def _dotted(sentence: Sentence, number: Number) -> int | None:
    """Reads "8.30", as recognisers and the British write a time: behind "at", or before a half of the day."""
    hour, dot, minute = sentence.words[number.first].partition(".")
    if not dot or len(minute) != 2 or not (hour + minute).isdecimal() or int(hour) > 23 or int(minute) > 59:
        return None
    if sentence.word(number.stop) in AMOUNT_WORDS:
        return None
    prompted = sentence.word(number.first - 1) in {"at", "until", "by", "@"}
    if not prompted and not _half(sentence, number.stop, int(hour))[0]:
        return None
    return _finish(sentence, number.first, number.stop, int(hour), int(minute))


def _finish(sentence: Sentence, first: int, stop: int, hour: int, minute: int, known: str = "") -> int:
    """Adds a time with the half of the day that follows it or that its hour tells."""
    half, stop = _half(sentence, stop, hour)
    if sentence.word(stop) == "sharp":
        stop += 1
    hour %= 24
    told = half or known or ("pm" if hour > 12 else "am" if hour == 0 else "")
    _add(sentence, clock(hour, minute, told), told, first, stop)
    return stop


def _add(sentence: Sentence, value: str, half: str, first: int, stop: int) -> None:
    sentence.add("time", value, first, stop)
    if half:
        sentence.add("half_day", half, first, stop)


def _half(sentence: Sentence, index: int, hour: int) -> tuple[str, int]:
    """The half of the day said at `index` and where that ends; "" where none is."""
    word, following = sentence.word(index), sentence.word(index + 1)
    if word in _HALVES:
        return word, index + 1
    if word in {"a", "p"} and following == "m":
        return word + "m", index + 2
    if word == "in" and following == "the" and sentence.word(index + 2) in _PARTS_OF_DAY:
        part = sentence.word(index + 2)
        return ("am" if part == "night" and hour < 6 else _PARTS_OF_DAY[part]), index + 3
    if word == "at" and following == "night":
        return ("am" if hour < 6 or hour == 12 else "pm"), index + 2
    return "", index


def read_halves(sentence: Sentence) -> None:
    """Adds halves of the day that stand alone, and closes open times where the whole text tells one half only."""
    for index, word in enumerate(sentence.words):
        if word == "tonight":
            sentence.add("half_day", "pm", index, index + 1, take=False)
        elif sentence.taken[index]:
            continue
        elif word in _PARTS_OF_DAY and sentence.word(index - 1) not in {"good", "day", "all"}:
            sentence.add("half_day", _PARTS_OF_DAY[word], index, index + 1, take=False)
