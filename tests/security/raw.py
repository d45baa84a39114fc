"""A client that sends bytes as they are."""

import asyncio
import contextlib
import json
import re
from dataclasses import dataclass
from typing import Any

_STATUS_LINE = re.compile(rb"(?:^|\r\n|\n|(?<=[}\w]))HTTP/1\.1 (\d{3}) [^\r\n]*\r\n")


@dataclass(frozen=True, slots=True)
class Said:
    """What a server said before it closed the connection."""

    everything: bytes

    @property
    def statuses(self) -> list[int]:
        """Of every answer in it."""
        return [int(one) for one in _STATUS_LINE.findall(self.everything)]

    @property
    def head(self) -> bytes:
        return self.everything.partition(b"\r\n\r\n")[0].lower()

    @property
    def error(self) -> dict[str, Any]:
        """The error of the only answer."""
        found: dict[str, Any] = json.loads(self.everything.partition(b"\r\n\r\n")[2])["error"]
        return found


async def said(port: int, request: bytes, bye: bytes = b"") -> Said:
    """Sends a request, and `bye` once there is an answer; reads until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    everything = b""
    with contextlib.suppress(ConnectionError):
        writer.write(request)
        while piece := await reader.read(65_536):
            everything += piece
            writer.write(bye)
            bye = b""
    writer.close()
    return Said(everything)


async def trickled(port: int, at_once: bytes, piece: bytes, every_s: float = 0.01) -> bytes:
    """Sends `at_once`, then `piece` again and again, until the server has enough of it; returns what it said."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def trickle() -> None:
        with contextlib.suppress(ConnectionError):
            writer.write(at_once)
            while True:
                await writer.drain()
                await asyncio.sleep(every_s)
                writer.write(piece)

    trickling = asyncio.create_task(trickle())
    everything = b""
    with contextlib.suppress(ConnectionError):
        while more := await reader.read(65_536):
            everything += more
    trickling.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await trickling
    writer.close()
    return everything
