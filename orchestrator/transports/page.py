"""The page at ``/``: a few files of this package, held in memory and served with strict headers."""

import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from orchestrator.transports.http_coding import chosen, packed_once

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
    """One file: its bytes, its type, the quoted hash of its bytes, and those in each coding that makes them less."""

    body: bytes
    media_type: str
    etag: str
    packed: Mapping[str, bytes] = field(default_factory=dict)


def read_page(folder: Path = FOLDER, packs: bool = True) -> dict[str, PageFile]:
    """Returns the page by URL path: its index at ``/``, all else under ``/web/``; empty where there is no index.
    `packs`: whether its files may be sent compressed."""
    if not (folder / INDEX).is_file():
        return {}
    others = {
        f"/web/{path.relative_to(folder).as_posix()}": _read(path, packs)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in _LEFT_OUT
    }
    return {"/": _read(folder / INDEX, packs), **others}


def _read(path: Path, packs: bool) -> PageFile:
    body = path.read_bytes()
    guessed = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    media_type = f"{guessed}; charset=utf-8" if guessed.startswith(_TEXT) else guessed
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    packed = packed_once(body) if packs and guessed.startswith(_TEXT) else {}
    return PageFile(body, media_type, etag, packed)


def serve(file: PageFile, request: Request) -> Response:
    """Returns a file, or 304 where the client has exactly this one.

    Names of files do not change with their content, so browsers ask each time (``no-cache``) and mostly hear 304.
    """
    coding = chosen(request.headers.get("accept-encoding", ""), tuple(file.packed))
    headers = {
        "ETag": file.etag if coding is None else f"W/{file.etag}",  # the same file, not the same bytes
        "Vary": "Accept-Encoding",
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
    if coding is None:
        return Response(file.body, media_type=file.media_type, headers=headers)
    headers["Content-Encoding"] = coding
    return Response(file.packed[coding], media_type=file.media_type, headers=headers)
