"""A WebSocket to a Realtime server, for text: one connection, or a session that outlives its connections."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Self

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from orchestrator.clients.address import (
    Address,
    CallFailed,
    Event,
    ServerAway,
    ServerRefused,
    retry_after_s,
    unreachable,
)
from orchestrator.clients.returning import (
    GONE,
    PASSING,
    SECRET_HEADER,
    STEADY_S,
    Backoff,
    Cursor,
    Rules,
    Unconfirmed,
)
from orchestrator.ids import random_id

CONNECT_WITHIN_S = 10.0

MAX_EVENT_BYTES = 16 * 2**20


class RealtimeSocket:
    """Use as ``async with RealtimeSocket.connect(url) as socket``."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.given: Mapping[str, str] = connection.response.headers if connection.response else {}
        """What the answer to the upgrade said."""
        self.text = ""
        """The event that was received last, as it came."""

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        url: str,
        key: str | None = None,
        model: str | None = None,
        call_id: str | None = None,
        cursor: Cursor | None = None,
    ) -> AsyncIterator[Self]:
        """Opens a session, joins the one of a call, or comes back to where `cursor` stands. Raises `ServerAway`,
        `ServerUntrusted`, `ServerRefused`, `CallFailed`."""
        address = Address(url, key)
        back = {} if cursor is None else {SECRET_HEADER: cursor.secret}
        try:
            connection = await connect(
                address.socket(model, call_id, None if cursor is None else cursor.place),
                additional_headers={**address.headers, **back},
                max_size=MAX_EVENT_BYTES,
                open_timeout=CONNECT_WITHIN_S,
                proxy=None,
            )
        except InvalidStatus as error:
            response = error.response
            wait_s = retry_after_s(response.headers)
            raise ServerRefused(response.status_code, _message(response.body), wait_s) from error
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
            self.text = await self._connection.recv(decode=True)
        except ConnectionClosed as error:
            raise CallFailed(_end(error)) from error
        event: Event = json.loads(self.text)
        return event

    def abort(self) -> None:
        """Ends the connection at once, without a word and whatever was not read yet."""
        self._connection.transport.abort()

    async def events(self) -> AsyncIterator[Event]:
        """Yields what the server says, in order, until it closes the connection."""
        try:
            while True:
                yield await self.receive()
        except CallFailed:
            return


Connecting = Callable[[Cursor], AbstractAsyncContextManager[RealtimeSocket]]


class ReturningSocket:
    """A session's events whatever happens to its connections. Use as ``async with ReturningSocket.connect(url)``.

    A connection that breaks is made again, to the same session, from the event behind the last one; what was said and
    may have been lost is said again. Each event of the server comes once. A session that is gone, or one of a server
    that cannot be come back to, ends with its connection.
    """

    def __init__(self, connect: Connecting, rules: Rules) -> None:
        self._connect = connect
        self._rules = rules
        self._backoff = Backoff(rules.random)
        self._cursor = Cursor()
        self._unconfirmed = Unconfirmed()
        self._stack = AsyncExitStack()
        self._socket: RealtimeSocket | None = None
        self._opened_s = self._wait_s = 0.0
        self._broke: CallFailed | None = None
        self._returning = asyncio.Lock()
        self.returns = 0
        """How often the session was come back to."""

    @classmethod
    @asynccontextmanager
    async def connect(
        cls, url: str, key: str | None = None, model: str | None = None, rules: Rules | None = None
    ) -> AsyncIterator[Self]:
        """Opens a session. Raises `ServerAway`, `ServerUntrusted`, `ServerRefused`, `CallFailed`."""

        def connect(cursor: Cursor) -> AbstractAsyncContextManager[RealtimeSocket]:
            return RealtimeSocket.connect(url, key, model, cursor=cursor if cursor.may_return else None)

        session = cls(connect, rules or Rules())
        try:
            await session._open()
            yield session
        finally:
            await session._stack.aclose()

    async def send(self, event: Event) -> None:
        """Sends an event; an item gets an id if it has none. Raises `CallFailed` if the session has ended."""
        if event["type"] == "conversation.item.create":
            item = {"id": random_id("item"), **event["item"]}
            event = {"event_id": item["id"], **event, "item": item}
        self._unconfirmed.said(event)
        socket = await self._connected()
        try:
            await socket.send(event)
        except CallFailed as broke:
            self._lose(socket, broke)
            await self._connected()

    async def receive(self) -> Event:
        """Returns the next event. Raises `CallFailed` if the session has ended. Cancelling loses nothing."""
        while True:
            socket = await self._connected()
            try:
                event = await socket.receive()
            except CallFailed as broke:
                self._lose(socket, broke)
                continue
            if self._cursor.receive(event) and self._unconfirmed.heard(event):
                return event

    async def events(self) -> AsyncIterator[Event]:
        """Yields what the server says, in order, until the session ends."""
        try:
            while True:
                yield await self.receive()
        except CallFailed:
            return

    def _lose(self, socket: RealtimeSocket, broke: CallFailed) -> None:
        if self._socket is socket:
            self._socket, self._broke = None, broke
            if asyncio.get_running_loop().time() - self._opened_s > STEADY_S:
                self._backoff.steady()

    async def _connected(self) -> RealtimeSocket:
        """Returns the connection, when there is one again. Raises `CallFailed`: why the last one broke."""
        async with self._returning:
            if self._socket is not None:
                return self._socket
            broke = self._broke or CallFailed("the session has ended")
            if not self._cursor.may_return:
                raise broke
            self._rules.notice(f"{broke}; coming back")
            try:
                async with asyncio.timeout(self._rules.give_up_s):
                    while (socket := await self._attempt(broke)) is None:
                        pass
            except TimeoutError:
                raise broke from None
            self.returns += 1
            return socket

    async def _attempt(self, broke: CallFailed) -> RealtimeSocket | None:
        await self._stack.aclose()
        await asyncio.sleep(self._backoff.next_s(self._wait_s))
        self._wait_s = 0.0
        try:
            socket = await self._open()
            for event in self._unconfirmed.again():
                await socket.send(event)
        except asyncio.CancelledError:
            self._socket = None  # what is to be said again is said by who comes next
            raise
        except (ServerAway, CallFailed):
            self._socket = None
            return None
        except ServerRefused as refused:
            if refused.status in PASSING:
                self._wait_s = refused.retry_after_s
                return None
            raise (broke if refused.status == GONE else refused) from None
        return socket

    async def _open(self) -> RealtimeSocket:
        socket = await self._stack.enter_async_context(self._connect(self._cursor))
        self._cursor.given(socket.given)
        self._socket, self._opened_s = socket, asyncio.get_running_loop().time()
        return socket


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
