"""What the pages say exists: verbs, commands, files, links."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "samples").rglob("*.md")])
VERBS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_TOP = (
    "orchestrator/",
    "modalities/",
    "consistency/",
    "tests/",
    "configs/",
    "docs/",
    "benchmarks/",
    "samples/",
    ".ci/",
)


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


every_page = pytest.mark.parametrize("page", PAGES, ids=page_id)


@every_page
def test_a_page_names_only_verbs_that_make_has(page: Path) -> None:
    """Every `make VERB` that a reader may type is in the Makefile."""
    named = set(re.findall(r"(?:^ {4}|`|^|&& )make ([a-z][a-z-]*)", page.read_text(), re.MULTILINE))
    assert named <= VERBS


@every_page
def test_a_page_links_to_what_is_there(page: Path) -> None:
    """Relative links lead to files of this repository."""
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text())
    broken = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not broken


@every_page
def test_a_page_names_only_files_that_are_there(page: Path) -> None:
    """Paths in code font exist; braces and stars stand for several."""
    named = [word for word in re.findall(r"`([\w./*-]+)`", page.read_text()) if word.startswith(_TOP)]
    assert not [name for name in named if not any(ROOT.glob(name.rstrip("/")))]


@every_page
def test_python_on_a_page_parses(page: Path) -> None:
    """Examples in Python are Python."""
    for language, code in _FENCE.findall(page.read_text()):
        if language == "python":
            ast.parse(code, filename=page.name)


def test_ci_runs_what_people_run() -> None:
    """`.ci/run` ends in a verb of the Makefile, and nothing is checked beside it."""
    last = (ROOT / ".ci" / "run").read_text().rstrip().splitlines()[-1].split()
    assert last[:2] == ["exec", "make"]
    assert last[2] in VERBS


def test_the_readme_begins_with_two_commands() -> None:
    """A newcomer finds `make run` and `make test`."""
    assert {"run", "test"} <= set(re.findall(r"make ([a-z-]+)", (ROOT / "README.md").read_text()))


def test_every_decision_is_listed_once() -> None:
    """A page in docs/decisions that the index does not name is not found by anybody; one row each is enough."""
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(r"^\| \[[\w-]+\]\(([\w-]+\.md)\)", (folder / "README.md").read_text(), re.MULTILINE)
    written = {page.name for page in folder.glob("*.md")} - {"README.md", "template.md"}
    assert sorted(listed) == sorted(written)
