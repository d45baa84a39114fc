"""Draws the state machines in docs/ from their tables: `make diagrams`.

A page asks for a diagram with a pair of comments, between which the drawing is put:

    <!-- diagram of orchestrator.sessions.states.EAR -->
    <!-- end of diagram -->
"""

import re
import sys
from collections.abc import Mapping
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import TypeVar

DOCS = Path(__file__).parent.parent / "docs"

S = TypeVar("S", bound=Enum)
E = TypeVar("E", bound=Enum)

_PLACE = re.compile(
    r"(<!-- diagram of (?P<table>[\w.]+) -->\n)(?P<drawing>.*?)(<!-- end of diagram -->)", re.DOTALL
)


def draw(table: Mapping[tuple[S, E], S]) -> str:
    """Returns a table (state, event) → state as a Mermaid diagram; the enum's first member is where it starts."""
    states = type(next(iter(table.values())))
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {_name(next(iter(states)))}"]
    lines += [f"    {_name(old)} --> {_name(new)}: {event.value}" for (old, event), new in table.items()]
    ends = [state for state in states if all(new is state for (old, _), new in table.items() if old is state)]
    lines += [f"    {_name(state)} --> [*]" for state in ends]
    return "\n".join([*lines, "```", ""])


def redraw(page: str) -> str:
    """Returns the page with every diagram drawn anew."""

    def drawn(place: re.Match[str]) -> str:
        module, _, name = place["table"].rpartition(".")
        return place[1] + draw(getattr(import_module(module), name)) + place[4]

    return _PLACE.sub(drawn, page)


def pages_with_diagrams() -> list[Path]:
    """Returns the pages of docs/ that ask for a diagram."""
    return sorted(path for path in DOCS.rglob("*.md") if _PLACE.search(path.read_text()))


def _name(state: Enum) -> str:
    return re.sub(r"\W+", "_", str(state.value))


def main() -> int:
    for path in pages_with_diagrams():
        page = path.read_text()
        if (new := redraw(page)) != page:
            path.write_text(new)
            print(f"drew {path.relative_to(DOCS.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
