"""What a text denies: one fact for each negation that stands, and the word it is said of."""

from modalities.text.facts.sentence import Sentence, vocabulary

_TYPED = vocabulary(
    "dont doesnt didnt isnt arent wasnt werent wont wouldnt cant couldnt shouldnt havent hasnt hadnt aint mustnt cannot"
)
"""Contractions as they are typed, without their apostrophe."""

_VERBAL = vocabulary("not never") | _TYPED
_NOMINAL = vocabulary("no none nothing nobody nowhere without neither nor")
_UNDOING = vocabulary("not never without")
"""Behind another negation of the same clause they cancel it; other words only say it again ("don't need no help")."""

_NEW_CLAUSE = vocabulary("and but because then so if when while or")
_FURTHEST = 5
_FURTHEST_UNDOING = 3
"""Words within which a second negation says the first again, and within which it cancels it."""

_SAID_TO_DO = vocabulary("forget hesitate fail mind worry")
"""Verbs whose negation asks for the thing, or is manners ("don't forget to", "if you don't mind")."""
_AFTER_NO = vocabulary("problem problems worries thanks thank matter wonder sorry wait way")
_PRONOUNS = vocabulary("i you he she it we they there that")
_SKIPPED = vocabulary(
    "to the a an any be been do please really ever me you my your us it this that some even just want wanting have "
    "need going of i we they he she there no thanks thank"
)
"""Words passed over on the way to what a negation is said of."""


def read(sentence: Sentence) -> None:
    """Adds ``negation`` and ``negated`` facts."""
    previous = -1
    for index, word in enumerate(sentence.words):
        if sentence.dropped[index]:
            continue
        if not _negates(sentence, index, word):
            if word == "no" and _is_answer(sentence, index):
                sentence.answers.add(index)
            elif _is_tag(sentence, index):
                sentence.dropped[index : index + 2] = b"\x01\x01"
            continue
        if previous >= 0 and _same_clause(sentence, previous, index):
            undoes = word in _UNDOING or word in _VERBAL or word.endswith("n't")
            if undoes and index - previous <= _FURTHEST_UNDOING:
                _take_back(sentence, previous)
                previous = -1
                continue
            if not undoes:
                continue
        previous = index
        sentence.add("negation", "not", index, index + 1, take=False)
        at = _scope(sentence, index)
        if at:
            sentence.add("negated", sentence.words[at], at, at + 1, take=False)


def is_negator(word: str) -> bool:
    """Whether a word can negate."""
    return word in _VERBAL or word in _NOMINAL or word.endswith("n't")


def _negates(sentence: Sentence, index: int, word: str) -> bool:
    """Whether the word at `index` denies something here."""
    if word.endswith("n't") or word in _TYPED:
        return not _is_manner(sentence, index)
    if word == "t" and sentence.word(index - 1) in {"don", "doesn", "didn", "can", "won", "isn"}:
        return not _is_manner(sentence, index)
    if word == "no":
        return sentence.word(index + 2) != "than" and not _is_answer(sentence, index)
    if word == "not":
        before = sentence.word(index - 1)
        if before == "or" and (sentence.apart(index + 1) or sentence.word(index - 2) == "whether"):
            return False
        return sentence.word(index + 1) != "only" and before != "if" and not _is_manner(sentence, index)
    if word == "never":
        return sentence.word(index + 1) != "mind"
    if word == "nor":
        return False
    return word in _NOMINAL


def _is_answer(sentence: Sentence, index: int) -> bool:
    """Whether a "no" stands for itself: punctuation, manners, a new subject or a number follow it."""
    following = sentence.word(index + 1)
    if sentence.apart(index + 1) or following in _AFTER_NO or index + 1 in sentence.numbers:
        return True
    return following.partition("'")[0] in _PRONOUNS


def _is_manner(sentence: Sentence, index: int) -> bool:
    """Whether a negated verb asks for what it denies ("don't forget"), proposes it ("why don't we") or is a tag
    ("isn't it")."""
    following = sentence.word(index + 1)
    if following in _SAID_TO_DO or (following == "you" and sentence.word(index + 2) in _SAID_TO_DO):
        return True
    if sentence.word(index - 1) == "why" and following in {"you", "we", "i"}:
        return True
    return _is_tag(sentence, index)


def _is_tag(sentence: Sentence, index: int) -> bool:
    """Whether "isn't it" stands at the end of what it asks to confirm."""
    word = sentence.words[index]
    contracted = word.endswith("n't") or word in _TYPED
    return contracted and index > 1 and sentence.word(index + 1) in _PRONOUNS and sentence.apart(index + 2)


def _same_clause(sentence: Sentence, previous: int, index: int) -> bool:
    return index - previous <= _FURTHEST and _NEW_CLAUSE.isdisjoint(sentence.words[previous:index])


def _take_back(sentence: Sentence, index: int) -> None:
    """Removes the negation at `index` and what it was said of: another one has cancelled it."""
    while sentence.found and sentence.found[-1].kind in {"negation", "negated"}:
        if sentence.remove_last().first == index:
            return


def _scope(sentence: Sentence, index: int) -> int:
    """The word that a negation is said of; 0 where there is none. "none" and the like look no further than "of"."""
    for at in range(index + 1, min(index + 6, len(sentence.words))):
        word = sentence.words[at]
        if word in _NEW_CLAUSE:
            return 0
        if word not in _SKIPPED and word[0].isalnum():
            return at
    return 0
