"""Takes what people said out of what is written down, and leaves when and what happened. Pure.

Every string becomes ``#`` and eight hexadecimal digits of a keyed hash, and its length; but not those under names that
never hold anybody's words. The key is drawn for each recording and written nowhere: equal strings stay equal within a
recording, and guessing them leads nowhere.
"""

import re
from hashlib import blake2b

import msgspec

KEPT = frozenset(
    {
        "type", "role", "status", "object", "kind", "code", "reason", "format", "rate", "finish_reason", "language",
        "model", "act", "conversation", "tool_choice", "modality", "output_modalities", "events",
        "id", "param", "early", "rung", "truncation", "max_output_tokens", "include", "eagerness", "voice", "engine",
    }
)  # fmt: skip
"""Names whose strings stay, besides those that end in ``_id``."""

_PLAIN = re.compile(r"[\w.:\-/]{0,80}", re.ASCII)
_PACKED = re.compile(r"f[48]:[A-Za-z0-9+/=]*")
"""Probabilities of speech."""


def redact(data: bytes, key: bytes) -> bytes:
    """Returns a JSON value without anybody's words."""
    return msgspec.json.encode(_blank(msgspec.json.decode(data), key, False))


def _blank(value: object, key: bytes, is_kept: bool) -> object:
    match value:
        case str():
            # What is kept is a name or a number: a client cannot bring words in under it.
            return value if is_kept and _PLAIN.fullmatch(value) else _hash(value, key)
        case dict():
            return {
                (name if _PLAIN.fullmatch(name) else _hash(name, key)): _member(name, below, key)
                for name, below in value.items()
            }
        case list():
            return [_blank(one, key, is_kept) for one in value]
        case _:
            return value


def _member(name: str, value: object, key: bytes) -> object:
    if name == "probabilities" and isinstance(value, str) and _PACKED.fullmatch(value):
        return value
    if name == "likeness":
        return {}  # what a text is like tells what it says
    return _blank(value, key, name in KEPT or name.endswith("_id"))


def _hash(text: str, key: bytes) -> str:
    if not text:
        return ""
    return f"#{blake2b(text.encode(errors='replace'), digest_size=4, key=key).hexdigest()}:{len(text)}"
