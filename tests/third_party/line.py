"""Reads one direction of a WebSocket from its bytes, while these go to somebody else (a heart)."""

from collections.abc import Generator

from websockets.extensions import Extension
from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.frames import Frame, Opcode
from websockets.streams import StreamReader

_LINE_BYTES = 65_536


class Direction:
    """Bytes in whatever pieces they come, text messages out. What is no WebSocket is not looked at."""

    def __init__(self, *, from_server: bool) -> None:
        self.head: list[str] = []
        """The request or the answer that comes first, line by line."""
        self._from_server = from_server
        self._reader = StreamReader()
        self._extensions: list[Extension] = []
        self._parts: list[bytes] = []
        self._complete: list[str] = []
        self._parsing = self._parse()
        next(self._parsing)

    def feed(self, data: bytes) -> list[str]:
        """Returns the text messages that are complete now. Raises `ProtocolError` on frames that are none."""
        self._reader.feed_data(data)
        next(self._parsing, None)
        complete, self._complete = self._complete, []
        return complete

    def settle(self, answer: list[str]) -> None:
        """Takes the compression that the server's `answer` settled on; before any frame is fed."""
        lines = [line.lower() for line in answer]
        settled = next((line for line in lines if line.startswith("sec-websocket-extensions:")), "")
        if "permessage-deflate" in settled and not self._extensions:
            forgets = f"{'server' if self._from_server else 'client'}_no_context_takeover" in settled
            self._extensions.append(PerMessageDeflate(forgets, False, 15, 15))

    def _parse(self) -> Generator[None, None, None]:
        while line := (yield from self._reader.read_line(_LINE_BYTES)).strip():
            self.head.append(line.decode("latin-1"))
        if not any(line.lower().startswith("upgrade: websocket") for line in self.head):
            return
        if self._from_server:
            self.settle(self.head)
        while True:
            frame = yield from Frame.parse(
                self._reader.read_exact, mask=not self._from_server, extensions=self._extensions
            )
            if frame.opcode in (Opcode.TEXT, Opcode.CONT):
                self._parts.append(bytes(frame.data))
                if frame.fin:
                    self._complete.append(b"".join(self._parts).decode())
                    self._parts.clear()
