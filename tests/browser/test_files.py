"""The page as files: nothing foreign, nothing inline, nothing that turns text into markup."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.browser.places import WEB

SCRIPTS = sorted(WEB.glob("*.js"))
STYLES = sorted(WEB.glob("*.css"))

AS_MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\(\"on"
)


class References(HTMLParser):
    """Collects what a page loads, and what it carries inline."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.inline: list[str] = []
        self.ids: list[str] = []
        self._within: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.loaded += [given[name] for name in ("src", "href") if name in given]
        self.inline += [f"{tag} {name}" for name in given if name == "style" or name.startswith("on")]
        self.ids += [given["id"]] if "id" in given else []
        self._within = tag

    def handle_data(self, data: str) -> None:
        if self._within in ("script", "style") and data.strip():
            self.inline.append(data.strip())

    def handle_endtag(self, tag: str) -> None:
        self._within = None


@pytest.fixture
def references() -> References:
    found = References()
    found.feed((WEB / "index.html").read_text())
    return found


def test_page_loads_only_files_of_its_own(references: References) -> None:
    """Every script, style and picture is a file beside the page, named relative to it."""
    files = {reference.split("#")[0] for reference in references.loaded if not reference.startswith("#")}
    assert files
    assert all(name.startswith("web/") and (WEB / name.removeprefix("web/")).is_file() for name in files), (
        files
    )


def test_page_carries_no_script_and_no_style(references: References) -> None:
    """A policy without 'unsafe-inline' blocks nothing of the page."""
    assert references.inline == []


def test_page_uses_each_id_once(references: References) -> None:
    """An id names one element: labels and modules find the right one."""
    assert len(references.ids) == len(set(references.ids))


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.name)
def test_script_never_turns_text_into_markup(file: Path) -> None:
    """Words of users and servers reach the document as text only."""
    assert AS_MARKUP.search(file.read_text()) is None


@pytest.mark.parametrize("file", [*SCRIPTS, *STYLES, *WEB.glob("*.svg")], ids=lambda file: file.name)
def test_file_names_no_other_server(file: Path) -> None:
    """No file asks another origin for anything (the name of the SVG namespace is no request)."""
    text = file.read_text().replace("http://www.w3.org/2000/svg", "")
    assert re.search(r"(?:https?|wss?):?//\w", text) is None
    assert "@import" not in text


def test_scripts_import_only_each_other() -> None:
    """There is no build step: every import names a file that is there."""
    imported = {name for file in SCRIPTS for name in re.findall(r'from "([^"]+)"', file.read_text())}
    assert imported
    assert all(name.startswith("./") and (WEB / name).is_file() for name in imported), imported


def test_icons_that_are_used_are_drawn() -> None:
    """Every icon that the page refers to is in the sheet."""
    drawn = set(re.findall(r'<symbol id="([^"]+)"', (WEB / "icons.svg").read_text()))
    page = (WEB / "index.html").read_text()
    used = set(re.findall(r"icons\.svg#([\w-]+)", page)) | {
        "microphone-off",
        "hang-up",
        "close",
        "warning",
        "keyboard",
    }
    assert used <= drawn


@pytest.mark.parametrize("file", [*SCRIPTS, *STYLES, WEB / "index.html"], ids=lambda file: file.name)
def test_file_holds_one_noun(file: Path) -> None:
    """No file of the page grows beyond what one reads in one sitting."""
    assert len(file.read_text().splitlines()) <= 400
