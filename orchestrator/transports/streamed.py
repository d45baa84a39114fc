"""Answers that take a while: given up when the client leaves, begun once there is something to say."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import ExitStack
from typing import Any, TypeVar

from fastapi import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from orchestrator.errors import ChoraleError
from orchestrator.transports.refusals import Refusal, refuse

log = logging.getLogger(__name__)

T = TypeVar("T")

UNBUFFERED = {"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}
"""A proxy in between passes every piece on as it comes."""


class ClientLeft(Refusal):
    """Nobody is there to be answered."""

    def __init__(self) -> None:
        super().__init__(499, "client_left", "The client closed the connection.")


async def attended(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Returns what `work` returns; cancels it and raises `ClientLeft` as soon as the client closes the connection.
    Only once the request's body has been read."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_left(request.receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientLeft
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def begun(pieces: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Waits for the first piece, so that what goes wrong before it can still be answered with a status; returns all.
    Raises what `pieces` raises before it yields."""
    try:
        first = [await anext(pieces)]
    except StopAsyncIteration:
        first = []

    async def rest() -> AsyncGenerator[T, None]:
        try:
            for piece in first:
                yield piece
            async for piece in pieces:
                yield piece
        finally:
            await pieces.aclose()

    return rest()


class Streamed(StreamingResponse):
    """A body in pieces. `held` is closed when the last has been sent, or the client has left."""

    def __init__(
        self,
        pieces: AsyncGenerator[bytes, None],
        held: ExitStack,
        media_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(pieces, headers={**UNBUFFERED, **(headers or {})}, media_type=media_type)
        self._pieces = pieces
        self._held = held

    async def stream_response(self, send: Send) -> None:
        """Sends all pieces. Where they break off the body never ends, and the server closes the connection: a client
        that has half of an answer knows it."""
        try:
            await super().stream_response(send)
        except ChoraleError as error:
            log.warning("an answer broke off: %s", error)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._held:
            try:
                await super().__call__(scope, receive, send)
            finally:
                await self._pieces.aclose()


class EventStream(Streamed):
    """Server-sent events that hold JSON, ended by ``[DONE]``; an error ends them too, as the last event."""

    def __init__(self, messages: AsyncGenerator[bytes, None], held: ExitStack) -> None:
        super().__init__(_events(messages), held, "text/event-stream")


async def _events(messages: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    try:
        async for message in messages:
            yield b"data: " + message + b"\n\n"
        yield b"data: [DONE]\n\n"
    except ChoraleError as error:
        yield b"data: " + bytes(refuse(error).body) + b"\n\n"
    finally:
        await messages.aclose()
