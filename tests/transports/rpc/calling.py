"""A real gRPC server on a free port around fake sessions, and a channel to it, in the event loop of the test."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self

import grpc
import pytest

from orchestrator.clock import MonotonicClock
from orchestrator.observability.instrument import RequestRecord
from orchestrator.transports.auth import Gate, KeyRing, SecretBook
from orchestrator.transports.entrance import Entrance
from orchestrator.transports.pace import Rate
from orchestrator.transports.proxies import Proxies
from orchestrator.transports.rpc.door import GrpcOptions, RpcDoor
from orchestrator.transports.rpc.grpc_server import GrpcServer
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from orchestrator.transports.rpc.v1 import chorale_pb2_grpc as pb_grpc
from tests.transports.fake_sessions import FakeDirectory, FakeSession
from tests.transports.running import FakeReadiness


@dataclass
class Heard:
    """Takes what telemetry would be told."""

    records: list[RequestRecord] = field(default_factory=list)
    began_count: int = 0

    def began(self, method: str, scheme: str) -> None:
        self.began_count += 1

    def request(self, record: RequestRecord) -> None:
        self.records.append(record)


@dataclass
class House:
    """Everything around the server, open to the test."""

    directory: FakeDirectory
    readiness: FakeReadiness
    entrance: Entrance
    door: RpcDoor
    requests: Heard
    server: GrpcServer


@dataclass
class Running:
    """A house that listens, and a channel to it."""

    house: House
    port: int
    channel: grpc.aio.Channel
    # The generated stub has no types: it is called with messages and gives calls.
    stub: Any

    @property
    def session(self) -> FakeSession:
        """The newest session."""
        return self.house.directory.sessions[-1]

    async def create(self) -> pb.SessionOpened:
        """Opens a session that nobody is linked to."""
        opened: pb.SessionOpened = await self.stub.Create(pb.CreateRequest(model="m"))
        return opened

    def converse(self, **metadata: str) -> "Conversation":
        """Begins a stream."""
        return Conversation(self.stub.Converse(metadata=tuple(metadata.items())))


class Conversation:
    """A client's end of a Converse stream."""

    def __init__(self, call: Any) -> None:
        self.call = call

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.call.cancel()

    async def open(self, **fields: str) -> pb.SessionOpened:
        """Opens a session, and reads what is answered."""
        await self.call.write(pb.ClientMessage(open=pb.Open(**fields)))
        return await self.opened()

    async def join(self, opened: pb.SessionOpened, after: int | None = None) -> pb.SessionOpened:
        join = pb.Join(session_id=opened.session_id, secret=opened.secret, after=after)
        await self.call.write(pb.ClientMessage(join=join))
        return await self.opened()

    async def opened(self) -> pb.SessionOpened:
        """Reads the first two messages: the session, and its `session.created`."""
        first = await self.read()
        assert (first.WhichOneof("message"), first.number) == ("opened", 0)
        created = await self.read()
        assert (json.loads(created.event.json)["type"], created.number) == ("session.created", 0)
        return first.opened

    async def say(self, kind: str, **fields: object) -> None:
        event = pb.Event(json=json.dumps({"type": kind, **fields}))
        await self.call.write(pb.ClientMessage(event=event))

    async def sound(self, data: bytes) -> None:
        await self.call.write(pb.ClientMessage(sound=pb.Sound(data=data)))

    async def read(self) -> pb.ServerMessage:
        message = await self.call.read()
        assert message is not grpc.aio.EOF, "the stream has ended"
        assert isinstance(message, pb.ServerMessage)
        return message

    async def event(self) -> dict[str, Any]:
        message = await self.read()
        assert message.WhichOneof("message") == "event"
        event: dict[str, Any] = json.loads(message.event.json)
        return event


def build(
    ring: KeyRing | None = None,
    *,
    max_links: int = 100,
    capacity: int = 100,
    proxies: tuple[str, ...] = (),
    rate: Rate | None = None,
) -> House:
    """Makes a house; without a ring everyone may come in."""
    clock = MonotonicClock()
    directory, readiness = FakeDirectory(capacity), FakeReadiness()
    entrance = Entrance(Gate(ring, SecretBook(100)), ("loopback",), (), clock)
    door, requests = RpcDoor(max_links, rate), Heard()
    server = GrpcServer(GrpcOptions(), door, entrance, directory, readiness, requests, Proxies(proxies))
    return House(directory, readiness, entrance, door, requests, server)


@contextlib.asynccontextmanager
async def serving(house: House) -> AsyncIterator[Running]:
    """Serves until the block is left; then every link must be gone."""
    port = await house.server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = pb_grpc.SessionsStub(channel)  # type: ignore[no-untyped-call]  # generated
            yield Running(house, port, channel, stub)
    finally:
        await house.server.stop(5)
    assert house.door.links == 0


def against(test: Callable[[Running], Awaitable[None]], house: Callable[[], House] = build) -> None:
    """Runs `test` with a server."""

    async def main() -> None:
        async with asyncio.timeout(120), serving(house()) as running:
            await test(running)

    asyncio.run(main())


async def refused(call: Awaitable[object]) -> tuple[str, str, dict[str, str]]:
    """Waits for a call that is refused; returns its status, text and metadata."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return told(caught.value)


def told(error: grpc.aio.AioRpcError) -> tuple[str, str, dict[str, str]]:
    trailers = {name: value for name, value in error.trailing_metadata() or () if isinstance(value, str)}
    return error.code().name, error.details() or "", trailers
