"""Servers that are reached over HTTPS, with a certificate of their own: by calls and by sockets alike."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from orchestrator.clients.address import ServerRefused, ServerUntrusted
from orchestrator.clients.call import RealtimeCall
from orchestrator.clients.text_socket import RealtimeSocket
from tests.third_party.certificate import self_signed

REFUSAL = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
WITHIN_S = 60.0


@asynccontextmanager
async def refusing(context: ssl.SSLContext) -> AsyncIterator[str]:
    """A server that has a certificate and lets nobody in: who hears its 403 has believed the certificate."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        await reader.readexactly(int(length[1]) if length else 0)
        writer.write(REFUSAL)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def call(url: str) -> None:
    """Calls, as `chorale talk` does."""
    async with RealtimeCall.connect(url, "sk-1", {"type": "realtime"}):
        raise AssertionError("nobody is let in")


async def connect(url: str) -> None:
    """Connects, as `chorale chat` does."""
    async with RealtimeSocket.connect(url, "sk-1"):
        raise AssertionError("nobody is let in")


def reach(client: Callable[[str], Awaitable[None]], context: ssl.SSLContext) -> None:
    async def main() -> None:
        async with refusing(context) as url, asyncio.timeout(WITHIN_S):
            await client(url)

    asyncio.run(main())


@pytest.mark.parametrize("client", [call, connect])
def test_a_certificate_that_nobody_vouches_for_is_named_as_the_reason(
    client: Callable[[str], Awaitable[None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not that no server answers: one does. And how to believe it."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    _, context = self_signed(tmp_path)
    with pytest.raises(ServerUntrusted, match=r"self-signed certificate.*SSL_CERT_FILE"):
        reach(client, context)


@pytest.mark.parametrize("client", [call, connect])
def test_a_certificate_of_ones_own_is_believed(
    client: Callable[[str], Awaitable[None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where SSL_CERT_FILE names it."""
    trusted, context = self_signed(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    with pytest.raises(ServerRefused, match="403"):
        reach(client, context)
