"""Clients that take their time: heads and bodies that trickle, answers that nobody reads, handshakes that never end. At
every door they are dropped, and what they held is there for others."""

import asyncio
import contextlib
import json
import socket
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

from orchestrator.scheduling.job import Job
from orchestrator.scheduling.work import Replied, Reply, ReplyText, Report, Speak, SpeechPiece, Spoke
from orchestrator.sessions.links import LoggedEvent
from orchestrator.transports import bounded_requests
from orchestrator.transports.server import ServerOptions
from tests.nginx.proxying import Stand
from tests.nginx.proxying import against as behind_nginx
from tests.security.raw import trickled
from tests.test_app import certificate
from tests.transports.asking import Asked, asking
from tests.transports.fake_sessions import FakeSession
from tests.transports.running import Running, against, heard, until

BIG = LoggedEvent(b'{"event_id":"event_1","type":"a","text":"' + b"x" * 60_000 + b'"}')
HEAD = b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: %b\r\n"
LONG = b"Content-Length: 1000000\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
UPGRADE = b"GET /v1/realtime HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"

_JSON = b"application/json"
_FORM = b"multipart/form-data; boundary=b"
_PART = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF'
BODIES = {
    "a session": (b"/v1/sessions", _JSON, LONG, b"{"),
    "events": (b"/v1/sessions/%b/events", _JSON, LONG, b"["),
    "a client secret": (b"/v1/realtime/client_secrets", _JSON, LONG, b"{"),
    "an offer": (b"/v1/realtime/calls", b"application/sdp", LONG, b"v=0\r\n"),
    "an offer in a form": (b"/v1/realtime/calls", _FORM, LONG, _PART),
    "a chat": (b"/v1/chat/completions", _JSON, LONG, b"{"),
    "texts": (b"/v1/embeddings", _JSON, LONG, b"{"),
    "words to be spoken": (b"/v1/audio/speech", _JSON, LONG, b"{"),
    "a file": (b"/v1/audio/transcriptions", _FORM, LONG, _PART),
    "a file in chunks": (b"/v1/audio/transcriptions", _FORM, CHUNKED, b"%x\r\n%b\r\n" % (len(_PART), _PART)),
    "Connect": (b"/chorale.v1.Sessions/Create", _JSON, LONG, b"{"),
    "a stream of Connect": (b"/chorale.v1.Sessions/Converse", b"application/connect+proto", LONG, b"\0"),
    "gRPC-Web": (b"/chorale.v1.Sessions/Create", b"application/grpc-web+proto", LONG, b"\0"),
    "what is not there": (b"/nowhere", _JSON, LONG, b"{"),
}


def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients are given up after a part of a second."""
    monkeypatch.setattr(bounded_requests, "REQUEST_WITHIN_S", 0.3)


def connections(running: Running) -> int:
    return len(running.server.server_state.connections)


@pytest.mark.parametrize("name", BODIES)
def test_body_that_trickles_is_given_up(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every route that reads one, a byte at a time: it ends, no errand is left, and the next client is served."""
    path, kind, length, first = BODIES[name]

    async def test(asked: Asked) -> None:
        running = asked.running
        async with asked.http() as client:
            opened = (await client.post("/v1/sessions", json={})).json()
            if b"%b" in path:
                secret = f"Chorale-Session-Secret: {opened['secret']}\r\n".encode()
                head = HEAD % (path % opened["id"].encode(), kind) + secret
            else:
                head = HEAD % (path, kind)
        quick(monkeypatch)
        await asyncio.gather(*(trickled(running.port, head + length + first, b" ") for _ in range(3)))
        await until(lambda: not connections(running))
        monkeypatch.undo()  # time for one that means well
        assert asked.waiting == 0
        assert len(running.house.directory.sessions) == 1
        async with asked.http() as client:
            assert (await client.post("/v1/sessions", json={})).status_code == 201

    asking(test)


@pytest.mark.parametrize(
    ("at_once", "piece"),
    [
        (b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n", b"A: b\r\n"),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ", b"a"),
        (UPGRADE, b"A: b\r\n"),
        (b"\r\n", b"\r\n"),
        (b"", b"G"),
    ],
)
def test_head_that_trickles_is_given_up(
    at_once: bytes, piece: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of requests and of upgrades: each new line gives no more time."""
    quick(monkeypatch)

    async def test(running: Running) -> None:
        await asyncio.gather(*(trickled(running.port, at_once, piece) for _ in range(3)))
        await until(lambda: not connections(running))
        monkeypatch.undo()  # time for one that means well
        async with running.connect() as link:
            await heard(link)

    against(test)


def wordy(job: Job) -> Sequence[Report]:
    """Says 8 MiB, or speaks for some minutes."""
    match job.work:
        case Reply():
            return [
                *(ReplyText(job.id, "word " * 2_000) for _ in range(800)),
                Replied(job.id, "stop", 1, 0, 1),
            ]
        case Speak():
            pieces = [SpeechPiece(job.id, at * 24_000, 24_000, 24_000, bytes(48_000)) for at in range(200)]
            return [*pieces, Spoke(job.id, 1)]
    raise AssertionError(job)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "stream": True}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
        ("/v1/audio/speech", {"input": "a.", "response_format": "pcm"}),
        ("/v1/audio/speech", {"input": "a.", "response_format": "wav", "stream_format": "sse"}),
    ],
)
def test_answer_that_nobody_reads_is_given_up(
    path: str, body: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its errand ends with its connection: no place of its tenant is held by who does not read."""
    quick(monkeypatch)
    content = json.dumps(body).encode()
    head = HEAD % (path.encode(), _JSON) + b"Content-Length: %d\r\n\r\n" % len(content)

    async def test(asked: Asked) -> None:
        with deaf(asked.running.port) as client:
            client.sendall(head + content)
            await until(lambda: bool(asked.workers.jobs))
            await until(lambda: not connections(asked.running))
            await asked.openai.errands.wait_empty()
        assert asked.waiting == 0

    asking(test, wordy)


def deaf(port: int) -> contextlib.closing[socket.socket]:
    """A client that takes next to nothing."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    client.connect(("127.0.0.1", port))
    return contextlib.closing(client)


async def opened(running: Running) -> tuple[FakeSession, bytes]:
    """Opens a session; returns it, and the lines of a head that let one in."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}", trust_env=False) as client:
        await client.post("/v1/sessions", json={})
    session = running.house.directory.sessions[-1]
    return session, f"Chorale-Session-Secret: {session.secret}\r\n".encode()


def test_event_stream_that_nobody_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its link goes, its session stays, and a reader beside it misses nothing."""
    monkeypatch.setattr(bounded_requests, "REQUEST_WITHIN_S", 2.0)  # time for the one that does read

    async def test(running: Running) -> None:
        session, secret = await opened(running)
        get = (
            f"GET /v1/sessions/{session.id}/events HTTP/1.1\r\nHost: localhost\r\n".encode()
            + secret
            + b"\r\n"
        )
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(get)
        with deaf(running.port) as client:
            client.sendall(get)
            await until(lambda: len(session.links) == 2)
            emitted = seen = 0
            while running.house.events.links == 2:
                session.emit(BIG)
                emitted += 1
                while seen < emitted * len(BIG.data):
                    piece = await reader.read(65_536)
                    assert piece
                    seen += len(piece)
                await asyncio.sleep(0.005)
        assert running.house.events.links == 1
        assert session.ended is None
        writer.close()

    against(test)


def test_websocket_frame_that_trickles_holds_its_own_link_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who never ends its message answers no ping either, and is let go; others are served meanwhile."""

    async def test(running: Running) -> None:
        key = b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        frame = b"\x81\xff" + (2**20).to_bytes(8, "big") + bytes(4)
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(UPGRADE + key)
        await reader.readuntil(b"session.created")
        await until(lambda: running.house.door.links == 1)

        async def trickle() -> None:
            with contextlib.suppress(ConnectionError):
                writer.write(frame)
                while True:
                    writer.write(b" ")
                    await writer.drain()
                    await asyncio.sleep(0.01)

        trickling = asyncio.create_task(trickle())
        async with running.connect() as link:
            await heard(link)
        await until(lambda: running.house.door.links == 0)
        trickling.cancel()
        writer.close()

    against(test, options=ServerOptions(ping_s=0.3))


def test_handshake_of_tls_that_never_ends_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing, or half a hello: the loop's own bound on handshakes holds, and the next client gets in."""
    monkeypatch.setattr("asyncio.constants.SSL_HANDSHAKE_TIMEOUT", 0.3)
    chain, key = certificate(tmp_path)
    options = ServerOptions(certificate=chain, certificate_key=key)

    async def test(running: Running) -> None:
        for hello in (b"", b"\x16\x03\x01\x02\x00\x01"):
            reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
            writer.write(hello)
            with contextlib.suppress(ConnectionError):
                await reader.read()
            writer.close()
        url = f"https://127.0.0.1:{running.port}/healthz"
        async with httpx.AsyncClient(verify=False, trust_env=False) as client:
            assert (await client.get(url, headers={"host": "localhost"})).status_code == 200

    against(test, options=options)


def shorter(text: str) -> str:
    """nginx's configuration, with less patience."""
    assert text.count("client_header_timeout 20s") == text.count("client_body_timeout 20s;") == 1
    return text.replace("client_header_timeout 20s", "client_header_timeout 3s").replace(
        "client_body_timeout 20s;", "client_body_timeout 3s;"
    )


@pytest.mark.needs("nginx")
def test_nginx_gives_up_who_says_nothing_more(tmp_path: Path) -> None:
    """Half a head, or half a body: it is closed by nginx, and what the server had of it ends there too."""

    async def test(stand: Stand) -> None:
        async def breaks_off(half: bytes) -> None:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", stand.front.port, ssl=stand.front.trusted, server_hostname="localhost"
            )
            writer.write(half)
            with contextlib.suppress(ConnectionError):
                await reader.read()
            writer.close()

        await asyncio.gather(
            breaks_off(b"GET /v1/sessions/a HTTP/1.1\r\nHost: local"),
            breaks_off(HEAD % (b"/v1/sessions", _JSON) + LONG + b"{"),
            breaks_off(HEAD % (b"/chorale.v1.Sessions/Create", _JSON) + LONG + b"{"),
        )
        for one in stand.nodes:
            assert one.house.directory.sessions == []
        async with stand.front.client() as client:
            assert (await client.post("/v1/sessions", json={})).status_code == 201

    behind_nginx(tmp_path, test, shorter)
