"""Server-sent events for `chorale bench resume`: a request each time, read on after the last id."""

import json
import ssl
from collections.abc import AsyncGenerator

import httpx

from orchestrator.clients.address import CallFailed, Event
from orchestrator.clients.returning import Cursor
from orchestrator.ids import event_tag

_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Reading the authorities that a client trusts takes 30 ms, each time; there is no TLS here."""


async def by_sse(port: int, cursor: Cursor) -> AsyncGenerator[tuple[Event, str], None]:
    """Reads as a browser does, with sound."""
    last = f"event_{event_tag(cursor.session_id)}_{cursor.last}"
    headers = {"chorale-session-secret": cursor.secret, "last-event-id": last}
    url = f"http://127.0.0.1:{port}/v1/sessions/{cursor.session_id}/events?sound=true"
    try:
        async with (
            httpx.AsyncClient(timeout=60, trust_env=False, verify=_NO_TLS) as client,
            client.stream("GET", url, headers=headers) as stream,
        ):
            if stream.status_code != 200:
                raise CallFailed(f"HTTP {stream.status_code}")
            async for text in _data(stream):
                event: Event = json.loads(text)
                yield event, text
    except httpx.TransportError as error:
        raise CallFailed(str(error)) from None


async def _data(stream: httpx.Response) -> AsyncGenerator[str, None]:
    """Yields what whole frames hold: a frame that was cut is none."""
    data = None
    async for line in stream.aiter_lines():
        if line.startswith("data: "):
            data = line.removeprefix("data: ")
        elif not line and data is not None:
            yield data
            data = None
