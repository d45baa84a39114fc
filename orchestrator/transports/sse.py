"""Server-sent events as text (a heart): what a line of them holds, and which of them have a number to come back to."""

import msgspec

from orchestrator.transports.cursor import event_number

HEARTBEAT = b": here\n\n"
"""A comment: readers pass over it, and proxies see that somebody is there."""


class _Named(msgspec.Struct):
    """The fields of an event that a frame shows outside of its data."""

    type: str
    event_id: str = ""


_decoder = msgspec.json.Decoder(_Named)


def beginning(retry_ms: int, tag: str, number: int) -> bytes:
    """Returns what a stream begins with: when its reader comes back after a cut, and from which number, before it has
    got anything. No event comes of it."""
    return b"retry: %d\nid: event_%b_%d\n\n" % (retry_ms, tag.encode(), number)


def frame(data: bytes, tag: str) -> bytes:
    """Returns an encoded event of the session with this `tag` (`ids.event_tag`) as one frame: its type as ``event``,
    and its number as ``id`` where it has one. A private message has none, so that its reader stays where it was."""
    named = _decoder.decode(data)
    head = b"event: %b\n" % named.type.encode()
    if event_number(named.event_id, tag) is not None:
        head = b"id: %b\n" % named.event_id.encode() + head
    return head + b"".join(b"data: %b\n" % line for line in data.splitlines()) + b"\n"
