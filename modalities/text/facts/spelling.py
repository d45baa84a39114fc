"""Words spelled letter by letter: "b o b", "B as in boy", "double u"."""

from modalities.text.facts.sentence import Sentence

_FEWEST_LETTERS = 3
"""Single letters in a row that make a spelling; two are initials, a word, or a half of the day."""
_ALSO_WORDS = frozenset({"a", "i", "o", "u"})


def read(sentence: Sentence) -> None:
    """Adds every run of letters that were spelled."""
    index = 0
    while index < len(sentence.tokens):
        letters, stop, explained = _run(sentence, index)
        if explained or (len(letters) >= _FEWEST_LETTERS and not _ALSO_WORDS.issuperset(letters)):
            sentence.add("spelling", letters, index, stop)
        index = max(stop, index + 1)


def _run(sentence: Sentence, first: int) -> tuple[str, int, bool]:
    """The letters spelled from `first`, where they end, and whether one was explained by a word ("as in")."""
    letters, index, explained = "", first, False
    while index < len(sentence.tokens):
        word = sentence.words[index]
        double = word == "double"
        if double and sentence.word(index + 1) in {"u", "you"}:
            letter, index = "w", index + 2
        elif double and _is_letter(sentence.word(index + 1)):
            letter, index = 2 * sentence.word(index + 1), index + 2
        elif _is_letter(word):
            letter, index = word, index + 1
        else:
            break
        letters += letter
        stop = _explanation(sentence, index, letter[-1], alone=letters in _ALSO_WORDS)
        if stop:
            explained, index = True, stop
    return letters, index, explained


def _explanation(sentence: Sentence, index: int, letter: str, *, alone: bool) -> int:
    """Where "as in boy" or "for bravo" behind a letter ends; 0 where none stands there. `alone`: the letter is a word
    too and the first of its run, which "for" does not explain ("can i for instance")."""
    word, at = sentence.word(index), index + 1
    if word == "as" and sentence.word(at) == "in":
        at += 1
    elif word != "for" or alone:
        return 0
    explaining = sentence.word(at)
    return at + 1 if len(explaining) > 1 and explaining[0] == letter else 0


def _is_letter(word: str) -> bool:
    return len(word) == 1 and word.isalpha()
