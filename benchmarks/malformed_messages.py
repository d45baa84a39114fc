"""Messages that no client sends in good faith: events with something changed in them, so that each is to be refused."""

import base64
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from orchestrator.errors import WireError
from orchestrator.wire import codec
from orchestrator.wire.client import AppendAudio

_ITEM: dict[str, Any] = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "hello"}],
}
_EVENTS: list[dict[str, Any]] = [
    {"type": "session.update", "session": {"type": "realtime", "output_modalities": ["text"]}},
    {"type": "input_audio_buffer.append", "audio": base64.b64encode(bytes(480)).decode()},
    {"type": "conversation.item.create", "item": _ITEM},
    {"type": "conversation.item.truncate", "item_id": "item_1", "content_index": 0, "audio_end_ms": 10},
    {"type": "response.create", "response": {"metadata": {"a": "b"}, "input": [_ITEM]}},
    {"type": "chorale.token", "slots": [{"name": "day", "value": "monday"}]},
]
_ODD: tuple[Any, ...] = (None, -1, 1.5, 10**25, True, "", "\ud800", "x" * 5_000, [], {}, [[[]]], {"type": 5})


def malformed(seed: int, count: int) -> Iterator[str | bytes]:
    """Yields so many messages, each of which is refused when it is decoded: text, and now and then bytes, which no
    event is sent as. The same for the same seed."""
    chance = random.Random(seed)
    while count:
        message = chance.choice(_WAYS)(chance)
        if isinstance(message, bytes) or _is_refused(message):
            count -= 1
            yield message


def _is_refused(message: str) -> bool:
    try:
        event = codec.decode_client(message)
        if isinstance(event, AppendAudio):
            codec.decode_audio(event.audio)
    except WireError:
        return True
    return False


def _scratched(chance: random.Random) -> str:
    """Characters overwritten, cut out, put in, or the rest missing."""
    text = json.dumps(chance.choice(_EVENTS))
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(text))
        match chance.randrange(4):
            case 0:
                text = text[:at] + chance.choice('{}[]",:\\0e-\n\x7fé') + text[at + 1 :]
            case 1:
                text = text[:at] + text[at + chance.randrange(1, 9) :]
            case 2:
                text = text[:at] + text[at : at + chance.randrange(1, 40)] + text[at:]
            case _:
                text = text[: at + 1]
        text = text or "x"
    return text


def _bent(chance: random.Random) -> str:
    """One value exchanged for one of another kind."""
    event = json.loads(json.dumps(chance.choice(_EVENTS)))
    places: list[tuple[Any, Any]] = [(event, name) for name in event]
    for place in places:
        value = place[0][place[1]]
        if isinstance(value, dict | list):
            inside = value if isinstance(value, dict) else range(len(value))
            places += [(value, name) for name in inside]
    holder, name = chance.choice(places)
    holder[name] = chance.choice(_ODD)
    return json.dumps(event)


def _deep(chance: random.Random) -> str:
    """Brackets without an end, in an event or alone."""
    depth = chance.choice((100, 2_000, 50_000))
    return chance.choice(("[", '{"type":', '{"type":"session.update","session":{"tools":[')) * depth


def _many(chance: random.Random) -> str:
    """More values than an event may have."""
    return '{"type":"response.create","response":{"metadata":[' + "0," * chance.choice((50, 100_000)) + "0]}}"


def _no_text(chance: random.Random) -> bytes:
    return chance.randbytes(chance.randrange(1, 200))


def _of_no_type(chance: random.Random) -> str:
    kind = "".join(chance.choice("abc.\r\n%²\0") for _ in range(chance.randrange(1, 300)))
    return json.dumps({"type": kind, "event_id": chance.choice(("e", "e" * 600, 5))})


_Way = Callable[[random.Random], str | bytes]
_WAYS: tuple[_Way, ...] = (
    *(_scratched,) * 40,
    *(_bent,) * 40,
    *(_of_no_type,) * 15,
    *(_no_text,) * 8,
    _deep,
    _many,
)
