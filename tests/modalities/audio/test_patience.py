from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.audio.patience import Eagerness, SemanticPatience

EAGERNESS: tuple[Eagerness, ...] = get_args(Eagerness)


def test_patience_finished_question_is_answered_soon() -> None:
    """ "What's the weather like?" is complete: the wait is a tenth of the most, though it ends in a preposition."""
    patience = SemanticPatience("medium")
    assert patience.silence_ms("What's the weather like?") <= patience.most_ms // 10


@pytest.mark.parametrize(
    "text",
    [
        "Book a table for",
        "I want to go to the.",
        "So I was thinking um...",
        "Well, you know,",
        "I'd like a, uh",
        "and",
    ],
)
def test_patience_hanging_sentence_gets_all_the_time_there_is(text: str) -> None:
    """A preposition, an article, a filler, a comma or an ellipsis at the end: the speaker goes on."""
    patience = SemanticPatience("medium")
    assert patience.silence_ms(text) == patience.most_ms


@pytest.mark.parametrize("text", ["Book a table for four.", "Stop!", 'She said "no."', "好的。"])
def test_patience_complete_sentence_gets_the_least(text: str) -> None:
    """Terminal punctuation after a word that ends sentences is an end, closing quotes or not."""
    patience = SemanticPatience("medium")
    assert patience.silence_ms(text) == min(patience.silence_ms(t) for t in ("Yes.", "", "a", "stop"))


def test_patience_word_without_punctuation_lies_between() -> None:
    """A bare command may be all or the beginning of more."""
    patience = SemanticPatience("medium")
    assert patience.silence_ms("Yes.") < patience.silence_ms("yes") < patience.most_ms


def test_patience_full_stop_behind_a_word_that_rarely_ends_lies_between() -> None:
    """ "That's what it is." may be all, or the recogniser's guess in the middle of a sentence."""
    patience = SemanticPatience("medium")
    assert patience.silence_ms("Yes.") < patience.silence_ms("That's what it is.") < patience.most_ms


@given(st.text(max_size=60), st.sampled_from(EAGERNESS))
def test_patience_is_bounded_for_any_text(text: str, eagerness: Eagerness) -> None:
    """No text waits longer than the protocol's 8, 4, 2 s, and none ends a turn at once."""
    most = {"low": 8_000, "medium": 4_000, "auto": 4_000, "high": 2_000}[eagerness]
    assert 100 <= SemanticPatience(eagerness).silence_ms(text) <= most


@given(st.text(max_size=60))
def test_patience_falls_with_eagerness(text: str) -> None:
    """The more eager, the shorter the wait, for every text; auto is medium."""
    low, medium, high, auto = (
        SemanticPatience(e).silence_ms(text) for e in ("low", "medium", "high", "auto")
    )
    assert low >= medium >= high
    assert auto == medium
