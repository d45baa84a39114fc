"""gRPC-Web as text (``application/grpc-web-text``): the same frames in base64, for clients that read answers as text.

Such a client pads each piece that it sends by itself, and takes answers whose pieces are padded so.
"""

import base64
import re
from collections.abc import Iterable
from typing import cast

from starlette.types import Message, Receive, Send

TEXT = b"application/grpc-web-text"
_BINARY = b"application/grpc-web"
_SEGMENT = re.compile(rb"[^=]+={0,2}")


def is_text(content_type: bytes) -> bool:
    return content_type.startswith(TEXT)


def as_binary(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Returns the headers of a request as its binary form would have them."""
    return [
        (name, value.lower().replace(TEXT, _BINARY, 1) if name == b"content-type" else value)
        for name, value in headers
    ]


class Decoder:
    """Base64 that comes in pieces of any length."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes, is_last: bool) -> bytes:
        """Returns the bytes that are complete. Raises `ValueError` on what is no base64."""
        data = self._rest + piece
        whole = len(data) if is_last else len(data) - len(data) % 4
        self._rest = data[whole:]
        return b"".join(base64.b64decode(one, validate=True) for one in _SEGMENT.findall(data[:whole]))


class TextBody:
    """The body of a request, decoded as it comes. Raises `ValueError`."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._decoder = Decoder()

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] != "http.request":
            return message
        body, more = message.get("body", b""), message.get("more_body", False)
        return {**message, "body": self._decoder.feed(body, not more)}


class TextAnswer:
    """Sends an answer in base64, piece by piece, as it comes. An answer that is no gRPC-Web goes as it is."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._encodes = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = cast(list[tuple[bytes, bytes]], list(message.get("headers", ())))
            self._encodes = any(
                name == b"content-type" and value.startswith(_BINARY) for name, value in headers
            )
            if self._encodes:
                message = {
                    **message,
                    "headers": [_as_text(*one) for one in headers if one[0] != b"content-length"],
                }
        elif message["type"] == "http.response.body" and self._encodes:
            message = {**message, "body": base64.b64encode(message.get("body", b""))}
        await self._send(message)


def _as_text(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    return name, value.replace(_BINARY, TEXT, 1) if name == b"content-type" else value
