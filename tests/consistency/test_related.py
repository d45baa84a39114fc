"""Which words may stand for each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consistency.related import is_word, lexicon, related, relation


@pytest.mark.parametrize(
    ("one", "other", "likeness"),
    [
        ("begin", "start", "synonym"),
        ("movie", "films", "synonym"),
        ("bought", "purchasing", "synonym"),
        ("delete", "remove", "kind"),
        ("lights", "light", "same"),
        ("mice", "mouse", "same"),
        ("stopped", "stopping", "same"),
        ("boston", "austin", ""),
        ("fifteen", "fifty", ""),
        ("on", "off", ""),
        ("qwerty", "asdfg", ""),
        ("qwerty", "qwerty", "same"),
    ],
)
def test_relation_of_two_words(one: str, other: str, likeness: str) -> None:
    """Forms of a word, words of a meaning, kinds of a thing; symmetric."""
    assert relation(one, other) == relation(other, one) == likeness
    assert related(one, other) == (likeness != "")


@pytest.mark.parametrize(
    ("form", "lemma"),
    [("cities", "city"), ("tried", "try"), ("making", "make"), ("bigger", "big"), ("went", "go")],
)
def test_lemmas_of_inflected_forms(form: str, lemma: str) -> None:
    """By WordNet's rules and its list of irregular forms."""
    assert lemma in lexicon().lemmas(form)


def test_is_word_tells_slips_from_words() -> None:
    """Which of two spellings is the slip."""
    assert is_word("volume")
    assert is_word("volumes")
    assert not is_word("vloume")


@given(st.text(max_size=12), st.text(max_size=12))
def test_relation_of_any_texts_is_symmetric(one: str, other: str) -> None:
    """Whatever a recogniser writes."""
    assert relation(one, other) == relation(other, one)
