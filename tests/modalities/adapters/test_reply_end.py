"""A reply at our own limit ends behind a sentence where there is one."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.adapters.reply_end import ReplyEnd


def spoken(text: str, soft: int, hard: int) -> tuple[str, ReplyEnd]:
    """Returns what is said of a reply whose tokens are its words, with an engine's limit at `hard`."""
    end = ReplyEnd(soft)
    said = ""
    for token in re.findall(r"\s*\S+", text)[:hard]:
        said += end.take(token)
        if end.ended:
            return said, end
    said += end.close(cut=len(text.split()) > hard)
    return said, end


def test_reply_end_leaves_a_reply_under_the_limit_alone() -> None:
    """Nothing is held back at the end of a reply that the model ended itself, whole sentence or not."""
    assert spoken("One two. Three four five", 4, 9)[0] == "One two. Three four five"
    assert spoken("One two.", 9, 9)[0] == "One two."


def test_reply_end_stops_behind_the_sentence_that_crosses_the_soft_limit() -> None:
    """The sentence that is open at the soft limit is finished, the next one is not begun."""
    said, end = spoken("One two. Three four five six. Seven eight. Nine", 3, 20)
    assert said == "One two. Three four five six."
    assert end.ended


def test_reply_end_begins_no_sentence_behind_the_soft_limit() -> None:
    """A sentence that ends just at the soft limit is the last one."""
    assert spoken("One two. Three four.", 2, 20)[0] == "One two."


def test_reply_end_behind_a_clause_where_the_limit_cuts_a_sentence() -> None:
    """A sentence too long for the limit ends behind its last whole clause, and is not called complete."""
    said, end = spoken("One two three, four five, six seven eight nine ten", 2, 8)
    assert said == "One two three, four five"
    assert not end.ended


@pytest.mark.parametrize(
    "text", ["It costs 3.5 dollars today. More", "Ask Dr. Smith about it. More", "A line\nMore"]
)
def test_reply_end_tells_full_stops_from_sentence_ends(text: str) -> None:
    """Decimal points and abbreviations end nothing; a line's end does."""
    assert spoken(text, 1, 20)[0] == text[: -len("More")].rstrip()


def test_reply_end_at_the_limit_keeps_a_sentence_that_is_just_complete() -> None:
    """A limit that falls on a full stop costs nothing."""
    said, end = spoken("One two. Three four. Five six", 3, 4)
    assert said == "One two. Three four."
    assert end.ended


@given(
    st.lists(st.sampled_from(["a", "B", "c.", "D!", "e,", "f;\n", "3.", "Dr."]), max_size=40),
    st.integers(0, 12),
    st.data(),
)
def test_reply_end_says_a_beginning_of_the_reply(words: list[str], soft: int, data: st.DataObject) -> None:
    """Whatever comes, what is said is a beginning of the text, with at least its first `soft` tokens."""
    text = " ".join(words)
    hard = data.draw(st.integers(max(soft, 1), soft + 30))
    said, _ = spoken(text, soft, hard)
    assert text.startswith(said)
    assert len(said.split()) >= min(soft, len(words))
    assert len(said.split()) <= hard
