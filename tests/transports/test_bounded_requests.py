"""What a client may make the server read, and wait for, before it is known: heads, half requests, unread answers."""

import asyncio
import contextlib
import json
import logging
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from orchestrator.transports import bounded_requests
from tests import virtual_time
from tests.transports.running import Running, against, build, heard, until

UPGRADE = (
    b"GET /v1/realtime HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


async def answer(running: Running, request: bytes) -> tuple[int, dict[str, Any]]:
    """Sends a request as it is; returns status and error of the answer, after which the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    writer.write(request)
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    assert b"application/json" in head
    error: dict[str, Any] = json.loads(body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return int(head.split()[1]), error


@pytest.mark.parametrize(
    "more",
    [
        b"".join(b"X-%d: a\r\n" % number for number in range(200)) + b"\r\n",
        b"X: " + b"a" * 9_000 + b"\r\n\r\n",
        b"Content-Length: 3\r\n\r\nabc",
    ],
)
def test_upgrade_that_cannot_be_read_is_answered(more: bytes) -> None:
    """A WebSocket's request with too many or too long headers, or with a body, gets 400 and not an endless silence."""

    async def test(running: Running) -> None:
        status, error = await answer(running, UPGRADE + more)
        assert (status, error["code"]) == (400, "invalid_request")
        await until(lambda: not running.server.server_state.connections)

    against(test)


@pytest.mark.parametrize(
    "request_bytes", [b"\x16\x03\x01\x02\x00", b"FOO / HTTP/1.1\r\n\r\n", b"no http\r\n\r\n"]
)
def test_what_is_no_http_is_refused_like_everything_else(request_bytes: bytes) -> None:
    """Garbage on the port gets the one shape of an error."""

    async def test(running: Running) -> None:
        status, error = await answer(running, request_bytes)
        assert (status, error["code"]) == (400, "invalid_request")

    against(test)


async def taken(port: int, beginning: bytes, more: bytes) -> int:
    """Sends `more` again and again until the server has had enough; returns how much it let come (with what the kernel
    holds), 16 MiB where it never had."""
    loop = asyncio.get_running_loop()
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.setblocking(False)
        await loop.sock_sendall(client, beginning)
        sent = 0
        while sent < 16 * 2**20:
            try:
                await loop.sock_sendall(client, more)
            except ConnectionError:
                break
            sent += len(more)
    return sent


@pytest.mark.parametrize(
    ("beginning", "more"),
    [
        (b"GET /", b"a"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", b"a"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"A: b\r\n"),
        (b"POST /nothing HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", b"A: b\r\n"),
    ],
)
def test_endless_head_is_refused(beginning: bytes, more: bytes) -> None:
    """A request line, a header, headers or trailers without an end are given up at 64 KiB, not collected."""

    async def test(running: Running) -> None:
        assert await taken(running.port, beginning, more * 1_000) < 4 * 2**20
        await until(lambda: not running.server.server_state.connections)

    against(test)


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        UPGRADE,
        b"POST /v1/realtime/client_secrets HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 20\r\n\r\n{",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\n",
    ],
)
def test_request_that_does_not_come_to_an_end_is_given_up(
    beginning: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that says nothing, or half of something, costs its socket for a while only."""
    monkeypatch.setattr(bounded_requests, "REQUEST_WITHIN_S", 0.05)

    async def test(running: Running) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(beginning)
        with contextlib.suppress(ConnectionResetError):
            await reader.read()
        writer.close()
        await until(lambda: not running.server.server_state.connections)

    against(test)


def test_client_that_does_not_read_its_answer_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A big file that nobody takes off the socket is not kept for ever; one that is read slowly arrives."""
    monkeypatch.setattr(bounded_requests, "REQUEST_WITHIN_S", 0.5)
    (tmp_path / "index.html").write_bytes(b"<p>hello")
    (tmp_path / "big.bin").write_bytes(bytes(16 * 2**20))
    get = b"GET /web/big.bin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

    async def test(running: Running) -> None:
        with socket.create_connection(("127.0.0.1", running.port)) as client:
            client.sendall(get)
            await until(lambda: len(running.server.server_state.connections) == 1)
            await until(lambda: not running.server.server_state.connections)
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port, limit=2**16)
        writer.write(get)
        size = 0
        while piece := await reader.read(2**16):
            size += len(piece)
            await asyncio.sleep(0.004)
        assert size > 16 * 2**20
        writer.close()

    against(test, lambda: build(page=tmp_path))


def test_request_ahead_does_not_make_up_for_an_answer_that_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever does not read is given up though it sends another whole request meanwhile."""
    monkeypatch.setattr(bounded_requests, "REQUEST_WITHIN_S", 0.2)
    (tmp_path / "index.html").write_bytes(b"<p>hello")
    (tmp_path / "big.bin").write_bytes(bytes(16 * 2**20))
    get = b"GET /web/big.bin HTTP/1.1\r\nHost: localhost\r\n\r\n"

    async def test(running: Running) -> None:
        connections = running.server.server_state.connections
        with socket.create_connection(("127.0.0.1", running.port)) as client:
            client.sendall(get)
            await until(lambda: len(connections) == 1)
            (connection,) = connections
            assert isinstance(connection, bounded_requests.BoundedRequests)
            await until(lambda: connection.flow.write_paused)
            client.sendall(get)
            await until(lambda: not connections)

    against(test, lambda: build(page=tmp_path))


@pytest.mark.parametrize("after", [b"", b"Connection: close\r\n"])
def test_client_that_leaves_the_rest_of_its_answer_is_given_up(
    after: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the server still holds of an answer may be so little that it never paused: it is not kept for ever either,
    whether the connection is to go on or to end."""
    monkeypatch.setattr(bounded_requests, "REQUEST_WITHIN_S", 0.2)
    (tmp_path / "index.html").write_bytes(b"<p>hello")
    (tmp_path / "some.bin").write_bytes(bytes(30 * 2**10))
    get = b"GET /web/some.bin HTTP/1.1\r\nHost: localhost\r\n%s\r\n"

    async def test(running: Running) -> None:
        connections = running.server.server_state.connections
        with socket.create_connection(("127.0.0.1", running.port)) as client:
            await until(lambda: len(connections) == 1)
            (connection,) = connections
            assert isinstance(connection, bounded_requests.BoundedRequests)
            while not connection.transport.get_write_buffer_size():
                connection._answered = False
                client.sendall(get % b"")
                await until(lambda: connection._answered)
            assert not connection.flow.write_paused
            if after:
                client.sendall(get % after)
            await until(lambda: not connections)

    against(test, lambda: build(page=tmp_path))


def test_request_that_is_still_coming_when_the_server_stops_is_told_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """503 in the one shape, at once, and the log shows no fault of ours."""

    async def test(running: Running) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        head = b"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{"
        writer.write(b"POST /v1/sessions HTTP/1.1\r\n" + head)
        state = running.server.server_state
        await until(lambda: bool(state.tasks))
        running.server.should_exit = True
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 503")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "server_shutting_down"
        writer.close()
        await until(lambda: not state.tasks)

    with caplog.at_level(logging.ERROR):
        against(test)
    assert not caplog.records


def test_requests_ahead_are_few(caplog: pytest.LogCaptureFixture) -> None:
    """A connection that sends request upon request without waiting is refused, not collected; a few are answered in
    their order."""

    async def test(running: Running) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        get = b"GET /%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
        writer.write(get % (b"healthz", b"") * 5 + get % (b"nowhere", b"Connection: close\r\n"))
        answers = await reader.read()
        assert answers.count(b"HTTP/1.1 200 OK") == 5
        assert answers.rindex(b"HTTP/1.1 404") > answers.rindex(b"HTTP/1.1 200 OK")
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(get % (b"healthz", b"") * 1_000)
        with contextlib.suppress(ConnectionResetError):
            assert (await reader.read()).count(b"HTTP/1.1 200 OK") < 50
        writer.close()

    with caplog.at_level(logging.ERROR):
        against(test)
    assert not caplog.records


def test_open_links_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time for a request ends with the upgrade."""
    monkeypatch.setattr(bounded_requests, "REQUEST_WITHIN_S", 0.5)

    async def test(running: Running) -> None:
        async with running.connect() as link:
            await heard(link)
            await asyncio.sleep(0.6)
            running.house.directory.sessions[-1].emit("response.done")
            assert (await heard(link))["type"] == "response.done"

    against(test)


def test_long_head_within_the_bound_is_read() -> None:
    """Forty kilobytes of headers are much, but no attack."""

    async def test(running: Running) -> None:
        async with httpx.AsyncClient(trust_env=False) as client:
            headers = {f"X-{number}": "a" * 4_000 for number in range(10)}
            found = await client.get(f"http://127.0.0.1:{running.port}/healthz", headers=headers)
            assert found.status_code == 200

    against(test)


def test_body_is_not_taken_for_a_head() -> None:
    """A body larger than a head may be is refused as a body: 413."""

    async def test(running: Running) -> None:
        async with httpx.AsyncClient(trust_env=False) as client:
            url = f"http://127.0.0.1:{running.port}/v1/realtime/client_secrets"
            small = await client.post(url, json={"session": {"instructions": "a" * 60_000}})
            assert small.status_code == 200
            huge = await client.post(
                url, content=b"{" + b" " * 600_000, headers={"Content-Type": "application/json"}
            )
            assert huge.status_code == 413

    against(test)


class _Line(asyncio.Transport):
    """A client's line without a network."""

    def __init__(self) -> None:
        super().__init__()
        self.aborted = False
        self.protocol: asyncio.BaseProtocol | None = None

    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self.protocol is not None
        return self.protocol

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True

    def close(self) -> None:
        pass

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


@pytest.mark.parametrize(
    ("first_bytes", "bytes_a_second", "answers", "kept"),
    [
        (1, 20_000, False, True),
        (1, 10_000, False, False),
        (1_000_000, 10_000, False, False),
        (1, 20_000, True, False),
    ],
)
def test_body_may_take_as_long_as_it_comes_fast_enough(
    first_bytes: int, bytes_a_second: int, answers: bool, kept: bool
) -> None:
    """A large file over a slow line is read for minutes; a trickle is not, whatever came before it, nor what has been
    answered already."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if answers:
            await send({"type": "http.response.start", "status": 404, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body"})
        while (await receive()).get("more_body"):
            pass

    async def main() -> None:
        config = uvicorn.Config(app, log_config=None, lifespan="off")
        config.load()
        client, line = bounded_requests.BoundedRequests(config, ServerState(), {}), _Line()
        line.protocol = client
        client.connection_made(line)
        client.data_received(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\n")
        client.data_received(bytes(first_bytes))
        for _ in range(100):
            if line.aborted:
                break
            client.data_received(bytes(bytes_a_second))
            await asyncio.sleep(1.0)
        assert line.aborted is not kept
        client.connection_lost(None)
        await asyncio.gather(*client.tasks)

    virtual_time.run(main())
