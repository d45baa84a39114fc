"""One form for what may be said and typed in many ways, in which two texts can be compared word by word.

Lower case, contractions opened, numbers as digits, times, dates and amounts in one spelling; fillers, manners and what
the speaker took back are left out. The facts of the form are the facts of the text (all but ``withdrawn``).
"""

from modalities.text.facts.fact import Fact
from modalities.text.facts.reading import read
from modalities.text.facts.sentence import Found, Sentence, cut, vocabulary

_FILLERS = vocabulary("uh um uhm umm hm hmm mm mhm er erm ah oh")
_MANNERS = vocabulary("please pls plz kindly thanks thx thank hello hi hey okay ok")
_THANKED = vocabulary("you")
_ASKING = {("can", "you"), ("could", "you"), ("would", "you"), ("will", "you")}
"""Openings that ask for what follows, and say nothing of it."""

_LATEST_OPENING = 4
"""Words that may stand before such an opening."""

_IRREGULAR = {
    "won't": "will not",
    "can't": "can not",
    "shan't": "shall not",
    "ain't": "is not",
    "wont": "will not",
    "cant": "can not",
    "cannot": "can not",
    "aint": "is not",
    "let's": "let us",
    "gonna": "going to",
    "wanna": "want to",
    "gotta": "got to",
    "gimme": "give me",
}
_TYPED = {
    word: f"{word[:-2]} not"
    for word in vocabulary(
        "dont doesnt didnt isnt arent wasnt werent wouldnt couldnt shouldnt havent hasnt hadnt mustnt"
    )
}
_OPENED = {**_IRREGULAR, **_TYPED}
_ENDINGS = {"n't": " not", "'m": " am", "'re": " are", "'ve": " have", "'ll": " will", "'d": " would"}
_BEFORE_IS = vocabulary("what it that there he she who where how when why here")
"""Words whose "'s" is a verb; behind others it is a possessive, and stays."""

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_LEFT_AS_SAID = vocabulary("negation negated polarity withdrawn half_day")
_DAYS = {"+0": "today", "+1": "tomorrow", "-1": "yesterday"}
_UNITS = ((86_400, "days"), (3_600, "hours"), (60, "minutes"), (1, "seconds"))
_CURRENCIES = {"USD": "dollars", "GBP": "pounds", "EUR": "euros", "INR": "rupees", "JPY": "yen"}


def normal_form(text: str) -> str:
    """Returns the form in which a text is compared, words apart by single spaces; "" where nothing is left."""
    sentence = cut(text)
    read(sentence)
    return written(sentence)


def facts_and_form(text: str) -> tuple[tuple[Fact, ...], str]:
    """Returns `facts_of(text)` and `normal_form(text)`, reading the text once."""
    sentence = cut(text)
    read(sentence)
    return sentence.facts(), written(sentence)


def written(sentence: Sentence) -> str:
    """Returns the normal form of a sentence that has been read."""
    halves = {one.first: one.value for one in sentence.found if one.kind == "half_day"}
    rendered = {
        one.first: (one.stop, _render(one, sentence.words[one.first], halves.get(one.first, "")))
        for one in sentence.found
        if _is_rendered(one, sentence)
    }
    words: list[str] = []
    index, answered = 0, False
    while index < len(sentence.tokens):
        if sentence.dropped[index]:
            index += 1
        elif index in rendered:
            stop, form = rendered[index]
            _append(words, form, parted=answered or sentence.apart(index))
            index, answered = stop, False
        else:
            skipped = _manners(sentence, index)
            if skipped:
                index = skipped
                continue
            _append(words, _word(sentence, index), parted=answered or sentence.apart(index))
            answered = index in sentence.answers
            index += 1
    return " ".join(words)


def _append(words: list[str], form: str, *, parted: bool) -> None:
    """Adds a form. A comma stays between two numbers, and behind a "no" that stands for itself: it carries meaning."""
    if words and parted and (words[-1] == "no" or (words[-1][-1].isdecimal() and form[:1].isdecimal())):
        words[-1] += ","
    words.append(form)


def _is_rendered(one: Found, sentence: Sentence) -> bool:
    if one.kind in _LEFT_AS_SAID or sentence.dropped[one.first]:
        return False
    return one.kind != "relative_day" or (one.value in _DAYS and one.stop - one.first == 1)


def _render(one: Found, word: str, half: str) -> str:
    """The form of a fact that begins with `word`, and with a half of the day if `half` says so."""
    match one.kind:
        case "ordinal":
            return _ordinal(int(one.value))
        case "percent":
            return f"{one.value} percent"
        case "money":
            code, _, amount = one.value.partition(" ")
            return f"{amount.removesuffix('.00')} {_CURRENCIES[code]}"
        case "duration":
            return _duration(one.value)
        case "time":
            return _time(one.value, half)
        case "date":
            return _date(one.value)
        case "relative_day":
            return "tonight" if word == "tonight" else _DAYS[one.value]
        case "spelling":
            return " ".join(one.value)
        case _:
            return one.value


def _ordinal(value: int) -> str:
    ending = "th" if 10 < value % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return f"{value}{ending}"


def _duration(seconds: str) -> str:
    if seconds.isdecimal():
        whole = int(seconds)
        for size, name in _UNITS:
            if whole and whole % size == 0:
                count = whole // size
                return f"{count} {name[:-1] if count == 1 else name}"
    return f"{seconds} seconds"


def _time(value: str, half: str) -> str:
    hour, _, minute = value.partition(":")
    if not half or (half == "am" and int(hour) > 12):
        return f"{value} {half}".rstrip()
    return f"{int(hour) % 12 or 12}:{minute} {half}"


def _date(value: str) -> str:
    if "/" in value:
        return value
    year, rest = ("", value[2:]) if value.startswith("--") else (f" {value[:4]}", value[5:])
    month, _, day = rest.partition("-")
    return f"{_MONTHS[int(month) - 1]}{f' {int(day)}' if day else ''}{year}"


def _manners(sentence: Sentence, index: int) -> int:
    """Where fillers and manners that begin at `index` end; 0 where none do."""
    word = sentence.words[index]
    if word == "thank":
        return index + 2 if sentence.word(index + 1) in _THANKED else 0
    if word in _FILLERS or word in _MANNERS:
        return index + 1
    asks = (word, sentence.word(index + 1)) in _ASKING and index + 2 < len(sentence.words)
    return index + 2 if asks and index <= _LATEST_OPENING and _opens(sentence, index) else 0


def _opens(sentence: Sentence, index: int) -> bool:
    """Whether nothing but fillers and manners stands before `index`."""
    before = sentence.words[:index]
    return all(sentence.dropped[at] or word in _MANNERS or word in _FILLERS for at, word in enumerate(before))


def _word(sentence: Sentence, index: int) -> str:
    word, token = sentence.words[index], sentence.tokens[index]
    if word in _OPENED:
        return _OPENED[word]
    possessive = sentence.text[token.stop : token.stop + 2].replace("’", "'").lower() == "'s"
    if possessive:
        if word == "let":
            return "let us"
        return f"{word} is" if word in _BEFORE_IS else f"{word}'s"
    if "'" in word:
        for ending, opened in _ENDINGS.items():
            if word.endswith(ending):
                return word[: -len(ending)] + opened
    return word
