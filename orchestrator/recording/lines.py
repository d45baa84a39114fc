"""The lines of a journal: one JSON object each, numbered, with a checksum as its last member. Pure.

A line that was being written when the power went is torn: it has no end, or its checksum is another. Such a line is
left out where it is the last one; anywhere else the file is damaged.
"""

from collections.abc import Iterator
from zlib import crc32

import msgspec
from msgspec import Struct

from orchestrator.errors import ChoraleError

_CRC = b',"crc":"'
_TAIL = len(_CRC) + 8 + len(b'"}')


class JournalDamaged(ChoraleError):
    """A journal cannot be read beyond some line; the text says which, and why."""

    code = "journal_damaged"


class Numbered(Struct):
    """What every line has."""

    n: int


_number = msgspec.json.Decoder(Numbered)


def seal(content: bytes) -> bytes:
    """Returns a line, with its end, of a JSON object that has at least one member and no line break in it."""
    body = content[:-1]
    return b'%b%b%08x"}\n' % (body, _CRC, crc32(body))


def unseal(line: bytes) -> bytes | None:
    """Returns the JSON object of a line without its end; None where it is not as it was written."""
    if len(line) <= _TAIL or line[-_TAIL : -_TAIL + len(_CRC)] != _CRC or line[-2:] != b'"}':
        return None
    body = line[:-_TAIL]
    return body + b"}" if line[-10:-2] == b"%08x" % crc32(body) else None


def contents(data: bytes) -> Iterator[bytes]:
    """Yields the objects of a journal's bytes in order, without a torn last line. Raises `JournalDamaged`."""
    lines = data.split(b"\n")
    unended = lines.pop()  # nothing, or a line without its end
    for number, line in enumerate(lines):
        content = unseal(line)
        if content is None:
            if number == len(lines) - 1 and not unended:
                return
            raise JournalDamaged(f"line {number + 1} is damaged")
        found = _number.decode(content).n
        if found != number:
            raise JournalDamaged(f"line {number + 1} has the number {found}: lines are missing before it")
        yield content


def is_torn(data: bytes) -> bool:
    """Tells whether the last line is not whole."""
    if not data.endswith(b"\n"):
        return bool(data)
    return unseal(data[data[:-1].rfind(b"\n") + 1 : -1]) is None
