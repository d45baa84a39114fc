"""Reads all facts of a text. Pure: the same text gives the same facts, and no model is asked."""

from modalities.text.facts import amounts, corrections, dates, negation, numbers, polarity, spelling, times
from modalities.text.facts.fact import Fact
from modalities.text.facts.sentence import Sentence, cut


def facts_of(text: str) -> tuple[Fact, ...]:
    """Returns the facts of an English text in the order in which they stand there.

    Only the first `sentence.LONGEST_TEXT` characters are read. Takes time in proportion to the length of the text.
    """
    sentence = cut(text)
    read(sentence)
    return sentence.facts()


def read(sentence: Sentence) -> None:
    """Runs the readers: what is more certain of its words reads first, and what was taken back is read no further."""
    read_facts(sentence)
    negation.read(sentence)
    polarity.read(sentence)


def read_facts(sentence: Sentence) -> None:
    """Runs the readers of numbers and days, and marks what was taken back."""
    spelling.read(sentence)
    numbers.find(sentence)
    if sentence.numbers:
        amounts.read_percentages(sentence)
        amounts.read_money(sentence)
    dates.read(sentence)
    times.read_times(sentence)
    amounts.read_durations(sentence)
    times.read_halves(sentence)
    numbers.read(sentence)
    corrections.read(sentence)
