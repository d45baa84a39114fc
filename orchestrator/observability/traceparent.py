"""W3C Trace Context: what a client's ``traceparent`` header says (https://www.w3.org/TR/trace-context/, version 00)."""

import re
from dataclasses import dataclass

_HEADER = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_INVALID_VERSION = "ff"
_SAMPLED = 0x01


@dataclass(frozen=True, slots=True)
class TraceParent:
    """The span of a client that caused what is traced here."""

    trace_id: int
    span_id: int
    sampled: bool


def parse(header: str | None) -> TraceParent | None:
    """Returns what the header says; None for none and for a malformed one, as the standard asks: it is then ignored."""
    found = _HEADER.fullmatch(header.strip()) if header is not None else None
    if found is None:
        return None
    version, trace_id, span_id, flags, rest = found.groups()
    if (
        version == _INVALID_VERSION
        or (version == "00" and rest)
        or not int(trace_id, 16)
        or not int(span_id, 16)
    ):
        return None
    return TraceParent(int(trace_id, 16), int(span_id, 16), bool(int(flags, 16) & _SAMPLED))
