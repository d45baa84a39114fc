"""Little that unpacks to much: at every door it is refused before it is unpacked, or no further than it may be."""

import gzip
import io
import re
import tracemalloc
import wave
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import brotli
import httpx
import numpy as np
import pytest
import zstandard
from websockets.asyncio.client import connect

from orchestrator.transports import bounded_requests
from orchestrator.transports.openai_door import HttpLimits
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from tests.security.raw import Said, trickled
from tests.transports.asking import Asked, asking
from tests.transports.running import Running, against, closed, heard, until
from tests.transports.test_media import encoded

HUGE = 64 * 2**20
ROOM = 24 * 2**20
"""More than any of these requests may cost, and less than any of them would unpack to."""

PACKED = {
    "gzip": gzip.compress(b" " * HUGE, 1),
    "deflate": zlib.compress(b" " * HUGE, 1),
    "br": brotli.compress(b" " * HUGE, quality=1),
    "zstd": zstandard.compress(b" " * HUGE, 1),
    "gzip, gzip": gzip.compress(gzip.compress(b" " * HUGE, 1), 1),
}
ROUTES = (
    "/v1/sessions",
    "/v1/sessions/sess_1/events",
    "/v1/realtime/calls",
    "/v1/realtime/client_secrets",
    "/v1/chat/completions",
    "/v1/embeddings",
    "/v1/audio/speech",
    "/v1/audio/transcriptions",
)


@contextmanager
def bounded() -> Iterator[None]:
    """What is done inside needs no more memory than `ROOM`."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < ROOM
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("coding", PACKED)
def test_packed_body_is_refused_before_it_is_unpacked(coding: str) -> None:
    """415 at every route that takes a body, at no cost, and nothing is opened or begun."""

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            with bounded():
                for path in ROUTES:
                    answer = await client.post(
                        path,
                        content=PACKED[coding],
                        headers={"content-encoding": coding, "content-type": "application/json"},
                    )
                    assert answer.status_code == 415, (path, answer.text)
                    assert answer.json()["error"]["code"] == "unsupported_media_type"
            assert (await client.post("/v1/sessions", json={})).status_code == 201
        assert len(asked.running.house.directory.sessions) == 1
        assert asked.workers.jobs == []

    asking(test)


REFUSED = ("3", "12", "13", "invalid_argument", "unimplemented", "internal")


def test_packed_message_of_connect_is_refused_before_it_is_unpacked() -> None:
    """As the whole body, and as one flagged message of a stream, in Connect and in gRPC-Web."""
    plain = pb.CreateRequest(model="m" * (8 * 2**20)).SerializeToString()
    packed = gzip.compress(plain)
    flagged = b"\1" + len(packed).to_bytes(4, "big") + packed
    asks = [
        ("Create", "application/proto", {"content-encoding": "gzip"}, packed),
        ("Create", "application/json", {"content-encoding": "br"}, PACKED["br"]),
        ("Create", "application/json", {"content-encoding": "zstd"}, PACKED["zstd"]),
        ("Converse", "application/connect+proto", {"connect-content-encoding": "gzip"}, flagged),
        ("Converse", "application/connect+proto", {}, flagged),
        ("Create", "application/grpc-web+proto", {"grpc-encoding": "gzip"}, flagged),
        ("Create", "application/grpc-web+proto", {}, flagged),
    ]

    async def test(running: Running) -> None:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}", trust_env=False) as client:
            await client.post(
                "/chorale.v1.Sessions/Create", json={}
            )  # what is imported with the first is no cost
            (session,) = running.house.directory.sessions
            with bounded():
                for method, kind, headers, body in asks:
                    answer = await client.post(
                        f"/chorale.v1.Sessions/{method}",
                        content=body,
                        headers={"content-type": kind, "connect-protocol-version": "1", **headers},
                    )
                    refused = answer.status_code in (400, 501) or _code_of(answer) in REFUSED
                    assert refused, (method, kind, headers, answer.status_code, answer.content)
        assert running.house.directory.sessions == [session]

    against(test)


def _code_of(answer: httpx.Response) -> str:
    """The status of gRPC-Web, a number; of a stream of Connect, a name."""
    told = answer.headers.get("grpc-status") or answer.content.decode(errors="replace")
    found = re.search(r"grpc-status: ?(\d+)", told) or re.search(r'"code": ?"(\w+)"', told)
    return found.group(1) if found else str(told)


def test_packed_message_of_a_websocket_ends_its_link_at_its_bound() -> None:
    """64 MiB in some kilobytes, as one frame of permessage-deflate: 1009, at the cost of what one message may be."""

    async def test(running: Running) -> None:
        address = f"ws://127.0.0.1:{running.port}/v1/realtime"
        async with connect(address, proxy=None, max_size=None) as link:
            await heard(link)
            assert [one.name for one in link.protocol.extensions] == ["permessage-deflate"]
            await link.send(b" " * HUGE, text=True)
            assert (await closed(link))[0] == 1009
        async with connect(address, proxy=None) as link:
            await heard(link)

    against(test)


DEEP = b'{"a":' * 50_000
MANY = b"[" + b"0," * 150_000 + b"0]"
WIDE = b'{"session":{"tools":[' + b"{}," * 60_000 + b"{}]}}"
DOUBLE = b"{" + b'"model":"a",' * 30_000 + b'"model":"b"}'
DIGITS = b'{"expires_after":{"seconds":' + b"9" * 200_000 + b'},"n":' + b"9" * 200_000 + b"}"


@pytest.mark.parametrize(
    "body", [DEEP, MANY, WIDE, DOUBLE, DIGITS], ids=["deep", "many", "wide", "double", "digits"]
)
def test_json_that_is_much_to_read_is_read_or_refused(body: bytes) -> None:
    """Nested, long or repeated without an end, at every route that reads JSON: never a fault of the server."""

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            opened = (await client.post("/v1/sessions", json={})).json()
            secret = {"chorale-session-secret": opened["secret"], "content-type": "application/json"}
            for path in (*ROUTES[:2], *ROUTES[3:7]):
                answer = await client.post(path.replace("sess_1", opened["id"]), content=body, headers=secret)
                assert answer.status_code in (200, 201, 400), (path, answer.text[:300])
                assert answer.status_code != 400 or set(answer.json()["error"]) == {
                    *("message", "type", "param", "code"),
                    *(("event_id",) if "events" in path and "event_id" in answer.json()["error"] else ()),
                }
                assert len(answer.content) < 100_000

    asking(test)


def silence(seconds: int) -> bytes:
    """A file that says nothing, and is as short as that can be said."""
    return encoded("flac", "flac", np.zeros(16_000 * seconds, np.int16), 16_000)


def liar() -> bytes:
    """A WAV of some bytes that claims to be four gigabytes."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(bytes(3_200))
    data = bytearray(buffer.getvalue())
    data[4:8] = data[40:44] = b"\xff\xff\xff\xff"
    return bytes(data)


def test_sound_that_unpacks_to_too_much_is_refused() -> None:
    """Hours of silence in some kilobytes: 4xx once it is too long; a file that claims more than it has is what it
    has."""
    long = silence(120)
    assert len(long) < 120_000

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            with bounded():
                answer = await client.post("/v1/audio/transcriptions", files={"file": ("a.flac", long)})
                assert (answer.status_code, answer.json()["error"]["param"]) == (400, "file")
            short = await client.post("/v1/audio/transcriptions", files={"file": ("a.wav", liar())})
            assert short.status_code in (200, 400), short.text

    asking(test, limits=HttpLimits(max_audio_s=60.0))


def test_form_of_many_parts_is_refused() -> None:
    """Ten thousand fields, files or headers of a part: 400 after the first few."""
    field = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n'
    file = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n\r\n'
    header = b'--b\r\nContent-Disposition: form-data; name="a"\r\n' + b"X: y\r\n" * 10_000 + b"\r\n\r\n"
    long = b'--b\r\nContent-Disposition: form-data; name="' + b"a" * 300_000 + b'"\r\n\r\n\r\n'

    async def test(asked: Asked) -> None:
        async with asked.http(**{"content-type": "multipart/form-data; boundary=b"}) as client:
            for path in ("/v1/realtime/calls", "/v1/audio/transcriptions"):
                for part, times in ((field, 7_000), (file, 7_000), (header, 1), (long, 1)):
                    answer = await client.post(path, content=part * times + b"--b--\r\n")
                    assert answer.status_code == 400, (path, part[:80], answer.text)

    asking(test)


def test_body_without_an_end_is_read_up_to_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """In chunks, of which none is large: 413, nothing of it is kept, and who goes on sending is dropped."""
    monkeypatch.setattr(bounded_requests, "REQUEST_WITHIN_S", 1.0)
    chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"

    async def test(asked: Asked) -> None:
        running = asked.running
        async with asked.http() as client:
            opened = (await client.post("/v1/sessions", json={})).json()
            for path in ROUTES:
                head = (
                    f"POST {path.replace('sess_1', opened['id'])} HTTP/1.1\r\nHost: localhost\r\n"
                    f"Content-Type: {'application/sdp' if 'calls' in path else 'application/json'}\r\n"
                    f"Chorale-Session-Secret: {opened['secret']}\r\nTransfer-Encoding: chunked\r\n\r\n"
                )
                with bounded():
                    answer = Said(await trickled(running.port, head.encode(), chunk, 0))
                assert answer.statuses == [415 if "transcriptions" in path else 413], (
                    path,
                    answer.everything,
                )
            await until(lambda: len(running.server.server_state.connections) <= 1)
        assert asked.waiting == 0

    asking(test)
