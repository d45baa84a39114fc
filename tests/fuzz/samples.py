"""One of everything that a client may send, in good order: what the fuzz tests begin with."""

import base64
import json
from typing import Any

_ITEM = {
    "id": "item_1",
    "type": "message",
    "role": "user",
    "content": [
        {"type": "input_text", "text": "hello"},
        {"type": "input_audio", "audio": "AAA=", "transcript": "t"},
    ],
}
_TOOL = {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}}
SESSION: dict[str, Any] = {
    "type": "realtime",
    "instructions": "be brief",
    "output_modalities": ["text"],
    "tools": [_TOOL],
    "tool_choice": "auto",
    "max_output_tokens": 100,
    "truncation": {"type": "retention_ratio", "retention_ratio": 0.5},
    "include": ["item.input_audio_transcription.logprobs"],
    "audio": {
        "input": {
            "format": {"type": "audio/pcm", "rate": 24000},
            "transcription": {"model": "m", "language": "en", "prompt": "p"},
            "turn_detection": {"type": "server_vad", "threshold": 0.5, "idle_timeout_ms": 6000},
            "noise_reduction": {"type": "near_field"},
        },
        "output": {"format": {"type": "audio/pcmu"}, "voice": "v", "speed": 1.0},
    },
    "chorale": {"typed_turns": True, "record": False},
}
EVENTS: list[dict[str, Any]] = [
    {"type": "session.update", "event_id": "e1", "session": SESSION},
    {"type": "input_audio_buffer.append", "audio": base64.b64encode(bytes(60)).decode()},
    {"type": "input_audio_buffer.commit", "event_id": "e2"},
    {"type": "input_audio_buffer.clear"},
    {"type": "conversation.item.create", "previous_item_id": "root", "item": _ITEM},
    {
        "type": "conversation.item.create",
        "item": {"type": "function_call_output", "call_id": "call_1", "output": "{}"},
    },
    {"type": "conversation.item.retrieve", "item_id": "item_1"},
    {"type": "conversation.item.delete", "item_id": "item_1"},
    {"type": "conversation.item.truncate", "item_id": "item_1", "content_index": 0, "audio_end_ms": 10},
    {
        "type": "response.create",
        "response": {
            "conversation": "none",
            "input": [_ITEM, {"type": "item_reference", "id": "item_1"}],
            "metadata": {"a": "b"},
            "tools": [_TOOL],
            "output_modalities": ["text"],
            "max_output_tokens": "inf",
        },
    },
    {"type": "response.cancel", "response_id": "resp_1"},
    {"type": "output_audio_buffer.clear"},
    {"type": "chorale.token", "intent": "book", "slots": [{"name": "day", "value": "monday"}]},
    {"type": "chorale.caption", "item_id": "item_1", "text": "words"},
]
WRITTEN = [json.dumps(one).encode() for one in EVENTS]
