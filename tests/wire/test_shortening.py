"""Events that are longer than a link takes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.wire import codec, server
from orchestrator.wire.shortening import shortened
from tests.sessions.strict_shapes import check_shape
from tests.wire.test_server import FULL, published


def session(instructions: str, tools: list[dict[str, Any]]) -> bytes:
    event = json.loads(codec.encode(server.SessionUpdated(FULL), "event_1"))
    event["session"] |= {"instructions": instructions, "tools": tools}
    return json.dumps(event).encode()


def tool(number: int, size: int) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"x": {"type": "string", "description": "p" * size}}}
    return {"type": "function", "name": f"tool_{number}", "description": "d" * size, "parameters": schema}


@given(
    st.text(max_size=3_000),
    st.lists(st.integers(0, 800), max_size=20),
    st.integers(4_000, 60_000),
)
def test_shortened_session_keeps_all_that_clients_go_by(words: str, sizes: list[int], limit: int) -> None:
    """It fits, is as published and as the strictest client reads it, and names every tool; nothing is made up."""
    data = session(words * 3, [tool(number, size) for number, size in enumerate(sizes)])
    short = shortened(data, limit)
    assert short is not None
    assert len(short) <= limit
    check_shape(json.loads(short))
    published.validate_json(short, strict=True)
    before, after = json.loads(data)["session"], json.loads(short)["session"]
    assert [t["name"] for t in after["tools"]] == [t["name"] for t in before["tools"]]
    assert before["instructions"].startswith(after["instructions"])
    rest = {"instructions", "tools"}
    assert {k: v for k, v in after.items() if k not in rest} == {
        k: v for k, v in before.items() if k not in rest
    }


def test_shortened_cuts_no_more_than_is_too_much() -> None:
    """The longest text gives way; short ones stay whole."""
    data = session("i" * 50_000, [tool(1, 100)])
    short = shortened(data, 40_000)
    assert short is not None
    assert len(short) > 39_900
    assert json.loads(short)["session"]["tools"] == [tool(1, 100)]


@pytest.mark.parametrize("ensure_ascii", [False, True])
@pytest.mark.parametrize("words", ["語", "\U0001f600", 'a"', "é\\", "\x01", "x"])
def test_shortened_counts_bytes_and_not_characters(words: str, ensure_ascii: bool) -> None:
    """Whatever characters a text has, and however it came, only as much of it goes as has to."""
    text = words * 20_000
    data = json.dumps({"type": "x", "text": text}, ensure_ascii=ensure_ascii).encode()
    short = shortened(data, 12_000)
    assert short is not None
    assert 11_980 < len(short) <= 12_000
    assert text.startswith(json.loads(short)["text"])


def test_shortened_takes_the_sound_out_of_a_retrieved_item() -> None:
    """A part without its sound is a valid part; half of its base64 is not."""
    part = {"type": "input_audio", "transcript": "Hello.", "audio": "A" * 9_000}
    item = {"id": "i", "object": "realtime.item", "type": "message", "role": "user", "content": [part]}
    data = json.dumps({"event_id": "e", "type": "conversation.item.retrieved", "item": item}).encode()
    short = shortened(data, 5_000)
    assert short is not None
    assert json.loads(short)["item"]["content"] == [{"type": "input_audio", "transcript": "Hello."}]


@pytest.mark.parametrize("name", ["arguments", "delta", "call_id"])
def test_shortened_gives_up_where_a_cut_would_break_the_event(name: str) -> None:
    """Arguments are read as JSON, deltas are joined, ids are looked up."""
    assert shortened(json.dumps({"type": "x", name: "a" * 9_000}).encode(), 5_000) is None
