"""What nginx tells servers of clients, what it tells the log of both, and what it refuses."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from benchmarks.nginx_front import Ports
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from tests.nginx.opening import over_http, stub_of
from tests.nginx.proxying import Front, Stand, against, nginx
from tests.test_app import free_port
from tests.transports.rpc.calling import refused
from tests.transports.running import until

pytestmark = pytest.mark.needs("nginx")

MARK = "rs_planted-marker-7f3a"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Upstream:
    """A server that reads what nginx sends it and answers once the request is complete."""

    def __init__(self) -> None:
        self.head = b""
        self.body_bytes = 0

    def header(self, name: str) -> list[str]:
        """Returns the values of a header, as they came."""
        lines = [line.partition(": ") for line in self.head.decode().split("\r\n")[1:]]
        return [value for found, _, value in lines if found.lower() == name]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.head, self.body_bytes = await reader.readuntil(b"\r\n\r\n"), 0
        wanted = int((self.header("content-length") or ["0"])[0])
        while self.body_bytes < wanted and (piece := await reader.read(65_536)):
            self.body_bytes += len(piece)
        writer.write(OK)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def before(folder: Path) -> AsyncIterator[tuple[Front, Upstream]]:
    """nginx before an upstream that stands for both servers."""
    upstream = Upstream()
    async with asyncio.timeout(120), await asyncio.start_server(upstream.serve, "127.0.0.1", 0) as server:
        here = Ports(server.sockets[0].getsockname()[1], free_port())
        async with nginx(folder, here, here) as front:
            yield front, upstream


def test_server_is_told_of_the_client_and_of_nothing_that_it_claims(tmp_path: Path) -> None:
    """The address and scheme are nginx's word; what a client says of them is left out; `Host` is the client's."""

    async def main() -> None:
        claims = {
            "x-forwarded-for": "203.0.113.9",
            "x-forwarded-proto": "http",
            "x-real-ip": "203.0.113.9",
            "forwarded": "for=203.0.113.9",
            "chorale-new-session": "0" * 32,
        }
        async with before(tmp_path) as (front, upstream), front.client("127.0.0.5", **claims) as client:
            await client.get("/v1/models")
            assert upstream.header("x-forwarded-for") == ["127.0.0.5"]
            assert upstream.header("x-forwarded-proto") == ["https"]
            assert upstream.header("x-real-ip") == upstream.header("forwarded") == []
            assert upstream.header("host") == [f"localhost:{front.port}"]
            (named,) = upstream.header("chorale-new-session")
            assert (len(named), named) != (32, "0" * 32)
            await client.get("/", headers={"connection": "upgrade", "upgrade": "h2c"})
            assert upstream.header("upgrade") == []

    asyncio.run(main())


def test_servers_count_and_log_the_address_of_the_client(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Over HTTP and over gRPC; nginx's own log says the same."""
    caplog.set_level(logging.DEBUG)

    async def test(stand: Stand) -> None:
        async with stand.front.client("127.0.0.5", **{"x-forwarded-for": "203.0.113.9"}) as client:
            await client.get("/v1/sessions/none")
        claim = (("x-forwarded-for", "203.0.113.9"),)
        await stub_of(stand).Create(pb.CreateRequest(model="m"), metadata=claim)
        await until(lambda: len(stand.front.accesses()) == 2)
        told = {one.message: vars(one).get("client") for one in caplog.records if "orchestrator" in one.name}
        assert told["GET /v1/sessions/none"] == "127.0.0.5"
        assert told["/chorale.v1.Sessions/Create"] == "127.0.0.1"
        assert stand.front.accesses()[0]["client"] == "127.0.0.5"

    against(tmp_path, test)


def test_body_goes_on_as_it_comes(tmp_path: Path) -> None:
    """The server reads what has been sent before there is more; 25 MiB pass."""
    size = 25 * 2**20

    async def main() -> None:
        async with before(tmp_path) as (front, upstream), front.client() as client:

            async def body() -> AsyncIterator[bytes]:
                yield bytes(1_000)
                await until(lambda: upstream.body_bytes == 1_000)
                for _ in range(25):
                    yield bytes(2**20 - 40)

            headers = {"content-length": str(1_000 + 25 * (2**20 - 40))}
            answer = await client.post("/v1/audio/transcriptions", content=body(), headers=headers)
            assert (answer.status_code, upstream.body_bytes) == (200, size)

    asyncio.run(main())


def test_body_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """413 in the shape of the API; the server hears nothing of it."""

    async def main() -> None:
        async with before(tmp_path) as (front, upstream):
            answer = await announced(front, "/v1/audio/transcriptions")
            assert answer.startswith(b"HTTP/1.1 413 ")
            assert b"request_too_large" in answer
            assert upstream.head == b""

    asyncio.run(main())


async def announced(front: Front, target: str) -> bytes:
    """Says that a body of 30 MiB will come, and returns what is answered to that."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1",
        front.port,
        ssl=front.trusted,
        server_hostname="localhost",
        local_addr=("127.0.0.9", 0),  # nginx waits a while for the body, and counts the connection meanwhile
    )
    head = f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {30 * 2**20}\r\n\r\n"
    writer.write(head.encode())
    answer = await reader.readuntil(b"}}")
    writer.close()
    return answer


def test_no_server_is_said_in_the_shape_of_the_api(tmp_path: Path) -> None:
    """503 with the time to come back; UNAVAILABLE over gRPC."""

    async def main() -> None:
        nobody = Ports(free_port(), free_port())
        async with asyncio.timeout(120), nginx(tmp_path, nobody, nobody) as front:
            stand = Stand(front, ())  # type: ignore[arg-type]  # there are none
            async with front.client() as client:
                answer = await client.get("/v1/models")
                assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
                assert answer.json()["error"]["type"] == "server_error"
                web = {"content-type": "application/grpc-web+proto"}
                assert (await client.post("/chorale.v1.Sessions/Get", headers=web)).status_code == 503
            assert (await refused(stub_of(stand).Get(pb.GetRequest())))[0] == "UNAVAILABLE"
            assert MARK not in front.written()

    asyncio.run(main())


def few(text: str) -> str:
    """Returns the configuration with a bound that a test reaches."""
    shipped = "limit_conn chorale_addresses 100;"
    assert shipped in text
    return text.replace(shipped, "limit_conn chorale_addresses 2;")


def test_one_address_may_hold_so_many_connections(tmp_path: Path) -> None:
    """The next one is refused with 429 and the time to come back; another address is not."""

    async def test(stand: Stand) -> None:
        async with stand.front.connect("?model=m"), stand.front.connect("?model=m"):
            async with stand.front.client() as client:
                answer = await client.get("/v1/models")
                assert (answer.status_code, answer.headers["retry-after"]) == (429, "5")
                assert answer.json()["error"]["code"] == "too_many_connections"
            async with stand.front.client("127.0.0.5") as client:
                assert (await client.get("/healthz")).status_code == 200

    against(tmp_path, test, few)


def test_logs_hold_no_secret(tmp_path: Path) -> None:
    """In no query, header or subprotocol, whatever becomes of the request: answered, refused, too large, or one too
    many. That it came is written."""

    async def test(stand: Stand) -> None:
        front = stand.front
        session = await over_http(stand)
        query = f"?session_id={session.id}&secret={MARK}"
        key = {"authorization": f"Bearer {MARK}"}
        with pytest.raises(InvalidStatus):
            await front.connect(query, [f"chorale-session-secret.{MARK}"], **key)
        async with front.client("127.0.0.5", **key, referer=f"https://x/?secret={MARK}") as client:
            await client.get(f"/v1/sessions/{session.id}/events?secret={MARK}")
            await client.get(f"http://localhost:{front.plain_port}/v1/realtime{query}")
            for mark in ("%3F", "%253F", "%26"):
                await client.get(httpx.URL(front.url, raw_path=f"/v1/y{mark}secret={MARK}".encode()))
            assert (await announced(front, f"/v1/x{query}")).startswith(b"HTTP/1.1 413 ")
        async with front.connect("?model=m"), front.connect("?model=m"), front.client(**key) as client:
            assert (await client.get(f"/v1/x{query}")).status_code == 429
        wanted = {("/v1/x", "413"), ("/v1/x", "429"), ("/v1/realtime", "308"), ("/v1/y", "404")}
        await until(lambda: wanted <= {(one["path"], one["status"]) for one in front.accesses()})
        assert MARK not in front.written()

    against(tmp_path, test, few)


def test_log_of_a_server_that_does_not_answer_holds_no_secret(tmp_path: Path) -> None:
    """nginx's error about it would quote the request; the log of accesses says which server it was."""

    async def main() -> None:
        nobody = Ports(free_port(), free_port())
        async with asyncio.timeout(120), nginx(tmp_path, nobody, nobody) as front:
            async with front.client() as client:
                await client.get(f"/v1/realtime?secret={MARK}")
            await until(lambda: len(front.accesses()) == 1)
            assert MARK not in front.written()
            (access,) = front.accesses()
            assert (access["path"], access["status"]) == ("/v1/realtime", "503")
            assert f"127.0.0.1:{nobody.http}" in access["server"]
            assert "502" in access["server_status"]

    asyncio.run(main())


def test_paths_of_any_bytes_leave_the_log_readable(tmp_path: Path) -> None:
    """Line breaks and quotes in a path make no line of their own."""

    async def test(stand: Stand) -> None:
        async with stand.front.client() as client:
            url = httpx.URL(stand.front.url, raw_path=b'/v1/x%0d%0a{"client":"me"}%22%00')
            await client.get(url)
            await client.get("/v1/models")
        await until(lambda: len((stand.front.folder / "access.log").read_text().splitlines()) >= 2)
        assert [one["client"] for one in stand.front.accesses()] == ["127.0.0.1"] * 2

    against(tmp_path, test)
