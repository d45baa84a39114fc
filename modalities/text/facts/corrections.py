"""Corrections inside one utterance: "at five, no, six", "not Boston, Austin". What was taken back stands no longer."""

import re
from collections.abc import Sequence
from decimal import Decimal

from modalities.text.facts.negation import is_negator
from modalities.text.facts.numbers import canonical
from modalities.text.facts.sentence import Found, Sentence, vocabulary
from modalities.text.facts.times import clock

_CUES = vocabulary("no nope sorry wait actually rather oops correction")
_PAIRED_CUES = {
    ("i", "mean"),
    ("i", "meant"),
    ("i", "said"),
    ("scratch", "that"),
    ("make", "that"),
    ("make", "it"),
}
_MARKS = _CUES | {second for _, second in _PAIRED_CUES} | {"not"}
_STRONG = vocabulary("sorry oops correction mean meant scratch")
"""Cues that need no comma before them."""
_ANSWERS = _CUES | vocabulary("yes yeah yep ok okay well hey please")
_AROUND_CUES = vocabulary("no or um uh er well sorry wait oh my mistake bad let's")
_LEADING = vocabulary("at for to on the in with by about a an from of it is as")
_LONGEST_CONTRAST = 3
_FURTHEST_BACK = 4
_LONGEST_FACT = 12
"""Words that a fact has at the most, on either side of a cue."""

_SENTENCE_END = re.compile(r"[.!?]")
_MANNERS = vocabulary("thanks thx thank please pls")
_SAYS_NO = vocabulary("now yet right really sure so too very at yet today necessarily exactly bad")
"""First words behind a "not" that is an answer ("not right now, thanks") and takes nothing back."""

_BEFORE_NOT = vocabulary(
    "do does did is am are was were be been will would can could should shall may might must have has had i you he she "
    "we they it to why or if please certainly definitely maybe let's probably just of course also but and really so me "
    "that"
)
_STOPS_GOING_BACK = _LEADING | vocabulary(
    "my your his her our their this that and or but please me play call"
)

_FAMILIES = {
    "number": "number",
    "ordinal": "number",
    "time": "number",
    "money": "number",
    "percent": "number",
    "duration": "number",
    "year": "number",
    "weekday": "day",
    "relative_day": "day",
    "date": "day",
    "half_day": "half",
    "spelling": "spelling",
}


def may_correct(words: Sequence[str]) -> bool:
    """Whether there is a word among these without which nothing is ever taken back."""
    return not _MARKS.isdisjoint(words)


def read(sentence: Sentence) -> None:
    """Marks what was taken back: its facts become ``withdrawn``, its tokens are dropped."""
    words = sentence.words
    index = 0
    while index < len(words):
        if words[index] == "not":
            index = _contrast(sentence, index) or index + 1
            continue
        stop = _cue(sentence, index)
        if stop:
            _repair(sentence, index, stop)
        index = max(stop, index + 1)


def _cue(sentence: Sentence, first: int) -> int:
    """Where a run of cue words that begins at `first` ends; 0 where none does."""
    index, real = first, False
    while index < len(sentence.words):
        word = sentence.words[index]
        if (word, sentence.word(index + 1)) in _PAIRED_CUES:
            real, index = True, index + 2
        elif word in _CUES:
            real, index = True, index + 1
        elif word in _AROUND_CUES:
            index += 1
        else:
            break
    return index if real else 0


def _repair(sentence: Sentence, first: int, stop: int) -> None:
    """Withdraws what stands before the cue [first, stop) where what follows replaces it."""
    if not first or stop >= len(sentence.words):
        return
    right = _first_fact(sentence, stop)
    left = _last_facts(sentence, first)
    if right is not None and left and _FAMILIES[right.kind] in {_FAMILIES[one.kind] for one in left}:
        _inherit(sentence, left, right)
        begin = min(one.first for one in left)
        # "at five, no, at six": the first "at" is taken back too.
        if begin and right.first > stop and sentence.words[begin - 1] == sentence.words[stop]:
            begin -= 1
        _withdraw(sentence, begin, stop)
        return
    amended = _amended(sentence, first, right) if right is not None else None
    if right is not None and amended is not None:
        _inherit(sentence, [amended], right)
        _withdraw(sentence, amended.first, amended.stop)
        sentence.dropped[first:stop] = b"\x01" * (stop - first)
        return
    if right is not None or sentence.words[stop] in _MANNERS:
        return
    cue = sentence.words[first:stop]
    strong = not _STRONG.isdisjoint(cue)
    if not strong and not sentence.apart(first):
        return
    # "I made your reservation. No outdoor seating.", "That is right! Make that reservation."
    if not strong and _SENTENCE_END.search(sentence.tokens[first].gap) and not sentence.apart(stop):
        return
    replaced = _replaced(sentence, first, stop, _clause_end(sentence, stop))
    if replaced is not None:
        _withdraw(sentence, replaced, stop, words_until=first)


def _amended(sentence: Sentence, first: int, right: Found) -> Found | None:
    """The fact a few words before the cue that a fact alone behind it replaces ("two tickets, make it three")."""
    ends = sentence.apart(right.stop) or sentence.word(right.stop) in _MANNERS
    if not ends or not sentence.apart(first):
        return None
    near = sentence.between(first - _FURTHEST_BACK, first)
    alike = [one for one in near if _FAMILIES.get(one.kind) == _FAMILIES[right.kind]]
    return alike[-1] if alike else None


def _replaced(sentence: Sentence, first: int, stop: int, end: int) -> int | None:
    """Where the words begin that the words [stop, end) replace: at the same word again, or as many names back."""
    start = first - 1
    while start > 0 and not sentence.apart(start) and start > first - 12:
        start -= 1
    for at in range(start, first):
        if sentence.words[at] == sentence.words[stop] and not sentence.dropped[at]:
            return at
    if end - stop > 2 or sentence.words[stop] in _LEADING:
        return None
    begin = first
    while begin > start and first - begin < end - stop and sentence.words[begin - 1] not in _STOPS_GOING_BACK:
        begin -= 1
    return begin if begin < first and begin > 0 else None


def _contrast(sentence: Sentence, index: int) -> int:
    """Reads "Austin, not Boston" and "not Boston, Austin" at a "not"; returns where to go on, 0 where it is neither."""
    words = sentence.words
    end = _clause_end(sentence, index + 1)
    after = _first_fact(sentence, index + 1)
    before = _last_facts(sentence, index)
    if after is not None and any(_FAMILIES[one.kind] == _FAMILIES[after.kind] for one in before):
        _withdraw(sentence, index, after.stop)
        return after.stop
    if after is not None:
        at = after.stop + (sentence.word(after.stop) == "but")
        instead = _first_fact(sentence, at)
        if (
            instead is not None
            and _FAMILIES[instead.kind] == _FAMILIES[after.kind]
            and _opens(sentence, index)
        ):
            _withdraw(sentence, _before_cues(sentence, index), at)
            return at
    if end - index - 1 > _LONGEST_CONTRAST or end == index + 1 or end - index < 2:
        return 0
    if end < len(words) and _opens(sentence, index):
        parts = _SENTENCE_END.search(sentence.tokens[end].gap) or words[end] in _MANNERS
        if parts or words[index + 1] in _SAYS_NO:
            return 0
        at = end + (words[end] == "but")
        if (
            at < len(words)
            and at > index + 1
            and (words[at] not in _LEADING | _BEFORE_NOT or words[at] == words[index + 1])
            and not is_negator(words[at])
        ):
            _withdraw(sentence, _before_cues(sentence, index), at, words_from=index + 1, words_until=end)
            return at
        return 0
    if _opens_with_answer(sentence, index) or _SENTENCE_END.search(sentence.tokens[index].gap):
        return 0
    parted = sentence.apart(index) and index > 0
    if index and (parted or words[index - 1] not in _BEFORE_NOT) and not is_negator(words[index - 1]):
        if words[index + 1] in {
            "to",
            "be",
            "going",
            "really",
            "so",
            "too",
            "very",
            "sure",
            "only",
            "yet",
            "now",
        }:
            return 0
        _withdraw(sentence, index, end, words_from=index + 1)
        return end
    return 0


def _opens_with_answer(sentence: Sentence, index: int) -> bool:
    """Whether what stands before a "not" is an answer ("no, not now"): it takes nothing back then."""
    return index > 0 and sentence.words[index - 1] in _ANSWERS


def _opens(sentence: Sentence, index: int) -> bool:
    """Whether a "not" opens its clause: nothing but "no" and the like stands before it."""
    return index == 0 or sentence.apart(index) or sentence.words[index - 1] in _CUES


def _before_cues(sentence: Sentence, index: int) -> int:
    """Where the cue words that stand before `index` begin ("no, not Boston")."""
    while index and sentence.words[index - 1] in _CUES:
        index -= 1
    return index


def _clause_end(sentence: Sentence, index: int) -> int:
    """The first token behind `index` before which punctuation or a joining word stands, or the end."""
    for at in range(index, min(index + 8, len(sentence.words))):
        if at > index and (sentence.apart(at) or sentence.words[at] in {"but", "and", "please", "thanks"}):
            return at
    return min(index + 8, len(sentence.words))


def _first_fact(sentence: Sentence, index: int) -> Found | None:
    """The fact that begins at `index`, or behind one or two leading words ("at", "on the")."""
    for at in range(index, min(index + 3, len(sentence.words))):
        here = [
            one
            for one in sentence.between(at, at + _LONGEST_FACT)
            if one.first == at and one.kind in _FAMILIES
        ]
        if here:
            return min(here, key=lambda one: one.kind == "half_day")
        if sentence.words[at] not in _LEADING:
            return None
    return None


def _last_facts(sentence: Sentence, index: int) -> list[Found]:
    """The facts whose last token stands before `index`, all that share their tokens."""
    near = [one for one in sentence.between(index - _LONGEST_FACT, index) if one.kind in _FAMILIES]
    begin = min((one.first for one in near if one.stop == index), default=index)
    return [one for one in near if one.first >= begin]


def _inherit(sentence: Sentence, left: list[Found], right: Found) -> None:
    """Gives a bare number the meaning of what it replaces: "at five pm, no, six" is 18:00."""
    if right.kind != "number":
        return
    value = Decimal(right.value)
    for one in left:
        if one.kind == "time" and value == int(value) and 1 <= value <= 12:
            half = next((other.value for other in left if other.kind == "half_day"), "")
            right.kind, right.value = "time", clock(int(value), 0, half)
            if half:
                sentence.add("half_day", half, right.first, right.stop)
            return
        if one.kind == "money":
            right.kind, right.value = "money", f"{one.value.split()[0]} {value:.2f}"
            return
        if one.kind == "percent":
            right.kind, right.value = "percent", canonical(value)
            return


def _withdraw(
    sentence: Sentence,
    begin: int,
    stop: int,
    *,
    words_from: int | None = None,
    words_until: int | None = None,
) -> None:
    """Drops tokens [begin, stop). The facts in them become withdrawn; words without facts are withdrawn as words."""
    facts = sentence.between(begin, stop)
    for one in facts:
        if one.kind != "withdrawn":
            one.kind, one.value = "withdrawn", f"{one.kind}:{one.value}"
    first = begin if words_from is None else words_from
    last = stop if words_until is None else words_until
    if not facts and last > first:
        sentence.add("withdrawn", " ".join(sentence.words[first:last]), first, last, take=False)
    sentence.dropped[begin:stop] = b"\x01" * (stop - begin)
