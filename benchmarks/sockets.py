"""Many WebSockets read at the least cost: frames are counted in the bytes as they come, nothing is parsed."""

import json
import os
import resource
import selectors
import socket
import struct
import time
from typing import Any

_READ_BYTES = 1 << 18
_TEXT, _FIRST_LONG, _FIRST_LONGER = 0x81, 126, 127


class Sockets:
    """Plain sockets that have become WebSockets. What is counted is a mark that each event holds once."""

    def __init__(self, mark: bytes) -> None:
        self._mark = mark
        self._open: list[socket.socket] = []
        self._rest: dict[int, bytes] = {}
        self._selector = selectors.DefaultSelector()

    def connect(self, port: int, query: str = "") -> tuple[socket.socket, dict[str, Any]]:
        """Opens one; returns it and the server's first event. Raises `OSError`."""
        one = socket.create_connection(("127.0.0.1", port), timeout=60)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        key = "dGhlIHNhbXBsZSBub25jZQ=="
        one.sendall(
            f"GET /v1/realtime{query} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        came = b""
        while b"\r\n\r\n" not in came:
            came += _some(one)
        head, _, came = came.partition(b"\r\n\r\n")
        status = head.partition(b"\r\n")[0].decode(errors="replace")
        if " 101 " not in status:
            raise OSError(f"the server refused: {status}")
        while (text := first_text(came)) is None:
            came += _some(one)
        self._open.append(one)
        self._selector.register(one, selectors.EVENT_READ)
        first: dict[str, Any] = json.loads(text)
        return one, first

    def count(self, wanted: int, within_s: float) -> None:
        """Reads until so many events have come in all. Raises `OSError` where they do not come in time."""
        keep, stop_s = len(self._mark) - 1, time.monotonic() + within_s
        while wanted > 0:
            if time.monotonic() > stop_s:
                raise OSError(f"{wanted} events did not come within {within_s} s")
            for key, _ in self._selector.select(0.1):
                came = key.fileobj.recv(_READ_BYTES)  # type: ignore[union-attr]  # they are all sockets
                if not came:
                    raise OSError("the server closed a connection")
                came = self._rest.get(key.fd, b"") + came
                wanted -= came.count(self._mark)
                self._rest[key.fd] = came[-keep:]

    def close(self) -> None:
        """Closes all. Idempotent."""
        self._selector.close()
        for one in self._open:
            one.close()
        self._open.clear()


def send_text(to: socket.socket, text: str) -> None:
    """Sends one masked text message of less than 64 KiB (RFC 6455 §5.2)."""
    payload, mask = text.encode(), os.urandom(4)
    short = len(payload) < _FIRST_LONG
    size = bytes([0x80 | len(payload)]) if short else struct.pack("!BH", 0x80 | _FIRST_LONG, len(payload))
    masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
    to.sendall(bytes([_TEXT]) + size + mask + masked)


def first_text(came: bytes) -> bytes | None:
    """Returns the payload of the unmasked message that these bytes begin with; None while it is not all there."""
    if len(came) < 2:
        return None
    size, start = came[1], 2
    if size == _FIRST_LONG:
        size, start = int.from_bytes(came[2:4], "big"), 4
    elif size == _FIRST_LONGER:
        size, start = int.from_bytes(came[2:10], "big"), 10
    return came[start : start + size] if len(came) >= start + size else None


def allow_files(count: int) -> None:
    """Lets this process, and those it starts, open so many files, as far as the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count if hard < 0 else min(count, hard), hard))


def _some(one: socket.socket) -> bytes:
    came = one.recv(65_536)
    if not came:
        raise OSError("the server closed the connection")
    return came
