"""A WebSocket to a Realtime server, for text."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from orchestrator.clients.address import Address, CallFailed, Event, ServerAway, ServerRefused, unreachable

CONNECT_WITHIN_S = 10.0
MAX_EVENT_BYTES = 16 * 2**20


class RealtimeSocket:
    """Use as ``async with RealtimeSocket.connect(url) as socket``."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    @classmethod
    @asynccontextmanager
    async def connect(
        cls, url: str, key: str | None = None, model: str | None = None, call_id: str | None = None
    ) -> AsyncIterator[Self]:
        """Opens a session, or joins the one of a call. Raises `ServerAway`, `ServerUntrusted`, `ServerRefused`,
        `CallFailed`."""
        address = Address(url, key)
        try:
            connection = await connect(
                address.socket(model, call_id),
                additional_headers=address.headers,
                max_size=MAX_EVENT_BYTES,
                open_timeout=CONNECT_WITHIN_S,
                proxy=None,
            )
        except InvalidStatus as error:
            raise ServerRefused(error.response.status_code, _message(error.response.body)) from error
        except ConnectionRefusedError as error:
            raise ServerAway(url, "connection refused") from error
        except (OSError, TimeoutError, InvalidHandshake) as error:
            raise unreachable(url, error) from error
        async with connection:
            yield cls(connection)

    async def send(self, event: Mapping[str, Any]) -> None:
        """Sends an event. Raises `CallFailed` if the connection has ended."""
        try:
            await self._connection.send(json.dumps(event))
        except ConnectionClosed as error:
            raise CallFailed(_end(error)) from error

    async def receive(self) -> Event:
        """Returns the next event. Raises `CallFailed` if the connection has ended."""
        try:
            event: Event = json.loads(await self._connection.recv())
        except ConnectionClosed as error:
            raise CallFailed(_end(error)) from error
        return event

    async def events(self) -> AsyncIterator[Event]:
        """Yields what the server says, in order, until it closes the connection."""
        try:
            while True:
                yield await self.receive()
        except CallFailed:
            return


def _message(body: bytes | bytearray | None) -> str:
    try:
        return str(json.loads(body or b"")["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return (bytes(body or b"")).decode(errors="replace").strip()[:200] or "no reason given"


def _end(error: ConnectionClosed) -> str:
    frame = error.rcvd
    return (
        f"the server closed the connection ({frame.code} {frame.reason})" if frame else "the connection broke"
    )
