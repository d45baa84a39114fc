import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.audio.completeness import Completeness, completeness


@pytest.mark.parametrize(
    "text",
    [
        "What's the weather like?",
        "Stop!",
        "Yes.",
        "yes",
        "No, thanks.",
        "Where are you from?",
        'She said "no!"',
        "好的。",
    ],
)
def test_completeness_of_questions_and_answers_is_certain(text: str) -> None:
    """A question mark, an answer or a command that is a turn of its own: nothing is missing."""
    assert completeness(text) is Completeness.FINISHED


@pytest.mark.parametrize("text", ["Book a table for four.", "I have a thousand thoughts about that thing."])
def test_completeness_of_a_statement_is_likely(text: str) -> None:
    """A full stop behind words that may end a sentence."""
    assert completeness(text) is Completeness.LIKELY


@pytest.mark.parametrize("text", ["", "  ", "Firefox", "Montreal.", "Play some jazz music"])
def test_completeness_of_bare_words_is_open(text: str) -> None:
    """No punctuation, or a single word with a full stop, which recognisers give to anything."""
    assert completeness(text) is Completeness.OPEN


@pytest.mark.parametrize("text", ["P-H-I-L-L", "A M Y", "My code is 4 5 2", "2, 6, 8.", "PHIL."])
def test_completeness_of_letters_and_figures_is_unknown(text: str) -> None:
    """Spelling and counting may go on for as long as they like."""
    assert completeness(text) is Completeness.SPELLED


@pytest.mark.parametrize(
    "text", ["The three officers slightly...", "That's what it is.", "It has used other agents since."]
)
def test_completeness_of_a_stop_behind_a_word_that_rarely_ends_is_doubtful(text: str) -> None:
    """What trails off, or ends in a word that wants another, is mostly the recogniser's guess in mid-sentence."""
    assert completeness(text) is Completeness.DOUBTFUL


@pytest.mark.parametrize(
    "text",
    [
        "I want to go to the.",
        "So I was thinking um...",
        "I'd like a, uh",
        "Well, you know,",
        "Sweetener and",
        "Can you get",
        "Can I have a 20 ounce?",
        "a twelve-ounce",
        "Set a timer for ten minute",
        "If the reader will excuse me.",
        "Good morning. When I was young.",
    ],
)
def test_completeness_of_half_a_sentence_is_none(text: str) -> None:
    """Function words, fillers, verbs that want an object, measures of something, clauses that lean on another."""
    assert completeness(text) is Completeness.HANGING


@pytest.mark.parametrize(
    "text",
    ["I'll have twenty ounces.", "It weighs one ounce.", "If you can, call me.", "I waited ten percent."],
)
def test_completeness_rules_leave_whole_sentences_alone(text: str) -> None:
    """The plural of a measure, one of it, a main clause behind the comma: nothing hangs."""
    assert completeness(text) is Completeness.LIKELY


@given(st.text(max_size=80))
def test_completeness_judges_any_text(text: str) -> None:
    """Whatever a recogniser writes has one verdict, and the space around it changes nothing."""
    assert completeness(f"  {text}\n") is completeness(text)
