"""WebSocket frames (RFC 6455 §5.2) at the least cost, without I/O: thousands a second leave little time."""

import os
import struct
from dataclasses import dataclass

TEXT, CLOSE, PING, PONG = 0x1, 0x8, 0x9, 0xA
_FINAL, _MASKED = 0x80, 0x80
_LONG, _LONGER = 126, 127


@dataclass(frozen=True, slots=True)
class Message:
    """One whole frame from a server: `kind` is TEXT, CLOSE, PING or PONG."""

    kind: int
    payload: bytes


class Reader:
    """Bytes in, messages out, however the bytes were split. Servers here send no fragments and mask nothing."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, came: bytes) -> list[Message]:
        """Returns the messages that are complete now, in order. Raises `ValueError` on a fragment."""
        data, at = self._rest + came, 0
        found: list[Message] = []
        while (bounds := _bounds(data, at)) is not None:
            if not data[at] & _FINAL:
                raise ValueError("the server sent a message in pieces")
            start, stop = bounds
            found.append(Message(data[at] & 0x0F, data[start:stop]))
            at = stop
        self._rest = data[at:]
        return found


def frame(kind: int, payload: bytes) -> bytes:
    """Returns one frame from a client, masked with fresh random bits."""
    size = len(payload)
    if size < _LONG:
        head = bytes((_FINAL | kind, _MASKED | size))
    elif size < 1 << 16:
        head = struct.pack("!BBH", _FINAL | kind, _MASKED | _LONG, size)
    else:
        head = struct.pack("!BBQ", _FINAL | kind, _MASKED | _LONGER, size)
    mask = os.urandom(4)
    return head + mask + masked(payload, mask)


def masked(payload: bytes, mask: bytes) -> bytes:
    """Returns the payload under a mask of four bytes; twice is the payload again."""
    size = len(payload)
    under = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload) ^ int.from_bytes(under)).to_bytes(size)


def upgrade(host: str, port: int, path: str, key: str | None) -> bytes:
    """Returns the request that makes a connection a WebSocket; `key` is the API key."""
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: {host}:{port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ]
    if key is not None:
        lines.append(f"Authorization: Bearer {key}")
    return "\r\n".join([*lines, "", ""]).encode()


def _bounds(data: bytes, at: int) -> tuple[int, int] | None:
    """Returns where the payload of the frame at `at` begins and ends; None while it is not all there."""
    have = len(data) - at
    if have < 2:
        return None
    size, head = data[at + 1] & 0x7F, 2
    if size == _LONG:
        head = 4
    elif size == _LONGER:
        head = 10
    if have < head:
        return None
    if head > 2:
        size = int.from_bytes(data[at + 2 : at + head])
    start = at + head
    return (start, start + size) if have >= head + size else None
