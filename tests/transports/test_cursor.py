"""Where a client wants to read on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.ids import event_tag
from orchestrator.transports.cursor import event_number

TAG = event_tag("sess_0123456789abcdefghij")
NUMBERS = st.integers(0, 10**16 - 1)


@given(NUMBERS)
def test_cursor_of_an_event_is_its_number(number: int) -> None:
    """What the server gave as an id, and the number alone, both name the entry."""
    assert event_number(f"event_{TAG}_{number}", TAG) == number
    assert event_number(str(number), TAG) == number


@given(NUMBERS, st.text("0123456789abcdefghij", min_size=1, max_size=12).filter(lambda tag: tag != TAG))
def test_cursor_of_another_session_is_none(number: int, tag: str) -> None:
    """An id that another session gave says nothing about this one's log."""
    assert event_number(f"event_{tag}_{number}", TAG) is None


@given(NUMBERS)
def test_cursor_of_a_private_message_is_none(number: int) -> None:
    """Private messages have no place in the log."""
    assert event_number(f"event_{TAG}_p{number}", TAG) is None


@pytest.mark.parametrize(
    "text",
    ["", "-1", "+1", " 1", "1 ", "1\n", "1_0", "²", "٣", "１", "1e3", "0x1", "9" * 17, "1" * 400,
     f"event_{TAG}_", "event_1", f"event_{TAG}_event_{TAG}_1", f"event_{TAG}_-1", f"event_{TAG}_٣"],
)  # fmt: skip
def test_cursor_takes_nothing_but_a_few_digits(text: str) -> None:
    """What `int` would take beyond them, and what it would choke on, is refused."""
    assert event_number(text, TAG) is None


@given(st.text())
def test_cursor_reads_any_text_without_a_fault(text: str) -> None:
    """Ids are clients' text: whatever it is, the answer is none or a number of 16 digits at most."""
    number = event_number(text, TAG)
    assert number is None or 0 <= number < 10**16


def test_cursor_tag_stands_in_what_a_session_gives() -> None:
    """The tag is the end of the session's id, short ids included."""
    assert event_tag("sess_0123456789abcdefghij") == "89abcdefghij"
    assert event_tag("sess_abc") == "abc"
