"""Connections to the gRPC port, whoever makes them and whatever comes by them."""

import asyncio
import socket

import pytest

from orchestrator.transports.rpc import grpc_server
from orchestrator.transports.rpc.door import GrpcOptions
from tests.transports.rpc.calling import Running, against, build


def test_bytes_that_are_no_http_2_hurt_nobody() -> None:
    """HTTP/1.1, TLS and noise on the port: their connections end, and calls go on."""

    async def test(running: Running) -> None:
        for noise in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00", b"\0" * 5_000):
            reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
            writer.write(noise)
            writer.write_eof()
            while await reader.read(65_536):
                pass
            writer.close()
        await running.create()

    against(test)


def test_connections_that_say_nothing_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty of them, and none is there for long; meanwhile others are served."""
    monkeypatch.setattr(grpc_server, "_HANDSHAKE_WITHIN_MS", 200)

    async def test(running: Running) -> None:
        silent = [await asyncio.open_connection("127.0.0.1", running.port) for _ in range(50)]
        await running.create()
        for reader, writer in silent:
            while await reader.read(1_024):
                pass
            writer.close()

    against(test)


def test_connections_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """They need no key: one too many is closed as it comes, and once others have gone there is room again."""
    monkeypatch.setattr(grpc_server, "_SPARE_CALLS", 8)

    async def greeted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Speaks HTTP/2; says whether the server answers with settings of its own."""
        try:
            writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)))
            await reader.readexactly(9)
        except (asyncio.IncompleteReadError, ConnectionError):
            return False
        return True

    async def test(running: Running) -> None:
        await running.create()  # its own connection is the first of ten
        lines = [await asyncio.open_connection("127.0.0.1", running.port) for _ in range(20)]
        stays = [await greeted(*line) for line in lines]
        assert stays.count(True) == 9
        await running.create()
        for _, writer in lines:
            writer.close()
        has_room = False
        while not has_room:
            reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
            has_room = await greeted(reader, writer)
            writer.close()

    against(test, lambda: build(max_links=1))


def test_port_that_is_taken_is_told() -> None:
    """`start` raises `OSError` and leaves nothing behind."""

    async def test(running: Running) -> None:
        house = build()
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            options = GrpcOptions(port=taken.getsockname()[1])
            server = grpc_server.GrpcServer(
                options, house.door, house.entrance, house.directory, house.readiness
            )
            with pytest.raises(OSError, match="bind"):
                await server.start()
            await server.stop(1)

    against(test)
