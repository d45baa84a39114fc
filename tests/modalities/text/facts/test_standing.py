"""What is left of a text in which somebody corrects himself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.text.facts.standing import as_corrected, blanked, taken_back

WORDS = (
    *("no", "not", "sorry", "wait", "I mean", "make that", "Boston", "Austin", "five", "six"),
    *(",", ".", "?", "at", "on", "Friday", "the", "kitchen", "and", "thanks"),
)


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("Book a table in Boston, no, Austin.", "Book a table in Austin."),
        ("What's the weather in Boston? No wait, Austin.", "What's the weather in Austin."),
        ("wake me at five, no, at six", "wake me at six"),
        ("set a timer for fifty, no, fifteen minutes", "set a timer for fifteen minutes"),
        ("turn the kitchen, no, the bedroom lights off", "turn the bedroom lights off"),
        ("a table on Thursday, not on Friday", "a table on Thursday"),
        ("not at seven, at eight please", "at eight please"),
        ("not in boston, in austin", "in austin"),
        ("I want sushi, not pizza", "I want sushi"),
    ],
)
def test_text_reads_without_what_was_taken_back(text: str, stands: str) -> None:
    """The value that stands has the place of the one that was taken back."""
    assert as_corrected(text) == stands


@pytest.mark.parametrize(
    "text",
    [
        "No, fifteen.",
        "I said fifteen",
        "Not right now, thanks.",
        "No, not right now. Thanks.",
        "Not now. What about a one way flight?",
        "408-227-5502. Not vegetarian.",
        "I've made your reservation. No outdoor seating.",
        "Yes, that is correct! Make that reservation!",
        "Next play Justin Bieber's sorry thx.",
        "lock the front door but not the back door",
        "don't wake me up tomorrow",
    ],
)
def test_text_in_which_nothing_was_taken_back_is_left_alone(text: str) -> None:
    """Refusals, answers and denials are no corrections."""
    assert as_corrected(text) == text


@given(st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join))
def test_what_stands_is_part_of_what_was_said(text: str) -> None:
    """Nothing is added, nothing but stretches goes, and places stay where they were where they are blanked."""
    left = iter(as_corrected(text).replace(" ", ""))
    rest = iter(text.replace(" ", ""))
    assert all(any(letter == other for other in rest) for letter in left)
    blank = blanked(text)
    assert len(blank) == len(text)
    gone = {at for start, stop in taken_back(text) for at in range(start, stop)}
    assert all(blank[at] == (" " if at in gone else text[at]) for at in range(len(text)))
