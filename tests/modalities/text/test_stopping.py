"""A reply ends before a text that its client named, however it comes in pieces."""

from hypothesis import given
from hypothesis import strategies as st

from modalities.text.stopping import StopText


def told(stops: list[str], pieces: list[str]) -> tuple[str, bool]:
    """Everything that is passed on, and whether a stop ended it."""
    stop = StopText(stops)
    text = "".join(stop.feed(piece) for piece in pieces)
    ended = stop.ended
    return text + stop.close(), ended


def test_text_ends_before_a_stop_that_comes_in_pieces() -> None:
    """Neither the stop nor what follows it is seen."""
    assert told(["STOP"], ["one S", "T", "OP two"]) == ("one ", True)


def test_text_that_only_begins_like_a_stop_is_passed_on() -> None:
    """What was held back comes with what shows that it is no stop, or with the end."""
    stop = StopText(["\n\n"])
    assert stop.feed("a\n") == "a"
    assert stop.feed("b\n") == "\nb"
    assert stop.close() == "\n"
    assert not stop.ended


def test_text_goes_on_at_once_where_no_stop_can_begin() -> None:
    """A client with a stop waits for no word that has nothing to do with it."""
    assert StopText(["###"]).feed("hello") == "hello"


def test_of_two_stops_the_one_that_is_complete_first_counts() -> None:
    """ "b" is complete before "abc" can be; of "bc" and "abc", complete together, the longer one counts."""
    assert told(["abc", "b"], ["xabc"]) == ("xa", True)
    assert told(["bc", "abc"], ["xabc"]) == ("x", True)


@given(
    st.lists(st.text("ab", min_size=1, max_size=4), max_size=4),
    st.lists(st.text("abc", max_size=4), max_size=12),
)
def test_the_end_does_not_depend_on_the_pieces(stops: list[str], pieces: list[str]) -> None:
    """In any pieces, in single characters, as a whole: the same text, with no stop in it, and never more is held back
    than the longest stop, less a character."""
    whole = "".join(pieces)
    text, ended = told(stops, pieces)
    assert (text, ended) == told(stops, [whole]) == told(stops, list(whole))
    assert ended == any(stop in whole for stop in stops)
    assert not any(stop in text for stop in stops)
    assert text == whole if not ended else whole.startswith(text)
    stop = StopText(stops)
    seen = "".join(stop.feed(piece) for piece in pieces)
    if not stop.ended:
        assert len(whole) - len(seen) <= max((len(one) - 1 for one in stops), default=0)
