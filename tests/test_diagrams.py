from enum import Enum

from tests.diagrams import draw, pages_with_diagrams, redraw


class Door(Enum):
    SHUT = "shut"
    WIDE_OPEN = "wide open"
    GONE = "gone"


class Act(Enum):
    PUSH = "push"
    LIFT = "lift out"


DOOR = {
    (Door.SHUT, Act.PUSH): Door.WIDE_OPEN,
    (Door.WIDE_OPEN, Act.PUSH): Door.WIDE_OPEN,
    (Door.WIDE_OPEN, Act.LIFT): Door.GONE,
}


def test_a_diagram_shows_every_row_and_both_ends() -> None:
    """Each row of the table is an arrow; the first state begins, a state that nothing leaves ends."""
    assert draw(DOOR) == (
        "```mermaid\nstateDiagram-v2\n"
        "    [*] --> shut\n"
        "    shut --> wide_open: push\n"
        "    wide_open --> wide_open: push\n"
        "    wide_open --> gone: lift out\n"
        "    gone --> [*]\n"
        "```\n"
    )


def test_drawing_replaces_only_what_is_between_the_marks() -> None:
    """Text around a diagram stays, an old drawing goes, and drawing twice changes nothing."""
    page = "before\n<!-- diagram of tests.test_diagrams.DOOR -->\nold\n<!-- end of diagram -->\nafter\n"
    once = redraw(page)
    assert once == (
        f"before\n<!-- diagram of tests.test_diagrams.DOOR -->\n{draw(DOOR)}<!-- end of diagram -->\nafter\n"
    )
    assert redraw(once) == once


def test_the_diagrams_in_the_docs_are_those_of_the_tables() -> None:
    """What docs/ shows of a state machine is what its table says; `make diagrams` mends it."""
    pages = pages_with_diagrams()
    assert "sessions.md" in {path.name for path in pages}
    assert [path.name for path in pages if redraw(path.read_text()) != path.read_text()] == []
