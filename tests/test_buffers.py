"""docs/buffers.md says of every buffer how much it holds; here it is held to that."""

import ast
import re
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path

import pytest

from orchestrator.settings.schema import Settings
from tests.test_house import PACKAGES, sources

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "buffers.md").read_text()
ROWS = re.findall(r"^\| ([^|]+) \| `([\w/.]+\.py)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)
FIGURES = [
    (file, name, int(value.replace(",", "")))
    for _, file, bound, _, _ in ROWS
    for name, value in re.findall(r"`([\w.]+)` = ([\d,]+)", bound)
]


def figure(file: str, name: str) -> object:
    """Returns a number of the code: a setting's default, a module's constant, or a dataclass's default."""
    first, *rest = name.split(".")
    settings = Settings()
    if rest and first in type(settings).model_fields:
        return getattr(getattr(settings, first), rest[0])
    found: object = getattr(import_module(file.removesuffix(".py").replace("/", ".")), first)
    if rest:
        assert isinstance(found, type)
        assert is_dataclass(found)
        return next(field.default for field in fields(found) if field.name == rest[0])
    return found


@pytest.mark.parametrize(("file", "name", "value"), FIGURES, ids=lambda part: str(part).rpartition("/")[2])
def test_a_bound_in_the_table_is_the_codes(file: str, name: str, value: int) -> None:
    """The number that readers see is the one that holds."""
    assert figure(file, name) == value


def test_every_file_that_makes_a_queue_is_in_the_table() -> None:
    """Nobody adds a queue without saying what full means."""
    listed = {file for _, file, _, _, _ in ROWS}
    making = {path for path in sources(*PACKAGES) if _makes_a_queue((ROOT / path).read_text())}
    assert making - listed == set()
    assert len(ROWS) > 20, "the table cannot be read any more"


def _makes_a_queue(code: str) -> bool:
    names = {"deque", "Queue", "SimpleQueue", "LifoQueue", "PriorityQueue", "Ring", "SortedKeyList"}
    calls = (node.func for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call))
    return any((getattr(func, "id", None) or getattr(func, "attr", "")) in names for func in calls)
