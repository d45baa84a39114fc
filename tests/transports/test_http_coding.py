"""What is packed, for whom, and what is never: streams, secrets, and bodies of requests."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator

import brotli
import httpx
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from orchestrator.transports.http_coding import (
    ANSWERS,
    FILES,
    SHORTEST_BYTES,
    Coding,
    chosen,
    packed_once,
)
from tests.transports.running import build

LONG = {"text": "words " * 1_000}
UNPACKED = {
    "br": brotli.decompress,
    "gzip": gzip.decompress,
    "zstd": lambda data: zstandard.ZstdDecompressor().decompress(data, max_output_size=2**24),
}


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("", None),
        ("gzip, deflate, br, zstd", "br"),
        ("gzip, zstd", "zstd"),
        ("GZIP", "gzip"),
        ("br;q=0.5, gzip;q=0.9", "gzip"),
        ("br;q=0, *", "zstd"),
        ("*;q=0", None),
        ("*", "br"),
        ("identity", None),
        ("br;q=0", None),
        ("br;q=x, gzip ; q=0.1", "gzip"),
        ("br;q=1.5, gzip", "gzip"),
        ("br;q=²", None),
        ("deflate, compress", None),
        ("x" * 5_000 + ", br", None),
    ],
)
def test_coding_is_chosen_by_what_the_client_likes(accepted: str, coding: str | None) -> None:
    """Its weights first, then ours; what is no weight counts as none."""
    assert chosen(accepted, FILES) == coding


@given(st.text(), st.permutations(FILES))
def test_choice_never_fails_and_names_what_is_there(accepted: str, offered: list[str]) -> None:
    """Whatever a client writes into the header."""
    assert chosen(accepted, offered) in (None, *offered)
    assert chosen(accepted, ()) is None


@given(st.binary(max_size=5_000))
def test_file_is_packed_only_where_that_is_shorter(data: bytes) -> None:
    """And unpacks to the same bytes."""
    for coding, short in packed_once(data).items():
        assert len(short) < len(data)
        assert UNPACKED[coding](short) == data


def app_of(answer: Response) -> Starlette:
    async def serve(_: Request) -> Response:
        return answer

    return Starlette(routes=[Route("/{path:path}", serve, methods=["GET", "POST"])])


def asked(answer: Response, path: str = "/v1/models", packs: bool = True, **headers: str) -> httpx.Response:
    async def main() -> httpx.Response:
        transport = httpx.ASGITransport(app=Coding(app_of(answer), packs))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            method = "POST" if "content_encoding" in headers else "GET"
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            return await client.request(method, path, headers=sent)

    return asyncio.run(main())


@pytest.mark.parametrize("coding", ANSWERS)
@pytest.mark.parametrize("times", [1, 50])
def test_long_json_is_packed(coding: str, times: int) -> None:
    """With its length, and said to vary; the large one is packed beside the event loop."""
    body = {"text": LONG["text"] * times}
    answer = asked(JSONResponse(body), accept_encoding=coding)
    assert answer.headers["content-encoding"] == coding
    assert int(answer.headers["content-length"]) < 500
    assert answer.headers["vary"] == "Accept-Encoding"
    assert answer.json() == body


def test_client_that_takes_no_coding_is_told_that_there_are_some() -> None:
    """So that no cache gives its answer to others, or theirs to it."""
    answer = asked(JSONResponse(LONG), accept_encoding="identity")
    assert "content-encoding" not in answer.headers
    assert answer.headers["vary"] == "Accept-Encoding"
    assert answer.json() == LONG


async def _pieces() -> AsyncIterator[bytes]:
    for _ in range(4):
        yield json.dumps(LONG).encode()


@pytest.mark.parametrize(
    "answer",
    [
        JSONResponse({"text": "short"}),
        StreamingResponse(_pieces(), media_type="text/event-stream"),
        StreamingResponse(_pieces(), media_type="application/json"),
        Response(b"x" * 5_000, media_type="audio/pcm"),
        Response(b"x" * 5_000, media_type="text/plain"),
        JSONResponse(LONG, headers={"cache-control": "no-store, no-transform"}),
        Response(b"x" * 5_000, media_type="application/json", headers={"content-encoding": "own"}),
    ],
    ids=["short", "events", "stream", "sound", "text", "as it is", "packed already"],
)
def test_what_gains_nothing_or_must_not_wait_goes_as_it_is(answer: Response) -> None:
    """Short answers, streams, sound, and what says so itself."""
    got = asked(answer, accept_encoding="zstd")
    assert got.headers.get("content-encoding") in (None, "own")
    assert "vary" not in got.headers


@pytest.mark.parametrize(
    "path", ["/v1/sessions", "/v1/sessions/a", "/v1/realtime/client_secrets", "/chorale.v1.Sessions/Create"]
)
def test_answers_with_secrets_are_never_packed(path: str) -> None:
    """Their length would tell of the secret, where what the client said stands beside it."""
    assert "content-encoding" not in asked(JSONResponse(LONG), path, accept_encoding="zstd").headers


def test_packing_can_be_turned_off() -> None:
    """`server.compression: false`."""
    assert "content-encoding" not in asked(JSONResponse(LONG), packs=False, accept_encoding="zstd").headers


@pytest.mark.parametrize("coding", ["gzip", "zstd", "br", "deflate", "gzip, gzip"])
def test_packed_request_is_refused_unread(coding: str) -> None:
    """415 with what is taken; a kilobyte of it might be a gigabyte."""
    answer = asked(JSONResponse(LONG), content_encoding=coding)
    assert (answer.status_code, answer.headers["accept-encoding"]) == (415, "identity")
    assert answer.json()["error"]["code"] == "unsupported_media_type"
    assert asked(JSONResponse(LONG), content_encoding="identity").status_code == 200


def test_whole_application_packs_inside_its_border() -> None:
    """The description of the API, with the border's headers; a body that is packed is refused to pages, too."""

    async def main() -> None:
        async with build().client() as client:
            packed = await client.get("/openapi.json", headers={"accept-encoding": "br"})
            assert packed.headers["content-encoding"] == "br"
            assert set(packed.headers["vary"].split(", ")) == {"Accept-Encoding", "Origin"}
            assert packed.headers["x-content-type-options"] == "nosniff"
            assert len(packed.content) > SHORTEST_BYTES
            refused = await client.post(
                "/v1/sessions",
                content=gzip.compress(b"{}"),
                headers={"content-encoding": "gzip", "origin": "http://localhost:8080"},
            )
            assert refused.status_code == 415
            assert refused.headers["access-control-allow-origin"] == "http://localhost:8080"

    asyncio.run(main())
