"""The rows of a study, one line of JSON each, written as soon as each is there: a run that is cut off goes on."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.outcome import Row


class Journal:
    """A file of rows, each found again by what it is a row of (`key`)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: dict[str, Row] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                entry = _entry(line)
                if entry is not None:
                    self._rows[_text(entry["key"])] = entry["row"]

    @property
    def path(self) -> Path:
        return self._path

    def find(self, key: Mapping[str, Any]) -> Row | None:
        """Returns the row that was written under an equal key, by whichever run."""
        return self._rows.get(_text(key))

    def add(self, key: Mapping[str, Any], row: Row) -> None:
        """Writes a row."""
        self._rows[_text(key)] = row
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            file.write(json.dumps({"key": dict(key), "row": dict(row)}) + "\n")


def _entry(line: str) -> dict[str, Any] | None:
    """Returns what a line holds; None for the half of one, with which a run was cut off."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and {"key", "row"} <= entry.keys() else None


def _text(key: Mapping[str, Any]) -> str:
    return json.dumps(dict(key), sort_keys=True)
