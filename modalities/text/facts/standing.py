"""What stands of a text in which somebody corrects himself: "in Boston, no, Austin" asks for Austin alone."""

from functools import lru_cache

from modalities.text.facts import corrections
from modalities.text.facts.reading import read_facts
from modalities.text.facts.sentence import Sentence, cut

_READ_TEXTS = 2_048
"""Texts that are remembered: every prompt has the same ones."""


@lru_cache(maxsize=_READ_TEXTS)
def taken_back(text: str) -> tuple[tuple[int, int], ...]:
    """Returns the stretches [start, stop) of characters that the speaker took back, with the words that say so. They
    end where the words that stand in their place begin."""
    sentence = cut(text)
    if not corrections.may_correct(sentence.words):
        return ()
    read_facts(sentence)
    return tuple(_stretches(sentence))


def as_corrected(text: str) -> str:
    """Returns a text without what was taken back in it; the text itself where nothing was, or where nothing else was
    said."""
    stands = text
    for start, stop in reversed(taken_back(text)):
        stands = stands[:start] + stands[stop:]
    return stands.strip() if any(letter.isalnum() for letter in stands) else text


def blanked(text: str) -> str:
    """Returns a text with spaces in the place of what was taken back: as long as it was, every place as it was."""
    for start, stop in taken_back(text):
        text = text[:start] + " " * (stop - start) + text[stop:]
    return text


def _stretches(sentence: Sentence) -> list[tuple[int, int]]:
    tokens, found, at = sentence.tokens, [], 0
    while at < len(tokens):
        first = at
        while at < len(tokens) and sentence.dropped[at]:
            at += 1
        if at > first:
            # At the end of a text its full stop stays, and the comma before what was taken back goes.
            is_last = at == len(tokens) and first > 0
            start = tokens[first - 1].stop if is_last else tokens[first].start
            found.append((start, tokens[at - 1].stop if at == len(tokens) else tokens[at].start))
        at += 1
    return found
