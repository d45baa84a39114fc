"""Makes a server event fit a link that takes no longer message, without taking from it what clients go by.

A client that waits for `session.updated` or for its item to be added hangs where another event stands in its place.
What makes these events long is what clients wrote themselves: words and tools. Of that no more is left out than has to.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

_WORDS = frozenset({"instructions", "description", "text", "transcript", "output", "image_url", "prompt"})
"""Texts that mean something though their end is missing. Not ``arguments``, which clients read as JSON, nor deltas,
which they join."""

_ANY_OBJECT = {"type": "object"}
"""The least that a tool's parameters may be."""

_LONGEST_CHARACTER = 6
"""Bytes of one in JSON: ``\\u0000``."""

Container = dict[str, Any]


def shortened(data: bytes, limit_bytes: int) -> bytes | None:
    """Returns the event in at most `limit_bytes`: the same type, ids, order and names, its longest words and tool
    parameters cut, its sound left out; None where that is not enough. The longest go first."""
    event = msgspec.json.decode(data)
    excess = len(msgspec.json.encode(event)) - limit_bytes  # `data` may be written less tightly
    for size, container, name in sorted(_leaves(event), key=lambda leaf: -leaf[0]):
        if excess <= 0:
            break
        excess -= size - _cut(container, name, excess)
    short = msgspec.json.encode(event)
    return short if len(short) <= limit_bytes else None


def _leaves(value: object) -> Iterator[tuple[int, Container, str]]:
    """Yields what may be cut: its size in bytes, what holds it, and its name there."""
    if isinstance(value, list):
        for member in value:
            yield from _leaves(member)
    elif isinstance(value, dict):
        for name, member in value.items():
            if name == "parameters" or (isinstance(member, str) and (name in _WORDS or name == "audio")):
                yield len(msgspec.json.encode(member)), value, name
            elif name not in ("metadata", "variables"):
                yield from _leaves(member)


def _cut(container: Container, name: str, excess: int) -> int:
    """Cuts one leaf by what is too much, if that can be; returns its size then."""
    value = container[name]
    if isinstance(value, str) and name in _WORDS:
        container[name] = _beginning(value, len(msgspec.json.encode(value)) - excess)
    elif name == "audio":
        del container[name]
        return 0
    else:
        container[name] = _ANY_OBJECT
    return len(msgspec.json.encode(container[name]))


def _beginning(text: str, limit_bytes: int) -> str:
    """Returns as much of a text as takes `limit_bytes` in JSON with its quotes, to the character; "" where that is
    none."""
    written = msgspec.json.encode(text)[: max(0, limit_bytes - 1)]
    for stop in range(len(written), max(1, len(written) - _LONGEST_CHARACTER), -1):
        try:
            return msgspec.json.decode(written[:stop] + b'"', type=str)
        except msgspec.DecodeError:
            continue  # in the middle of a character
    return ""
