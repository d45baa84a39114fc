"""The last lines that a worker wrote before it died, without secrets: what an operator needs to see why."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping

LINES_KEPT = 20
LONGEST_LINE = 500
_LONGEST_HELD = 8192
_SECRET_NAME = re.compile(r"(?i)key|token|secret|passw|credential|authorization")
_SECRET_SHAPE = re.compile(r"(?i)\b(?:sk|pk|ek|hf|xox[a-z])[-_][A-Za-z0-9_-]{8,}|(?<=bearer )\S+")
_SHORTEST_SECRET = 6


def secrets_of(settings: Mapping[str, object]) -> Iterator[str]:
    """Yields the values, at any depth, whose name says that they are secret. Short ones would match by chance."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from secrets_of({str(key): inner for key, inner in value.items()})
        elif isinstance(value, str) and len(value) >= _SHORTEST_SECRET and _SECRET_NAME.search(name):
            yield value


class LastWords:
    """Takes output as it comes and keeps the last `LINES_KEPT` lines of it."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = sorted(set(secrets), key=len, reverse=True)
        self._lines: deque[str] = deque(maxlen=LINES_KEPT)
        self._partial = b""

    def feed(self, output: bytes) -> list[str]:
        """Adds output; returns the lines that it completed, redacted."""
        *whole, self._partial = (self._partial + output).split(b"\n")
        if len(self._partial) > _LONGEST_HELD:
            whole.append(self._partial)
            self._partial = b""
        lines = [self._line(line) for line in whole if line.strip()]
        self._lines.extend(lines)
        return lines

    def text(self) -> str:
        """Returns the last lines, with what was begun and not ended."""
        partial = [self._line(self._partial)] if self._partial.strip() else []
        return "\n".join([*self._lines, *partial][-LINES_KEPT:])

    def redact(self, text: str) -> str:
        """Returns a text without the secrets that are known by value or by shape."""
        for secret in self._secrets:
            text = text.replace(secret, "[secret]")
        return _SECRET_SHAPE.sub("[secret]", text)

    def _line(self, output: bytes) -> str:
        return self.redact(output.decode("utf-8", "replace").rstrip())[:LONGEST_LINE]
