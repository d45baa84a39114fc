"""The page is served from memory with strict headers."""

import asyncio
from pathlib import Path

import httpx
import pytest

from orchestrator.transports.page import read_page
from tests.transports.running import build


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A page of three files."""
    (tmp_path / "index.html").write_text("<!doctype html>Ünï")
    (tmp_path / "app.js").write_text("let a = 1;")
    (tmp_path / "icons").mkdir()
    (tmp_path / "icons" / "a.svg").write_text("<svg/>")
    (tmp_path / "package.json").write_text("{}")
    return tmp_path


def get(folder: Path, path: str, **headers: str) -> httpx.Response:
    async def main() -> httpx.Response:
        async with build(page=folder).client() as client:
            return await client.get(path, headers=headers)

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("path", "media_type"),
    [("/", "text/html"), ("/web/app.js", "text/javascript"), ("/web/icons/a.svg", "image/svg+xml")],
)
def test_page_serves_each_file_with_its_type(folder: Path, path: str, media_type: str) -> None:
    """The index is at the root, everything else under /web/, as UTF-8 and never sniffed."""
    answer = get(folder, path)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == f"{media_type}; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_page_is_asked_for_each_time_and_mostly_not_sent(folder: Path) -> None:
    """Browsers ask again with the tag they have: 304 as long as the bytes are the same, 200 after a change."""
    first = get(folder, "/web/app.js")
    assert first.headers["Cache-Control"] == "no-cache"
    again = get(folder, "/web/app.js", **{"If-None-Match": f'"other", W/{first.headers["ETag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]
    (folder / "app.js").write_text("let a = 2;")
    changed = get(folder, "/web/app.js", **{"If-None-Match": first.headers["ETag"]})
    assert (changed.status_code, changed.text) == (200, "let a = 2;")


def test_page_is_sent_packed_to_who_takes_that(folder: Path) -> None:
    """The same file by the same tag, weak where the bytes are others; asked for again with that it is not sent."""
    text = "let a = 1;\n" * 500
    (folder / "app.js").write_text(text)
    plain = get(folder, "/web/app.js", **{"Accept-Encoding": "identity"})
    assert (plain.text, "Content-Encoding" in plain.headers) == (text, False)
    for accepted in ("br", "zstd", "gzip"):
        packed = get(folder, "/web/app.js", **{"Accept-Encoding": accepted})
        assert packed.headers["Content-Encoding"] == accepted
        assert int(packed.headers["Content-Length"]) < 200
        assert packed.text == text
        assert packed.headers["ETag"] == f"W/{plain.headers['ETag']}"
        assert packed.headers["Vary"] == plain.headers["Vary"] == "Accept-Encoding"
        again = get(folder, "/web/app.js", **{"If-None-Match": packed.headers["ETag"]})
        assert again.status_code == 304
    assert read_page(folder, packs=False)["/web/app.js"].packed == {}


def test_page_may_run_only_what_this_server_delivers(folder: Path) -> None:
    """No foreign script, no inline script, no framing; the microphone is for this page alone."""
    headers = get(folder, "/").headers
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "blob:" in policy["media-src"]
    assert "microphone=(self)" in headers["Permissions-Policy"]


@pytest.mark.parametrize(
    "path", ["/web/package.json", "/web/index.html", "/web/", "/web/..%2f..%2fpage.py", "/app.js"]
)
def test_page_serves_nothing_but_its_files(folder: Path, path: str) -> None:
    """What is no file of the page is a 404 in the API's shape; there is no way out of the folder."""
    answer = get(folder, path)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


def test_page_that_is_not_there_leaves_the_server_without_one(tmp_path: Path) -> None:
    """A folder without an index serves nothing."""
    assert read_page(tmp_path) == {}


def test_page_of_the_package_has_an_index() -> None:
    """What ships is served."""
    files = read_page()
    assert files["/"].media_type == "text/html; charset=utf-8"
    assert b"web/app.js" in files["/"].body
    assert "/web/app.js" in files
