"""Metadata as no client of gRPC would send it."""

import asyncio
import logging
from collections.abc import Iterable

import pytest

from orchestrator.transports.rpc.interceptors import MOST_PAIRS
from tests.transports.rpc.calling import Running, against
from tests.transports.running import until

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
HEADERS, END_OF_HEADERS = 1, 4
NOTHING = bytes((0, 0, 5, 0, 1, 0, 0, 0, 1)) + bytes(5)
"""A message of no bytes, and the end of the stream."""


def pairs(fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Returns metadata as HTTP/2 writes it, each pair in full (RFC 7541 §6.2.3)."""
    return b"".join(b"\x10" + _text(name) + _text(value) for name, value in fields)


def _text(text: bytes) -> bytes:
    assert len(text) < 127
    return bytes((len(text),)) + text


def called(*metadata: tuple[bytes, bytes]) -> bytes:
    """Returns all that a client says who calls a method with this metadata."""
    said = pairs(
        [
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", b"/chorale.v1.Sessions/Get"),
            (b":authority", b"localhost"),
            (b"content-type", b"application/grpc"),
            (b"te", b"trailers"),
            *metadata,
        ]
    )
    return (
        PREFACE
        + len(said).to_bytes(3, "big")
        + bytes((HEADERS, END_OF_HEADERS))
        + bytes((0, 0, 0, 1))
        + said
        + NOTHING
    )


async def answered(running: Running, said: bytes, until: bytes) -> None:
    """Says it, and waits for this in the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    writer.write(said)
    heard = b""
    try:
        async with asyncio.timeout(20):
            while until not in heard:
                piece = await reader.read(65_536)
                assert piece, heard
                heard += piece
    except TimeoutError:
        pytest.fail(f"only {heard!r}")
    finally:
        writer.close()


def test_metadata_that_is_no_text_stands_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    """It may be a key with a slip in it; and many of them would hold everybody up, one line of log for each."""
    caplog.set_level(logging.INFO)

    async def test(running: Running) -> None:
        slips = [(b"authorization", b"Bearer sk-secret\xff"), *[(b"x", b"\xff")] * 100]
        await answered(running, called(*slips), b"chorale-code")
        assert not [one for one in caplog.records if one.levelno > logging.INFO]
        assert "sk-secret" not in caplog.text

    against(test)


def test_metadata_of_too_many_pairs_is_refused() -> None:
    """In few bytes there may be many, from who has no key: they are counted, and nothing is made of them."""

    async def test(running: Running) -> None:
        few, many = ([(b"x", b"y")] * (MOST_PAIRS + more) for more in (-40, 1))
        await answered(running, called(*few), b"chorale-code")
        await answered(running, called(*many), b"At most 128 pairs")
        records = running.house.requests.records
        await until(lambda: [one.status for one in records] == [404, 429])

    against(test)
