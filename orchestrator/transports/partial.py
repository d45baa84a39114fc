"""Lays one partial session over another: a client secret brings one, the call or URL made with it may bring more."""

import msgspec

from orchestrator.errors import WireError
from orchestrator.wire import limits

MAX_MODEL_CHARACTERS = 256

_DEEP = frozenset({"audio", "input", "output", "chorale"})
"""Objects that merge field by field; all others are replaced as wholes (protocol reference §2)."""

_NULL_MEANS_OFF = frozenset({"turn_detection", "transcription", "noise_reduction", "tracing", "prompt"})


def overlay(under: bytes | None, over: bytes | None) -> bytes | None:
    """Returns `under` with `over` laid over it, both partial sessions as JSON; None where neither is given.

    What the values mean is checked later, by the session. Raises `WireError` on what is no JSON object.
    """
    if under is None or over is None:
        return check(over if under is None else under)
    return msgspec.json.encode(_merged(_read(under), _read(over)))


def check(partial: bytes | None) -> bytes | None:
    """Returns the partial session if it is a JSON object. Raises `WireError`."""
    if partial is not None:
        _read(partial)
    return partial


def encoded(session: dict[str, object]) -> bytes:
    """Returns the session as JSON. Raises `WireError` on half a surrogate pair: JSON can write it, UTF-8 cannot."""
    try:
        return msgspec.json.encode(session)
    except UnicodeEncodeError:
        raise WireError("invalid_json", "The session holds text that is no Unicode.", "session") from None


def transcription(partial: bytes | None) -> bytes:
    """Returns the partial session of ``?intent=transcription``; a type that stands there already is kept."""
    return msgspec.json.encode({"type": "transcription", **(_read(partial) if partial is not None else {})})


def model(name: str | None) -> str | None:
    """Returns the model that a URL names; "" counts as none. Raises `WireError` on an endless one."""
    if name is not None and len(name) > MAX_MODEL_CHARACTERS:
        raise WireError("invalid_value", "Invalid value for 'model': the name is too long.", "model")
    return name or None


def _read(partial: bytes) -> dict[str, object]:
    limits.check_values(partial)
    try:
        plain = msgspec.json.decode(partial)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise WireError("invalid_json", f"The session is not valid JSON: {error}.", "session") from None
    if not isinstance(plain, dict):
        raise WireError("invalid_type", "Invalid type for 'session': expected an object.", "session")
    return plain


def _merged(under: dict[str, object], over: dict[str, object]) -> dict[str, object]:
    result = dict(under)
    for name, value in over.items():
        below = result.get(name)
        if name in _DEEP and isinstance(below, dict) and isinstance(value, dict):
            result[name] = _merged(below, value)
        elif value is not None or name in _NULL_MEANS_OFF:
            result[name] = value
    return result
