"""Events that are longer than a client takes: shortened, or an `error` in their place where that would break them."""

import logging

import msgspec

from orchestrator.wire import codec, server
from orchestrator.wire.shortening import shortened

_log = logging.getLogger(__name__)


def fitting(data: bytes, limit_bytes: int, in_json: bool = False) -> bytes:
    """Returns what is sent for an encoded event to a client that takes `limit_bytes`, under the same `event_id`. What
    was cut is logged. `in_json`: it is sent as a string in JSON, where it is longer."""
    if in_json and (size := _in_json(data)) > limit_bytes:
        fit = fitting(data, limit_bytes * len(data) // size)
        return fit if _in_json(fit) <= limit_bytes else fitting(data, limit_bytes // 2)
    if len(data) <= limit_bytes:
        return data
    short = shortened(data, limit_bytes)
    if short is not None:
        _log.warning("an event of %d bytes was cut to the %d that a client takes", len(data), limit_bytes)
        return short
    _log.warning("an event of %d bytes is more than a client takes and was left out", len(data))
    details = server.ErrorDetails(
        "server_error",
        f"An event of {len(data)} bytes is too big for this connection ({limit_bytes} bytes).",
        "event_too_big",
    )
    return codec.encode(server.Error(details), msgspec.json.decode(data, type=_Numbered).event_id)


def view_fitting(data: bytes, limit_bytes: int, in_json: bool = False) -> bytes:
    """As `fitting`, for a session as it is shown, which is no event: an empty object where cutting is not enough."""
    size = _in_json(data) if in_json else len(data)
    if size <= limit_bytes:
        return data
    _log.warning("a session of %d bytes was cut to the %d that a client takes", size, limit_bytes)
    fit = shortened(data, limit_bytes * len(data) // size) or b"{}"  # all of it, where it is not in JSON
    return fit if not in_json or _in_json(fit) <= limit_bytes else shortened(data, limit_bytes // 2) or b"{}"


def _in_json(data: bytes) -> int:
    """Returns the length of encoded JSON as a string in JSON: quotes and backslashes are doubled, and it has no other
    characters that are escaped."""
    return len(data) + data.count(b'"') + data.count(b"\\") + 2


class _Numbered(msgspec.Struct):
    event_id: str
