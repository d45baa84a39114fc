"""nginx by the file that ships (`configs/nginx.conf`), before servers of a bench or of a test."""

import asyncio
import getpass
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import typer

from benchmarks import resume_server
from orchestrator.transports.server import listen

SHIPPED = Path(__file__).parents[1] / "configs" / "nginx.conf"

_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
_TLS = (
    "listen 443 ssl http2 default_server so_keepalive=1m:15s:4;",
    "ssl_certificate /etc/nginx/chorale-chain.pem;",
    "ssl_certificate_key /etc/nginx/chorale-key.pem;",
)


class Ports(NamedTuple):
    """Where HTTP is spoken, and gRPC."""

    http: int
    grpc: int


class ShippedOtherwise(Exception):
    """The file no longer has a line that is to be changed."""


def placed(folder: Path, servers: Sequence[Ports], changes: Sequence[tuple[str, str]]) -> str:
    """Returns the shipped configuration for two servers, with its files in `folder` and what `changes` says; nothing
    else is changed. Raises `ShippedOtherwise`."""
    first, second = servers
    text = SHIPPED.read_text()
    temporary = "".join(f"{one}_temp_path {folder}/{one};\n" for one in _TEMPORARY)
    for shipped, wanted in (
        ("127.0.0.1:8080", f"127.0.0.1:{first.http}"),
        ("127.0.0.1:8081", f"127.0.0.1:{second.http}"),
        ("127.0.0.1:50051", f"127.0.0.1:{first.grpc}"),
        ("127.0.0.1:50052", f"127.0.0.1:{second.grpc}"),
        ("user www-data;", f"user {getpass.getuser()};"),
        ("/run/nginx.pid", f"{folder}/nginx.pid"),
        ("/var/log/nginx/error.log notice", f"{folder}/start.log notice"),
        ("/var/log/nginx/", f"{folder}/"),
        ("\nhttp {\n", f"\nhttp {{\n{temporary}"),
        *changes,
    ):
        if shipped not in text:
            raise ShippedOtherwise(shipped)
        text = text.replace(shipped, wanted)
    return text


@asynccontextmanager
async def running(folder: Path, text: str, port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    """Runs nginx by this configuration until the block is left; it listens on `port` then. Raises `RuntimeError`."""
    file, log = folder / "nginx.conf", folder / "start.log"
    file.write_text(text)
    process = await asyncio.create_subprocess_exec(
        "nginx", "-p", str(folder), "-c", str(file), "-e", str(log), "-g", "daemon off;"
    )
    try:
        while not await _listens(port):
            if process.returncode is not None:
                raise RuntimeError(log.read_text())
            await asyncio.sleep(0.02)
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def is_installed() -> None:
    """Raises `typer.BadParameter` where there is no nginx."""
    if shutil.which("nginx") is None:
        raise typer.BadParameter("nginx is not installed.")


@asynccontextmanager
async def front_of(served: resume_server.Ports, nginx: bool) -> AsyncIterator[resume_server.Ports]:
    """Where clients connect: to the server of a bench, or to nginx before it."""
    if not nginx:
        yield served
        return
    async with without_tls(Ports(served.http, served.grpc)) as front:
        yield replace(served, http=front.http, grpc=front.grpc, is_http2=True)


@asynccontextmanager
async def without_tls(ports: Ports) -> AsyncIterator[Ports]:
    """nginx before one server, without its TLS, so that nothing but a line is cut, and for as many clients of one
    address as there are; gives the ports for HTTP/1.1 and, with HTTP/2, for gRPC."""
    front, plain = Ports(free_port(), free_port()), free_port()
    listens = f"listen 127.0.0.1:{front.http}; listen 127.0.0.1:{front.grpc} http2;"
    changes = [
        *zip(_TLS, (listens, "", ""), strict=True),
        ("listen 80 ", f"listen 127.0.0.1:{plain} "),
        ("limit_conn chorale_addresses 100;", "limit_conn chorale_addresses 1000;"),
    ]
    with tempfile.TemporaryDirectory(prefix="chorale-nginx-") as folder:
        text = placed(Path(folder), (ports, ports), changes)
        async with running(Path(folder), text, front.http):
            yield front


def free_port() -> int:
    """Returns a port that nobody has."""
    (one,) = listen("127.0.0.1", 0)
    with one:
        return int(one.getsockname()[1])


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True
