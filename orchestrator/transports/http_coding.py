"""Compression of HTTP answers that gain by it: files of the page, once; answers in JSON, as they leave.

Streams are never compressed: what is packed waits for more. Nor is an answer that holds a secret beside what its client
said: its length would tell of the secret (BREACH). Requests are never unpacked: a few bytes may be gigabytes.
"""

import asyncio
import gzip
from collections.abc import Callable, Mapping, Sequence

import brotli
import zstandard
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.transports.refusals import Refusal, refuse

SHORTEST_BYTES = 1_024
"""Shorter answers fit into one packet as they are."""

FILES = ("br", "zstd", "gzip")
"""Codings of the page's files, which are packed once: the smallest first."""

ANSWERS = ("zstd", "br", "gzip")
"""Codings of answers, which are packed each time: the quickest first."""

_PACK_ONCE: Mapping[str, Callable[[bytes], bytes]] = {
    "br": lambda data: brotli.compress(data, quality=5),
    "zstd": lambda data: zstandard.compress(data, 12),
    "gzip": lambda data: gzip.compress(data, 9, mtime=0),
}
_PACK: Mapping[str, Callable[[bytes], bytes]] = {
    "br": lambda data: brotli.compress(data, quality=4),
    "zstd": lambda data: zstandard.compress(data, 3),
    "gzip": lambda data: gzip.compress(data, 4, mtime=0),
}

_IN_A_THREAD_BYTES = 65_536
"""From here on packing takes milliseconds, in which everybody else would wait."""

_LEFT_ALONE = ("/v1/sessions", "/v1/realtime", "/chorale.")
"""Answers with secrets, and those of a protocol that has a compression of its own."""

_OWN_BODIES = ("/chorale.",)
_LONGEST_HEADER = 1_024


def chosen(accepted: str, offered: Sequence[str]) -> str | None:
    """Returns the coding that a client likes best (RFC 9110 §12.5.3; of equals the first of `offered`), None where it
    takes none of them."""
    weights = dict(_weight(part) for part in accepted[:_LONGEST_HEADER].lower().split(","))
    any_other = weights.get("*", 0.0)
    best = max(offered, key=lambda coding: weights.get(coding, any_other), default=None)
    return best if best is not None and weights.get(best, any_other) > 0 else None


def packed_once(data: bytes) -> dict[str, bytes]:
    """Returns a file in every coding by which it gets shorter."""
    if len(data) < SHORTEST_BYTES:
        return {}
    packed = {coding: _PACK_ONCE[coding](data) for coding in FILES}
    return {coding: short for coding, short in packed.items() if len(short) < len(data)}


class Coding:
    """ASGI inside the border. Refuses requests whose bodies are packed (415)."""

    def __init__(self, app: ASGIApp, packs: bool = True) -> None:
        """`packs`: whether answers are packed at all."""
        self._app = app
        self._packs = packs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, path = Headers(scope=scope), scope["path"]
        if headers.get("content-encoding", "identity").lower() != "identity" and not _is_of(
            path, _OWN_BODIES
        ):
            refusal = Refusal(
                415,
                "unsupported_media_type",
                "Bodies are taken as they are, not compressed.",
                headers={"Accept-Encoding": "identity"},
            )
            await refuse(refusal)(scope, receive, send)
            return
        if not self._packs or _is_of(path, _LEFT_ALONE):
            await self._app(scope, receive, send)
            return
        coding = chosen(headers.get("accept-encoding", ""), ANSWERS)
        await self._app(scope, receive, _Answer(send, coding, scope["method"] != "HEAD"))


class _Answer:
    """What is sent, packed where that is worth it: JSON that is complete in one piece."""

    def __init__(self, send: Send, coding: str | None, has_body: bool) -> None:
        self._send = send
        self._coding = coding
        self._has_body = has_body
        self._start: Message | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _gains(message):
            MutableHeaders(scope=message).add_vary_header("Accept-Encoding")
            if self._coding is not None and self._has_body:
                self._start = message  # until the body is there, whose length it says
                return
        elif self._start is not None and message["type"] == "http.response.body":
            start, self._start = self._start, None
            if not message.get("more_body", False):
                message = await self._packed(start, message)
            await self._send(start)
        await self._send(message)

    async def _packed(self, start: Message, message: Message) -> Message:
        assert self._coding is not None
        pack, body = _PACK[self._coding], message["body"]
        short = await asyncio.to_thread(pack, body) if len(body) > _IN_A_THREAD_BYTES else pack(body)
        if len(short) >= len(body):
            return message
        headers = MutableHeaders(scope=start)
        headers["Content-Encoding"] = self._coding
        headers["Content-Length"] = str(len(short))
        return {**message, "body": short}


def _is_of(path: str, beginnings: Sequence[str]) -> bool:
    return path.startswith(tuple(beginnings))


def _gains(start: Message) -> bool:
    """Whether an answer that begins so may be packed."""
    headers = MutableHeaders(scope=start)
    length = headers.get("content-length", "")
    return (
        headers.get("content-type", "").partition(";")[0].strip() == "application/json"
        and "content-encoding" not in headers
        and "no-transform" not in headers.get("cache-control", "")
        and length.isdecimal()
        and int(length) >= SHORTEST_BYTES
    )


def _weight(part: str) -> tuple[str, float]:
    """Returns a coding and how much it is liked; not at all where that is no number from 0 to 1."""
    coding, *parameters = (one.strip() for one in part.split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            return coding, _quality(value.strip())
    return coding, 1.0


def _quality(value: str) -> float:
    digits = value.replace(".", "", 1)
    if not (digits.isascii() and digits.isdecimal()) or len(value) > 5:
        return 0.0
    quality = float(value)
    return quality if quality <= 1 else 0.0
