"""Reads the files of the consistency data, and says where one is not as its README has it: file, line, field, what was
expected."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class BadData(ValueError):
    """A file of the data cannot be used; the message names the place and what was expected there."""

    def __init__(self, path: Path, line: int, field: str, expected: str, found: object = None) -> None:
        place = f"{path.name}, line {line}" + (f", field {field}" if field else "")
        shown = "" if found is None else f", found {_short(found)}"
        super().__init__(f"{place}: expected {expected}{shown}")


@dataclass(frozen=True, slots=True)
class Field:
    """What a field may hold: values of `kind`, where `among` is not empty one of those; None where it `may_lack`."""

    kind: type | tuple[type, ...]
    expected: str
    among: Collection[str] = ()
    may_lack: bool = False
    may_be_blank: bool = False

    def accepts(self, value: object) -> bool:
        """Whether a value is one of these. A boolean is no number, an empty text no text."""
        if value is None:
            return self.may_lack
        if not isinstance(value, self.kind) or (isinstance(value, bool) and self.kind is not bool):
            return False
        return value in self.among if self.among else self.may_be_blank or value != ""


TEXT = Field(str, "a text")
MAYBE_TEXT = Field(str, "a text or null", may_lack=True, may_be_blank=True)
MAYBE_NUMBER = Field((int, float), "a number or null", may_lack=True)
LIST = Field(list, "a list")
LABEL = Field(str, '"consistent" or "inconsistent"', ("consistent", "inconsistent"))


def rows_of(path: Path, fields: Mapping[str, Field] | None = None) -> list[dict[str, Any]]:
    """Reads a file of JSON lines; blank ones are passed over. Raises OSError where it is missing, `BadData` where a
    line is no JSON object or one of these fields is not what it should be."""
    return [row for _, row in numbered(path, fields)]


def numbered(path: Path, fields: Mapping[str, Field] | None = None) -> list[tuple[int, dict[str, Any]]]:
    """Reads as `rows_of`, each row with the number of its line."""
    found = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        broken = path.read_bytes()[: error.start].count(b"\n") + 1
        raise BadData(path, broken, "", "UTF-8", error.object[error.start : error.end]) from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise BadData(
                path, number, "", f"a JSON object ({error.msg}, column {error.colno})", line
            ) from None
        if not isinstance(row, dict):
            raise BadData(path, number, "", "a JSON object", row)
        check(path, number, row, fields or {})
        found.append((number, row))
    return found


def check(
    path: Path, line: int, row: Mapping[str, object], fields: Mapping[str, Field], within: str = ""
) -> None:
    """Raises `BadData` where a field of a row, or of the part of it that `within` names, is not what it should be."""
    for name, field in fields.items():
        if name not in row and not field.may_lack:
            raise BadData(path, line, within + name, f"{field.expected}, but there is no such field")
        if not field.accepts(row.get(name)):
            raise BadData(path, line, within + name, field.expected, row.get(name))


def parts_of(path: Path, line: int, row: Mapping[str, Any], field: str, fields: Mapping[str, Field]) -> None:
    """Checks every object of a list."""
    for place, one in enumerate(row[field]):
        if not isinstance(one, dict):
            raise BadData(path, line, f"{field}[{place}]", "an object", one)
        check(path, line, one, fields, f"{field}[{place}].")


def _short(found: object) -> str:
    text = (
        found.decode("latin-1")
        if isinstance(found, bytes)
        else json.dumps(found, ensure_ascii=False, default=str)
    )
    return text if len(text) <= 60 else f"{text[:57]}..."
