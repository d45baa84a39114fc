"""Events that are longer than a client takes: shortened, or an `error` in their place where that would break them."""

import logging

import msgspec

from orchestrator.wire import codec, server
from orchestrator.wire.shortening import shortened

_log = logging.getLogger(__name__)


def fitting(data: bytes, limit_bytes: int) -> bytes:
    """Returns what is sent for an encoded event to a client that takes `limit_bytes`, under the same `event_id`. What
    was cut is logged."""
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


class _Numbered(msgspec.Struct):
    event_id: str
