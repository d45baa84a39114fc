"""What is longer than a client takes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.transports.fitting import fitting, view_fitting

LIMIT = 2_000
WORDS = st.text(st.sampled_from('a"\\\n語'), max_size=1_500)


def as_sent(data: bytes, in_json: bool) -> int:
    """How many bytes a client gets of it."""
    return len(json.dumps(data.decode(), ensure_ascii=False).encode()) if in_json else len(data)


@given(st.lists(WORDS, max_size=4), st.booleans())
def test_event_and_session_are_never_longer_than_a_client_takes(texts: list[str], in_json: bool) -> None:
    """Also where they are written as a string in JSON, whatever is in them; what fits is left as it is."""
    parts = [{"type": "input_text", "text": text} for text in texts]
    event = json.dumps(
        {"event_id": "event_1", "type": "conversation.item.added", "item": {"content": parts}},
        ensure_ascii=False,
    ).encode()
    view = json.dumps({"id": "sess_1", "tools": [{"description": text} for text in texts]}).encode()
    for data, fit in (
        (event, fitting(event, LIMIT, in_json)),
        (view, view_fitting(view, LIMIT, in_json)),
    ):
        assert as_sent(fit, in_json) <= LIMIT
        assert (fit == data) == (as_sent(data, in_json) <= LIMIT)
    assert json.loads(fitting(event, LIMIT, in_json))["type"] == "conversation.item.added"


@pytest.mark.parametrize("in_json", [False, True])
def test_session_that_cannot_be_cut_is_shown_empty(in_json: bool) -> None:
    """Names are not cut."""
    view = json.dumps({"id": "sess_1", "name": "x" * 3 * LIMIT}).encode()
    assert view_fitting(view, LIMIT, in_json) == b"{}"
