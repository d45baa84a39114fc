"""Numbers in words and digits: cardinals, decimals, fractions, ordinals. Words are read by text2num."""

import re
from decimal import Decimal

from text_to_num import find_numbers

from modalities.text.facts.sentence import Number, Sentence, vocabulary

_SCALES = {
    "hundred": 100,
    "thousand": 1_000,
    "k": 1_000,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
}
_WORDS = vocabulary(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fourty fifty sixty seventy eighty ninety hundred thousand million billion "
    "trillion first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth thirtieth fortieth fiftieth sixtieth seventieth "
    "eightieth ninetieth hundredth thousandth millionth"
)
_BEFORE_ORDINAL = vocabulary(
    "the my on january february march april may june july august september october november december"
)
_ONES_ORDINALS = vocabulary("first second third fourth fifth sixth seventh eighth ninth")
_SUFFIXES = frozenset({"st", "nd", "rd", "th"})
_PARTS = {
    "half": Decimal("0.5"),
    "halves": Decimal("0.5"),
    "quarter": Decimal("0.25"),
    "quarters": Decimal("0.25"),
    "third": Decimal(1) / 3,
    "thirds": Decimal(1) / 3,
    "fifths": Decimal("0.2"),
    "tenths": Decimal("0.1"),
}
_DIGITS = re.compile(r"\d")
_NOT_A_NUMBER_AFTER_ONE = frozenset({"of", "that", "which", "who"})
_DETERMINERS = frozenset(
    {"this", "that", "the", "which", "another", "any", "every", "no", "new", "next", "last", "each"}
)
_LONGEST_DIGITS = 15
"""Digits of the longest number compared as a number; longer ones are telephone numbers and the like."""


def canonical(value: Decimal) -> str:
    """Returns a number without trailing zeros, at most six decimals (``2.5``, ``1200``)."""
    if value == value.to_integral_value():
        return str(int(value))
    return str(value.quantize(Decimal("0.000001")).normalize())


def find(sentence: Sentence) -> None:
    """Finds the numbers of a sentence, for the readers that give them a meaning."""
    words = sentence.words
    spoken = not _WORDS.isdisjoint(words)
    if spoken:
        for one in find_numbers(sentence.tokens, "en", 0):
            if not _DIGITS.search(words[one.start]):
                _spoken(sentence, one.start, one.end, one.text, one.is_ordinal)
    for index, word in enumerate(words):
        if word[0].isdecimal() and index not in sentence.numbers:
            _written(sentence, index, word)
    _fractions(sentence)


def _spoken(sentence: Sentence, first: int, stop: int, text: str, ordinal: bool) -> None:
    digits = text.rstrip("stndrh") if ordinal else text
    word = sentence.words[first]
    if stop - first == 1 and word == "second" and sentence.word(first - 1) in {"a", "one", "per", "every"}:
        return
    if (
        ordinal
        and stop - first > 1
        and sentence.words[stop - 1] == "second"
        and not _is_dated(sentence, first)
    ):
        # "thirty second timer" is 30 of the unit; "the thirty second" stays an ordinal.
        stop, ordinal = stop - 1, False
        digits = str(int(digits) - 2)
    try:
        value = Decimal(digits)
    except ArithmeticError:
        return
    sentence.numbers[first] = Number(first, stop, value, ordinal, spoken=True)


def _is_dated(sentence: Sentence, first: int) -> bool:
    """Whether what stands before an ordinal shows that it is one."""
    return sentence.word(first - 1) in _BEFORE_ORDINAL


def _written(sentence: Sentence, index: int, word: str) -> None:
    digits = word.replace(",", "")
    if len(digits) > _LONGEST_DIGITS:
        return
    value = Decimal(digits)
    stop = index + 1
    following = sentence.word(stop)
    if following in _SUFFIXES and sentence.glued(stop):
        sentence.numbers[index] = Number(index, stop + 1, value, ordinal=True)
        return
    scale = _SCALES.get(following)
    if scale is not None and not sentence.apart(stop) and (following != "k" or sentence.glued(stop)):
        sentence.numbers.pop(stop, None)
        value, stop = value * scale, stop + 1
    sentence.numbers[index] = Number(index, stop, value)


def _fractions(sentence: Sentence) -> None:
    """Joins "20 third", "two and a half", "a half", "three quarters", "point five", "minus five" into one number."""
    words = sentence.words
    for index, word in enumerate(words):
        if word in _PARTS and sentence.word(index - 1) in {"a", "one"} and sentence.word(index - 2) == "and":
            before = sentence.number_before(index - 2)
            if before is not None and not before.ordinal:
                sentence.numbers.pop(index, None)
                sentence.numbers.pop(index - 1, None)
                joined = Number(before.first, index + 1, before.value + _PARTS[word], spoken=before.spoken)
                sentence.numbers[before.first] = joined
        elif word in _PARTS and word.endswith("s"):
            before = sentence.number_before(index)
            if before is not None and not before.ordinal and before.whole > 0:
                sentence.numbers.pop(index, None)
                value = before.value * _PARTS[word]
                sentence.numbers[before.first] = Number(before.first, index + 1, value, spoken=before.spoken)
        elif word in _ONES_ORDINALS and (before := sentence.number_before(index)) is not None:
            ordinal = sentence.numbers.get(index)
            if ordinal is not None and ordinal.whole < 10 and before.whole in range(20, 100, 10):
                del sentence.numbers[index]
                sentence.numbers[before.first] = Number(
                    before.first, index + 1, before.value + ordinal.value, ordinal=True, spoken=True
                )
        elif word in {"point", "minus", "negative"}:
            number = sentence.numbers.get(index + 1)
            if number is not None and not number.ordinal and number.whole >= 0:
                del sentence.numbers[index + 1]
                sign = -number.value if word != "point" else Decimal(f"0.{number.whole}")
                sentence.numbers[index] = Number(index, number.stop, sign, spoken=number.spoken)


def read(sentence: Sentence) -> None:
    """Adds the numbers and ordinals that no other reader has taken."""
    for number in sorted(sentence.numbers.values(), key=lambda one: one.first):
        if sentence.free(number.first, number.stop) and not _is_pronoun(sentence, number):
            kind = "ordinal" if number.ordinal else "number"
            sentence.add(kind, canonical(number.value), number.first, number.stop)


def _is_pronoun(sentence: Sentence, number: Number) -> bool:
    """Whether "one" stands for a thing ("the new one", "one of these"), not for a count."""
    if sentence.words[number.first] != "one" or number.stop - number.first > 1:
        return False
    following = sentence.word(number.stop)
    before = sentence.number_before(number.first)
    if before is not None and before.ordinal and not sentence.apart(number.first):
        return True
    return sentence.word(number.first - 1) in _DETERMINERS or following in _NOT_A_NUMBER_AFTER_ONE
