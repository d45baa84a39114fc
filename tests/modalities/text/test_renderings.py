"""A typed text in a recogniser's spelling: what both share keeps its form, what differs is written in few ways."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.text.renderings import MOST_RENDERINGS, renderings

WORDS = {"people", "volume"}


def known(word: str) -> bool:
    return word in WORDS


@pytest.mark.parametrize(
    ("typed", "recognised", "first"),
    [
        ("whats on at noon", "Whats on at noon?", "Whats on at noon?"),
        ("what is the time", "What's the time?", "What's the time?"),
        ("do not call me", "Don't call me.", "Don't call me."),
        ("turn it up by twenty percent", "Turn it up by 20%.", "Turn it up by 20%."),
        ("pay 80 dollars", "Pay $80.", "Pay $80."),
        ("wake me at 7 pm", "Wake me at 7 a.m.", "Wake me at 7 p.m."),
        ("hey play jazz thx", "Play jazz.", "Play jazz."),
        ("play jazz", "Please play jazz.", "Please play jazz."),
        ("three pople", "Three people", "Three people"),
    ],
)
def test_renderings_keep_the_recognisers_spelling_of_what_both_texts_share(
    typed: str, recognised: str, first: str
) -> None:
    """Contractions, figures, politeness, capitals, signs and slips of the fingers are no differences."""
    assert renderings(typed, recognised, known)[0] == first


def test_renderings_write_what_differs_in_figures_and_in_words_and_with_capitals() -> None:
    """The recogniser might have written any of these."""
    found = renderings("transfer eighty dollars to tucson", "Transfer $18 to Boston.")
    assert found[0] == "Transfer eighty dollars to tucson."
    assert {"Transfer $80 to tucson.", "Transfer $80 to Tucson."} <= set(found)


def test_renderings_of_a_real_word_beside_another_keep_it() -> None:
    """Only what is no word is taken for a slip: names one letter apart are different names."""
    assert renderings("call people", "Call peoples", known)[0] == "Call people"
    assert renderings("call Jon", "Call Joan", lambda word: False)[0] == "Call Jon"


def test_renderings_of_an_added_negation_say_the_rest_as_recognised() -> None:
    """A first word that is first no more loses its capital."""
    assert renderings("don't play jazz", "Play jazz.")[0] == "Don't play jazz."


@given(st.text(max_size=60), st.text(max_size=60))
def test_renderings_of_anything_are_few_and_never_empty(typed: str, recognised: str) -> None:
    """Whatever is typed: no error, no repeats, no more than the bound."""
    found = renderings(typed, recognised)
    assert len(found) == len(set(found)) <= MOST_RENDERINGS
    assert all(found)
