"""Frames of server-sent events, read as browsers read them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.transports.sse import HEARTBEAT, beginning, frame
from tests.transports.reading_events import Parsed, parsed

TAG = "abcDEF012345"


def event(event_id: str, kind: str = "response.done", **fields: object) -> bytes:
    return json.dumps({"type": kind, "event_id": event_id, **fields}, ensure_ascii=False).encode()


def test_frame_shows_type_and_number() -> None:
    """As the browser hands them to the page."""
    data = event(f"event_{TAG}_7", text="one\ntwo")
    assert parsed(frame(data, TAG)) == [Parsed("response.done", data.decode(), f"event_{TAG}_7")]


@pytest.mark.parametrize("event_id", [f"event_{TAG}_p7", "event_another0tag_7", "", "event_1"])
def test_frame_of_a_private_message_moves_no_cursor(event_id: str) -> None:
    """Nothing but a number of this session's log is an id; the one before stays."""
    stream = frame(event(f"event_{TAG}_3"), TAG) + frame(event(event_id), TAG)
    assert b"id: " not in frame(event(event_id), TAG)
    assert [one.last_id for one in parsed(stream)] == [f"event_{TAG}_3"] * 2


def test_beginning_sets_the_cursor_and_is_no_event() -> None:
    """A reader that is cut before its first event comes back from where it began."""
    stream = beginning(1_234, TAG, 5) + HEARTBEAT + frame(event(f"event_{TAG}_p1"), TAG)
    (first,) = parsed(stream)
    assert first.last_id == f"event_{TAG}_5"
    assert stream.startswith(b"retry: 1234\n")


@given(st.text(), st.text(alphabet="\r\n\u2028\x85 :datid", max_size=20))
def test_frame_holds_one_event_whatever_is_in_it(text: str, other: str) -> None:
    """No text of a user or model can end a frame or begin another."""
    data = json.dumps({"type": "x", "event_id": f"event_{TAG}_1", "a": text, "b": other}).encode()
    (one,) = parsed(frame(data, TAG))
    assert json.loads(one.data) == json.loads(data)


def test_frame_of_data_with_line_breaks_is_still_one_event() -> None:
    """JSON between whose values lines break is the same JSON."""
    data = b'{"type": "x",\n "event_id": "",\r\n "a": 1}'
    (one,) = parsed(frame(data, TAG))
    assert json.loads(one.data) == json.loads(data)
