"""A real server on a free port around fake sessions, in the event loop of the test."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from orchestrator.clock import MonotonicClock
from orchestrator.observability.instrument import Requests
from orchestrator.sessions.links import SessionRequest
from orchestrator.transports.auth import Gate, KeyRing, SecretBook
from orchestrator.transports.entrance import Entrance
from orchestrator.transports.http import make_app
from orchestrator.transports.openai_door import OpenAi
from orchestrator.transports.pace import Rate
from orchestrator.transports.page import read_page
from orchestrator.transports.proxies import Proxies
from orchestrator.transports.rejoining import Back
from orchestrator.transports.routes import Doors, Metrics, ServiceCondition, WorkerCondition
from orchestrator.transports.rpc.door import RpcDoor
from orchestrator.transports.server import Server, ServerOptions, listen, make_server
from orchestrator.transports.sessions_http import EventsDoor
from orchestrator.transports.sse_link import StreamSettings
from orchestrator.transports.websocket import WebSocketDoor
from tests.transports.fake_sessions import DEFAULTS, FakeDirectory, FakeSession


class FakeCalls:
    """A WebRTC door that answers every offer with the same words."""

    def __init__(self, directory: FakeDirectory) -> None:
        self.directory = directory
        self.offers: list[str] = []
        self.error: Exception | None = None
        self.returned: list[tuple[FakeSession, int | None]] = []

    async def answer(
        self, offer_sdp: str, request: SessionRequest, back: Back | None = None
    ) -> tuple[str, str]:
        if self.error is not None:
            raise self.error
        self.offers.append(offer_sdp)
        call_id, session = self.directory.open_call(request, None if back is None else back.session)
        if back is not None:
            self.returned.append((session, back.after))
        return call_id, "v=0\r\nanswer\r\n"

    def session_of(self, call_id: str) -> FakeSession | None:
        return self.directory.calls.get(call_id)

    async def hang_up(self, call_id: str, tenant: str) -> None:
        self.directory.end(self.directory.by_call(call_id, tenant), "hung up")
        del self.directory.calls[call_id]


@dataclass
class FakeReadiness:
    workers: list[WorkerCondition] = field(default_factory=lambda: [WorkerCondition("asr", "ready", True)])
    served: ServiceCondition = field(default_factory=ServiceCondition)

    def conditions(self) -> Sequence[WorkerCondition]:
        return self.workers

    def service(self) -> ServiceCondition:
        return self.served


@dataclass
class House:
    """Everything around the application under test, open to the test."""

    directory: FakeDirectory
    calls: FakeCalls
    readiness: FakeReadiness
    entrance: Entrance
    door: WebSocketDoor
    events: EventsDoor
    app: ASGIApp
    streams: RpcDoor

    def client(self, **headers: str) -> httpx.AsyncClient:
        """A client that needs no socket."""
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url="http://localhost:8080", headers=headers)


def build(
    ring: KeyRing | None = None,
    *,
    origins: tuple[str, ...] = ("loopback",),
    hosts: tuple[str, ...] = (),
    capacity: int = 100,
    max_links: int = 100,
    max_secrets: int = 100,
    page: Path | None = None,
    metrics: Metrics | None = None,
    requests: Requests | None = None,
    proxies: Proxies | None = None,
    rate: Rate | None = None,
    streams: StreamSettings | None = None,
    openai: OpenAi | None = None,
) -> House:
    """Makes a house; without a ring everyone may come in."""
    clock = MonotonicClock()
    directory = FakeDirectory(capacity)
    calls, readiness = FakeCalls(directory), FakeReadiness()
    entrance = Entrance(Gate(ring, SecretBook(max_secrets)), origins, hosts, clock)
    door = WebSocketDoor(directory, entrance, max_links, rate)
    rpc = RpcDoor(max_links, rate)
    events = EventsDoor(directory, entrance, max_links, streams, rate)
    doors = Doors(
        entrance,
        door,
        calls,
        readiness,
        DEFAULTS,
        3_600,
        clock,
        metrics,
        requests,
        directory,
        proxies=proxies,
        rpc=rpc,
        events=events,
        openai=openai,
    )
    app = make_app(doors, read_page(page) if page else {})
    return House(directory, calls, readiness, entrance, door, events, app, rpc)


@dataclass
class Running:
    """A house that listens."""

    house: House
    server: Server
    port: int

    def connect(
        self,
        query: str = "?model=m",
        key: str | None = None,
        subprotocols: Sequence[str] = (),
        name: str = "127.0.0.1",
        **headers: str,
    ) -> connect:
        """A WebSocket client; use with `async with`. `name` is what it calls the server."""
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        return connect(
            f"ws://{name}:{self.port}/v1/realtime{query}",
            host="127.0.0.1",
            port=self.port,
            additional_headers=headers,
            subprotocols=[Subprotocol(name) for name in subprotocols] or None,
            max_size=2**20,
            proxy=None,
        )


@contextlib.asynccontextmanager
async def serving(house: House, options: ServerOptions | None = None) -> AsyncIterator[Running]:
    """Serves until the block is left; then every link must be gone."""
    server = make_server(house.app, options or ServerOptions())
    sockets = listen("127.0.0.1", 0)
    task = asyncio.create_task(server.serve(sockets))
    try:
        await server.listening.wait()
        yield Running(house, server, sockets[0].getsockname()[1])
    finally:
        server.should_exit = True
        await task
    async with asyncio.timeout(120):
        await until(lambda: house.door.links == house.streams.links == house.events.links == 0)


def against(
    test: Callable[[Running], Awaitable[None]],
    house: Callable[[], House] = build,
    options: ServerOptions | None = None,
) -> None:
    """Runs `test` with a server."""

    async def main() -> None:
        async with asyncio.timeout(120), serving(house(), options) as running:
            await test(running)

    asyncio.run(main())


async def heard(link: ClientConnection) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(await link.recv(decode=True))
    return event


async def say(link: ClientConnection, kind: str, **fields: object) -> None:
    await link.send(json.dumps({"type": kind, **fields}))


async def open_session(link: ClientConnection, running: Running) -> FakeSession:
    """Waits for ``session.created`` and returns the newest session."""
    assert (await heard(link))["type"] == "session.created"
    return running.house.directory.sessions[-1]


async def refusal(running: Running, **options: Any) -> tuple[int, dict[str, Any]]:
    """Connects, is refused before the upgrade, and returns status and error."""
    with pytest.raises(InvalidStatus) as caught:
        async with running.connect(**options):
            pass
    response = caught.value.response
    assert response.headers["Content-Type"] == "application/json"
    error: dict[str, Any] = json.loads(response.body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return response.status_code, error


async def closed(link: ClientConnection) -> tuple[int, str]:
    """Reads until the server closes; returns code and reason."""
    try:
        while True:
            await link.recv()
    except ConnectionClosed as end:
        return (end.rcvd.code, end.rcvd.reason) if end.rcvd else (1006, "")


async def until(condition: Callable[[], bool]) -> None:
    """Returns once something is true; the test's own timeout ends the waiting."""
    while not condition():  # noqa: ASYNC110 - what is waited for has no event of its own
        await asyncio.sleep(0.002)


def item(text: str) -> dict[str, object]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
