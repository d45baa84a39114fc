"""The page at ``/``: a few files of this package, held in memory and served with strict headers."""

import hashlib
import mimetypes
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

FOLDER = Path(__file__).with_name("web")
INDEX = "index.html"

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "media-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Scripts, styles and connections (``ws:`` and ``wss:`` too) of this server only; sound also from blobs."""

_LEFT_OUT = (INDEX, "package.json")
_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".webmanifest": "application/manifest+json"}
_TEXT = ("text/", "application/json", "application/manifest+json", "image/svg+xml")


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file: its bytes, its type, and the quoted hash of its bytes."""

    body: bytes
    media_type: str
    etag: str


def read_page(folder: Path = FOLDER) -> dict[str, PageFile]:
    """Returns the page by URL path: its index at ``/``, all else under ``/web/``; empty where there is no index."""
    if not (folder / INDEX).is_file():
        return {}
    others = {
        f"/web/{path.relative_to(folder).as_posix()}": _read(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in _LEFT_OUT
    }
    return {"/": _read(folder / INDEX), **others}


def _read(path: Path) -> PageFile:
    body = path.read_bytes()
    guessed = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    media_type = f"{guessed}; charset=utf-8" if guessed.startswith(_TEXT) else guessed
    return PageFile(body, media_type, f'"{hashlib.sha256(body).hexdigest()[:32]}"')


def serve(file: PageFile, request: Request) -> Response:
    """Returns a file, or 304 where the client has exactly this one.

    Names of files do not change with their content, so browsers ask each time (``no-cache``) and mostly hear 304.
    """
    headers = {
        "ETag": file.etag,
        "Cache-Control": "no-cache",
        "Content-Security-Policy": CONTENT_SECURITY_POLICY,
        "Referrer-Policy": "no-referrer",
        "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    asked = request.headers.get("if-none-match", "")
    known = {tag.strip().removeprefix("W/") for tag in asked.split(",")}
    if file.etag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    return Response(file.body, media_type=file.media_type, headers=headers)
