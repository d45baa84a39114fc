"""A wrong value in any place of any client event is answered with the name of that place."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.errors import WireError
from orchestrator.wire import codec
from orchestrator.wire.client import UpdateSession
from orchestrator.wire.update import merge
from tests.sessions.talk import view

MESSAGE = {"id": "a", "type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}
FUNCTION = {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}}


def given(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "conversation.item.create", "previous_item_id": "root", "item": item}


SOUND = {"type": "input_audio", "audio": "AAAA", "transcript": "x"}
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"}
EVENTS: list[dict[str, Any]] = [
    {"type": "input_audio_buffer.append", "audio": "AAAA"},
    given(MESSAGE),
    given({"type": "message", "role": "user", "content": [SOUND]}),
    given({"type": "message", "role": "user", "content": [IMAGE]}),
    given({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}),
    given({"type": "function_call", "name": "f", "call_id": "c", "arguments": "{}"}),
    given({"type": "function_call_output", "call_id": "c", "output": "o"}),
    {"type": "conversation.item.retrieve", "item_id": "a"},
    {"type": "conversation.item.truncate", "item_id": "a", "content_index": 0, "audio_end_ms": 5},
    {"type": "conversation.item.delete", "item_id": "a"},
    {
        "type": "response.create",
        "response": {
            "instructions": "x",
            "output_modalities": ["text"],
            "tools": [FUNCTION],
            "tool_choice": {"type": "function", "name": "f"},
            "max_output_tokens": 5,
            "audio": {"output": {"format": {"type": "audio/pcm", "rate": 24_000}, "voice": "v"}},
            "metadata": {"a": "b"},
            "conversation": "none",
            "input": [{"type": "item_reference", "id": "x"}, MESSAGE],
            "parallel_tool_calls": True,
            "reasoning": {"effort": "low"},
        },
    },
    {"type": "response.cancel", "response_id": "r"},
    {
        "type": "session.update",
        "session": {
            "type": "realtime",
            "model": "chorale",
            "output_modalities": ["text"],
            "instructions": "x",
            "tools": [FUNCTION],
            "tool_choice": {"type": "function", "name": "f"},
            "max_output_tokens": "inf",
            "parallel_tool_calls": True,
            "reasoning": {"effort": "low"},
            "tracing": "auto",
            "truncation": {
                "type": "retention_ratio",
                "retention_ratio": 0.5,
                "token_limits": {"post_instructions": 5},
            },
            "include": ["item.input_audio_transcription.logprobs"],
            "audio": {
                "input": {
                    "format": {"type": "audio/pcm", "rate": 24_000},
                    "transcription": {
                        "model": "m",
                        "language": "en",
                        "prompt": "p",
                        "languages": ["en"],
                        "keywords": ["k"],
                        "delay": "low",
                    },
                    "noise_reduction": {"type": "near_field", "strength": 0.5},
                    "turn_detection": {
                        "type": "server_vad",
                        "threshold": 0.5,
                        "prefix_padding_ms": 300,
                        "silence_duration_ms": 500,
                        "create_response": True,
                        "interrupt_response": True,
                        "idle_timeout_ms": 6_000,
                    },
                },
                "output": {"format": {"type": "audio/pcmu"}, "voice": "v", "speed": 1.0},
            },
        },
    },
    {
        "type": "session.update",
        "session": {
            "type": "realtime",
            "audio": {
                "input": {
                    "turn_detection": {
                        "type": "semantic_vad",
                        "eagerness": "low",
                        "create_response": True,
                        "interrupt_response": True,
                    }
                }
            },
        },
    },
]

FREE = (".parameters", ".metadata", ".tracing")
"""Below these a client may write what it likes."""

Path = tuple[str | int, ...]


def places(value: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Yields every place below a value, and what stands there."""
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for name, member in members:
        yield (*path, name), member
        yield from places(member, (*path, name))


def named(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def changed(event: dict[str, Any], path: Path, value: object) -> dict[str, Any]:
    whole = copy.deepcopy(event)
    place: Any = whole
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return whole


def read(event: dict[str, Any]) -> None:
    """Takes an event as a session does. Raises `WireError`."""
    decoded = codec.decode_client(json.dumps(event))
    if isinstance(decoded, UpdateSession):
        merge(view(), decoded.session, audio_started=False)


CASES = [
    pytest.param(event, path, id=f"{event['type']} {named(path)}"[:100])
    for event in EVENTS
    for path, _ in places(event)
    if path != ("type",) and not any(free in named(path[:-1]) for free in ("parameters",))
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event["type"])
def test_client_event_with_everything_in_it_is_taken(event: dict[str, Any]) -> None:
    """What the mutations below begin with."""
    read(event)


@pytest.mark.parametrize(("event", "path"), CASES)
def test_client_event_with_a_wrong_value_is_refused_by_the_name_of_its_place(
    event: dict[str, Any], path: Path
) -> None:
    """Of a value that cannot be meant `param` is the place, one above it, or the part of it that is missing."""
    of_another_kind: list[object] = [[[7]], {"type": [7]}, 1.5]
    found = dict(places(event))[path]
    if isinstance(found, float):
        of_another_kind = ["fast", [[7]], {"type": [7]}]
    for value in of_another_kind:
        if named(path).endswith(FREE) and isinstance(value, dict):
            continue
        if isinstance(found, dict) and isinstance(value, dict) and "type" not in found:
            continue  # a field that nobody knows is passed over
        with pytest.raises(WireError) as caught:
            read(changed(event, path, value))
        param = caught.value.param or ""
        assert param, (named(path), value, str(caught.value))
        assert param.startswith(named(path)) or named(path).startswith(param), (named(path), value, param)
        assert caught.value.wire_code in ("invalid_type", "invalid_value", "missing_required_parameter")
