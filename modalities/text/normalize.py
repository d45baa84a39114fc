"""One form for what may be written in many, so that transcripts can be compared word by word.

Lower case, no punctuation, numbers as words, no fillers. The same text written with digits or with words normalises to
the same words, as far as English reads a number in one way; where it has two (years), the common one is taken.
"""

import re
import unicodedata

FILLERS = frozenset({"uh", "um", "uhm", "umm", "hm", "hmm", "mm", "mhm", "er", "erm", "ah"})
"""Sounds of hesitation, left out of comparisons."""

_SMALL = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
)
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES = (
    (10**12, "trillion"),
    (10**9, "billion"),
    (10**6, "million"),
    (1_000, "thousand"),
    (100, "hundred"),
)
_IRREGULAR_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_YEARS = range(1_100, 2_100)
_LONGEST_NUMBER = 15
"""Digits of the longest number read as one."""

_LONGEST_UNGROUPED = 4
"""Digits without commas; longer strings that are not whole thousands are telephone numbers and the like."""

_TOKEN = re.compile(
    r"""
    (?P<money>[$£€]\d[\d,]*(?:\.\d+)?)
  | (?P<time>\d{1,2}:\d{2}(?!\d))
  | (?P<ordinal>\d[\d,]*(?:st|nd|rd|th)\b)
  | (?P<decade>\d+'?s\b)
  | (?P<series>\d+(?:[-.]\d+){2,})
  | (?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)
  | (?P<word>[^\W\d_]+(?:'[^\W\d_]+)*)
  | (?P<sign>[%&@+°])
    """,
    re.VERBOSE,
)
_SIGNS = {"%": "percent", "&": "and", "@": "at", "+": "plus", "°": "degrees"}
_CURRENCIES = {"$": ("dollar", "dollars"), "£": ("pound", "pounds"), "€": ("euro", "euros")}
_VARIANTS = {
    "ok": "okay",
    "mr": "mister",
    "dr": "doctor",
    "mrs": "missus",
    "vs": "versus",
    "alright": "all right",
}


def number_words(value: int) -> str:
    """Returns a whole number in English words without "and" (``two hundred five``)."""
    if value < 0:
        return "minus " + number_words(-value)
    if value < 20:
        return _SMALL[value]
    if value < 100:
        tens, ones = divmod(value, 10)
        return _TENS[tens] + (f" {_SMALL[ones]}" if ones else "")
    for scale, name in _SCALES:
        if value >= scale:
            many, rest = divmod(value, scale)
            return f"{number_words(many)} {name}" + (f" {number_words(rest)}" if rest else "")
    raise AssertionError("unreachable: every number of 100 or more has a scale")


def normalize(text: str, *, keep_fillers: bool = False) -> list[str]:
    """Returns the words of `text` in the form in which they are compared."""
    plain = unicodedata.normalize("NFKC", text).lower().replace("’", "'").replace("‘", "'")
    words: list[str] = []
    for found in _TOKEN.finditer(plain):
        words.extend(_read(found).split())
    words = _without_and(words)
    return words if keep_fillers else [word for word in words if word not in FILLERS]


def word_error_rate(reference: str, hypothesis: str, *, keep_fillers: bool = False) -> float:
    """Returns (substitutions + deletions + insertions) / words of the reference, after normalising both.

    An empty reference gives 0.0 for an empty hypothesis and 1.0 for any other.
    """
    wanted = normalize(reference, keep_fillers=keep_fillers)
    given = normalize(hypothesis, keep_fillers=keep_fillers)
    if not wanted:
        return 1.0 if given else 0.0
    return word_errors(wanted, given) / len(wanted)


def word_errors(wanted: list[str], given: list[str]) -> int:
    """Returns the least number of words to change, drop or add (Levenshtein) to make `given` out of `wanted`."""
    row = list(range(len(given) + 1))
    for i, word in enumerate(wanted, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(given, 1):
            best = min(diagonal + (word != other), row[j] + 1, row[j - 1] + 1)
            diagonal, row[j] = row[j], best
    return row[-1]


def _read(found: re.Match[str]) -> str:
    """Reads one token aloud."""
    kind, token = found.lastgroup, found.group()
    match kind:
        case "money":
            return _read_money(token)
        case "time":
            hour, minute = token.split(":")
            past = "" if minute == "00" else ("oh " if minute[0] == "0" else "") + number_words(int(minute))
            return f"{number_words(int(hour))} {past}"
        case "ordinal":
            return _ordinal(_whole(token[:-2].replace(",", "")))
        case "decade":
            return _plural(_read_number(token.rstrip("s").rstrip("'")))
        case "series":
            return _digits(re.sub(r"\D", "", token))
        case "number":
            return _read_number(token)
        case "sign":
            return _SIGNS[token]
        case _:
            return _VARIANTS.get(token, token)


def _read_number(token: str) -> str:
    if "." in token:
        whole, fraction = token.split(".", 1)
        return f"{_read_number(whole)} point {_digits(fraction)}"
    digits = token.replace(",", "")
    if _is_code(token, digits):
        return _digits(digits)
    value = int(digits)
    if len(token) == 4 and value in _YEARS and value % 1_000 >= 10:
        century, year = divmod(value, 100)
        if year == 0:
            return f"{number_words(century)} hundred"
        return f"{number_words(century)} {'oh ' if year < 10 else ''}{number_words(year)}"
    return number_words(value)


def _whole(digits: str) -> str:
    return _digits(digits) if len(digits) > _LONGEST_NUMBER else number_words(int(digits))


def _is_code(token: str, digits: str) -> bool:
    """Whether digits are read one by one: too long, a leading zero, or ungrouped like a telephone number."""
    if len(digits) > _LONGEST_NUMBER or (len(digits) > 1 and digits[0] == "0"):
        return True
    return "," not in token and len(digits) > _LONGEST_UNGROUPED and not digits.endswith("000")


def _read_money(token: str) -> str:
    one, many = _CURRENCIES[token[0]]
    whole, _, cents = token[1:].replace(",", "").partition(".")
    amount = f"{_whole(whole)} {one if whole == '1' else many}"
    if len(cents) == 2 and int(cents):
        return f"{amount} {number_words(int(cents))} cents"
    return amount if not cents or not int(cents) else f"{_read_number(token[1:])} {many}"


def _digits(digits: str) -> str:
    return " ".join(_SMALL[int(digit)] for digit in digits)


def _ordinal(words: str) -> str:
    head, _, last = words.rpartition(" ")
    if last in _IRREGULAR_ORDINALS:
        last = _IRREGULAR_ORDINALS[last]
    elif last.endswith("y"):
        last = last[:-1] + "ieth"
    else:
        last += "th"
    return f"{head} {last}".strip()


def _plural(words: str) -> str:
    return words[:-1] + "ies" if words.endswith("y") else words + "s"


def _without_and(words: list[str]) -> list[str]:
    """Leaves out the "and" inside a number (``two hundred and five``)."""
    numbers = {*_SMALL, *_TENS}
    return [
        word
        for index, word in enumerate(words)
        if not (
            word == "and"
            and 0 < index < len(words) - 1
            and words[index - 1] in {"hundred", "thousand"}
            and words[index + 1] in numbers
        )
    ]
