"""A listener on the line between a client and the server: passes every byte on unchanged and reads along.

What the server says is followed by the strict client and read with the published types, so that a client's own
leniency hides nothing.
"""

import asyncio
import json
import ssl
from contextlib import suppress
from typing import Any

from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter, ValidationError

from tests.sessions.strict_client import StrictClient
from tests.sessions.strict_shapes import Violation
from tests.third_party.line import Direction

TOLERATED = frozenset({"response_cancel_not_active", "conversation_already_has_active_response"})
"""Errors that each of the clients expects, since what it says crosses what the server says."""

_PUBLISHED: TypeAdapter[RealtimeServerEvent] = TypeAdapter(RealtimeServerEvent)
_CHUNK_BYTES = 65_536
_SHOWN_CHARACTERS = 300

Shown = dict[str, Any]


class Conversation:
    """What was said on one connection, and what was wrong with the server's part."""

    def __init__(self, allowed: frozenset[str] = frozenset()) -> None:
        self.asked: list[Shown] = []
        self.told: list[Shown] = []
        self.faults: list[str] = []
        self.goes_on = False
        """Whether the client came back to a session: what comes begins in the middle."""
        self._allowed = allowed | TOLERATED
        self._strict: StrictClient | None = StrictClient(on_the_wire=True)

    def hear_client(self, message: str) -> None:
        self.asked.append(json.loads(message))

    def hear_server(self, message: str) -> None:
        event = json.loads(message)
        self.told.append(event)
        if event["type"] == "error" and event["error"]["code"] not in self._allowed:
            self.faults.append(f"error: {event['error']}")
        try:
            _PUBLISHED.validate_json(message, strict=True)
        except ValidationError as why:
            self.faults.append(f"{event['type']} is not as published: {str(why)[:_SHOWN_CHARACTERS]}")
        if self._strict is not None and not self.goes_on:
            try:
                self._strict.feed(event)
            except Violation as why:
                self.faults.append(f"strict client: {str(why)[:_SHOWN_CHARACTERS]}")
                self._strict = None  # it has lost the thread


class Tap:
    """Listens on a port of its own for one server. `tls` is for clients that connect in no other way."""

    def __init__(
        self, server_port: int, allowed: frozenset[str] = frozenset(), tls: ssl.SSLContext | None = None
    ) -> None:
        self.conversations: list[Conversation] = []
        self._server_port = server_port
        self._allowed = allowed
        self._tls = tls
        self._listening: asyncio.Server | None = None
        self._lines: set[asyncio.Task[None]] = set()

    async def open(self) -> int:
        """Returns the port."""
        self._listening = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._tls)
        port: int = self._listening.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.close()
        for line in self._lines:
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)

    @property
    def faults(self) -> list[str]:
        return [fault for conversation in self.conversations for fault in conversation.faults]

    def count(self, type: str) -> int:
        """How often the server said this."""
        return sum(event["type"] == type for talk in self.conversations for event in talk.told)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._lines.add(task)
        try:
            try:
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._server_port)
            except OSError:
                writer.close()
                return
            conversation = Conversation(self._allowed)
            self.conversations.append(conversation)
            asks, answers = Direction(from_server=False), Direction(from_server=True)

            def from_client(data: bytes) -> None:
                asks.settle(answers.head)
                for message in asks.feed(data):
                    conversation.hear_client(message)
                conversation.goes_on = any("session_id=" in line for line in asks.head[:1])

            def from_server(data: bytes) -> None:
                for message in answers.feed(data):
                    conversation.hear_server(message)

            async with asyncio.TaskGroup() as both:
                both.create_task(_pass_on(reader, far_writer, from_client))
                both.create_task(_pass_on(far_reader, writer, from_server))
        finally:
            self._lines.discard(task)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hear: Any) -> None:
    """Carries one direction until it ends."""
    try:
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            hear(data)
            await writer.drain()
    except (ConnectionError, ssl.SSLError):
        pass  # whoever hung up has its reasons; the other side is told so
    finally:
        with suppress(ConnectionError, ssl.SSLError):
            writer.close()
