"""A real nginx by its shipped configuration, with other addresses and files, in front of servers of the test."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import httpx
from connectrpc.client import ConnectClient
from pyqwest import Client, HTTPTransport, HTTPVersion
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from benchmarks import nginx_front
from benchmarks.nginx_front import Ports, free_port, placed
from orchestrator.transports.proxies import Proxies
from orchestrator.transports.rpc.door import GrpcOptions
from orchestrator.transports.rpc.grpc_server import GrpcServer
from tests.nginx.certificates import Certificates, certificates
from tests.transports import running
from tests.transports.fake_sessions import FakeSession
from tests.transports.rpc.connecting import WAYS, Caller


@dataclass
class Front:
    """A running nginx, as clients see it."""

    folder: Path
    made: Certificates
    port: int
    plain_port: int
    channels: list[grpc.aio.Channel] = field(default_factory=list)
    master: int = 0
    """The process that takes signals."""

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    @property
    def trusted(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.made.authority)

    def connect(self, query: str, subprotocols: Sequence[str] = (), **headers: str) -> connect:
        """A WebSocket client; use with `async with`."""
        return connect(
            f"wss://localhost:{self.port}/v1/realtime{query}",
            host="127.0.0.1",
            ssl=self.trusted,
            additional_headers=headers,
            subprotocols=[Subprotocol(name) for name in subprotocols] or None,
            proxy=None,
        )

    def client(self, local: str | None = None, **headers: str) -> httpx.AsyncClient:
        """A client of HTTP/1.1. `local`: the address of this machine that it calls from."""
        transport = httpx.AsyncHTTPTransport(verify=self.trusted, local_address=local)
        return httpx.AsyncClient(transport=transport, base_url=self.url, headers=headers, trust_env=False)

    def channel(self) -> grpc.aio.Channel:
        """A connection of gRPC; it is closed with the front."""
        trusted = grpc.ssl_channel_credentials(self.made.authority.read_bytes())
        options = (("grpc.default_authority", f"localhost:{self.port}"),)
        channel = grpc.aio.secure_channel(f"localhost:{self.port}", trusted, options=options)
        self.channels.append(channel)
        return channel

    @asynccontextmanager
    async def calling(self, way: str, **headers: str) -> AsyncIterator[Caller]:
        """A client of Connect or gRPC-Web (`WAYS`) over HTTP/2."""
        protocol, codec = WAYS[way]
        authority = self.made.authority.read_bytes()
        async with (
            HTTPTransport(tls_ca_cert=authority, http_version=HTTPVersion.HTTP2) as transport,
            ConnectClient(
                self.url, protocol=protocol, codec=codec, send_compression=None, http_client=Client(transport)
            ) as client,
        ):
            yield Caller(client, None, headers)

    def accesses(self) -> list[dict[str, Any]]:
        """Returns what has been written of accesses."""
        return [json.loads(line) for line in (self.folder / "access.log").read_text().splitlines()]

    def written(self) -> str:
        """Returns all logs."""
        return "\n".join(path.read_text() for path in self.folder.glob("*.log"))


@asynccontextmanager
async def nginx(folder: Path, *servers: Ports, edit: Callable[[str], str] = str) -> AsyncIterator[Front]:
    """Runs nginx in front of two servers until the block is left. `edit` changes its configuration."""
    front = Front(folder, certificates(folder), free_port(), free_port())
    changes = [
        ("listen 80 ", f"listen 127.0.0.1:{front.plain_port} "),
        ("listen 443 ", f"listen 127.0.0.1:{front.port} "),
        ("/etc/nginx/chorale-chain.pem", str(front.made.chain)),
        ("/etc/nginx/chorale-key.pem", str(front.made.key)),
    ]
    text = edit(placed(folder, servers, changes))
    async with nginx_front.running(folder, text, front.port) as process:
        front.master = process.pid
        try:
            yield front
        finally:
            for channel in front.channels:
                await channel.close()


@dataclass
class Node:
    """A server with every door, around fake sessions."""

    house: running.House
    ports: Ports


@asynccontextmanager
async def node() -> AsyncIterator[Node]:
    """Serves until the block is left. It believes proxies on this machine."""
    believed = Proxies(["127.0.0.1"])
    house = running.build(proxies=believed)
    speaks_grpc = GrpcServer(
        GrpcOptions(), house.streams, house.entrance, house.directory, house.readiness, None, believed
    )
    async with running.serving(house) as served:
        port = await speaks_grpc.start()
        try:
            yield Node(house, Ports(served.port, port))
        finally:
            await speaks_grpc.stop(5)


@dataclass
class Stand:
    """nginx in front of two servers."""

    front: Front
    nodes: tuple[Node, Node]

    def maker(self, session_id: str) -> Node:
        """Returns the server that made a session."""
        (found,) = [
            one for one in self.nodes if session_id in [made.id for made in one.house.directory.sessions]
        ]
        return found

    def session(self, session_id: str) -> FakeSession:
        """Returns a session, whoever made it."""
        directory = self.maker(session_id).house.directory
        (found,) = [one for one in directory.sessions if one.id == session_id]
        return found


def against(folder: Path, test: Callable[[Stand], Awaitable[None]], edit: Callable[[str], str] = str) -> None:
    """Runs `test` with nginx and two servers."""

    async def main() -> None:
        async with (
            asyncio.timeout(120),
            node() as a,
            node() as b,
            nginx(folder, a.ports, b.ports, edit=edit) as front,
        ):
            await test(Stand(front, (a, b)))

    asyncio.run(main())
