"""What the server writes about its own run: standard logging, as JSON lines or for human eyes.

Each line carries who it is about (`bind`: session, tenant, link). No secret leaves: whatever looks like one is blotted
out in the finished text, also in what libraries write. What people said or wrote is shown at DEBUG only: `extra` fields
with such names are left out above it. A reader that is slower than the log costs lines, which are counted, never time.
"""

import contextlib
import json
import logging
import logging.handlers
import queue
import re
import sys
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Literal, TextIO

Format = Literal["auto", "json", "human"]

MAX_WAITING_LINES = 4_096

_NOTHING: Mapping[str, str] = MappingProxyType({})
_bound: ContextVar[Mapping[str, str]] = ContextVar("bound", default=_NOTHING)

_PRIVATE = frozenset(
    {"text", "transcript", "instructions", "delta", "content", "audio", "prompt", "arguments"}
)
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {
    "message",
    "asctime",
    "taskName",
    "color_message",
}

_SECRETS = re.compile(
    r"(?P<before>(?:(?:[?&]|%3F|%26)(?:secret|session_secret|key|api_key|token|access_token)(?:=|%3D))"
    r"|(?:\bBearer\s+)|(?:openai-insecure-api-key\.)|(?:chorale-session-secret\.))[^\s&\"',]+"
    r"|(?:\b|(?<=%[0-9A-F]{2}))(?:ek|sk|rs)[_-][A-Za-z0-9_-]{8,}",
    re.IGNORECASE,
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
BLOT = "[secret]"


def redact(text: str) -> str:
    """Returns `text` with everything that looks like a key, a client secret or a session's secret blotted out."""
    return _SECRETS.sub(lambda found: (found["before"] or "") + BLOT, text)


@contextlib.contextmanager
def bind(**fields: str) -> Iterator[None]:
    """Adds fields to every line that is logged inside, also by tasks started there."""
    token = _bound.set({**_bound.get(), **fields})
    try:
        yield
    finally:
        _bound.reset(token)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """Returns what a line says beside its message: what is bound, then what was given as `extra`."""
    own = {
        name: value
        for name, value in record.__dict__.items()
        if name not in _STANDARD and (name not in _PRIVATE or record.levelno <= logging.DEBUG)
    }
    return {**_bound.get(), **own}


class JsonLines(logging.Formatter):
    """One JSON object per line: time (UTC), level, logger, message, fields, and the traceback as ``error``."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return redact(json.dumps(line, ensure_ascii=False, default=str))


class HumanLines(logging.Formatter):
    """For a terminal: time of day, level, where, message, fields; a traceback follows on lines of its own. What would
    move a terminal's cursor is shown, not done."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created).strftime("%H:%M:%S.%f")[:-3]
        fields = " ".join(f"{name}={value}" for name, value in _fields(record).items() if value is not None)
        line = f"{time} {record.levelname.lower():<7} {record.name.rsplit('.', 1)[-1]}: {record.getMessage()}"
        if fields:
            line += f"  [{fields}]"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", redact(line))


class _Hand(logging.handlers.QueueHandler):
    """Formats a line where it is logged (what is bound is known there) and leaves writing to a thread."""

    def __init__(self, lines: "queue.Queue[logging.LogRecord]") -> None:
        super().__init__(lines)
        self._lines = lines
        self.dropped = 0

    @property
    def waiting(self) -> int:
        return self._lines.qsize()

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            self.dropped += 1


class Logs:
    """The log of this process, from `configure` to `close`."""

    def __init__(self, stream: TextIO, formatter: logging.Formatter) -> None:
        lines: queue.Queue[logging.LogRecord] = queue.Queue(MAX_WAITING_LINES)
        self._hand = _Hand(lines)
        self._hand.setFormatter(formatter)
        self._listener = logging.handlers.QueueListener(lines, logging.StreamHandler(stream))

    @property
    def dropped(self) -> int:
        """How many lines were lost since the stream was too slow."""
        return self._hand.dropped

    def open(self) -> None:
        """Takes over the root logger."""
        root = logging.getLogger()
        for handler in root.handlers[:]:
            root.removeHandler(handler)
        root.addHandler(self._hand)
        self._listener.start()

    def close(self) -> None:
        """Writes what is waiting and lets the root logger go."""
        logging.getLogger().removeHandler(self._hand)
        self._listener.stop()


def waiting() -> tuple[int, int]:
    """Returns how many lines wait to be written and how many were dropped; 0 where `configure` was not called."""
    hands = [one for one in logging.getLogger().handlers if isinstance(one, _Hand)]
    return sum(hand.waiting for hand in hands), sum(hand.dropped for hand in hands)


_CHATTY = (
    "uvicorn.error",
    "aioice",
    "aiortc",
    "asyncio",
    "httpx",
    "httpcore",
    "websockets",
    "python_multipart",
)
"""Libraries that log a line per connection or packet, some of them with whole URLs."""


def configure(level: str = "info", line_format: Format = "auto", stream: TextIO | None = None) -> Logs:
    """Sends the log of this process to `stream` (standard error) and returns it; `close` it at the end."""
    out = stream or sys.stderr
    human = line_format == "human" or (line_format == "auto" and out.isatty())
    logs = Logs(out, HumanLines() if human else JsonLines())
    logs.open()
    logging.getLogger().setLevel(level.upper())
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    return logs
