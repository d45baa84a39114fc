"""Clients for `chorale bench doors`: each asks for a reply and says how long its first word took."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import grpc
from connectrpc.client import ConnectClient
from connectrpc.compat import google_protobuf_binary_codec
from connectrpc.method import IdempotencyLevel, MethodInfo, StreamType
from connectrpc.protocol import ProtocolType
from pyqwest import Client as HttpClient
from pyqwest import HTTPTransport

from benchmarks.resume_server import Ports
from orchestrator.clients.text_socket import RealtimeSocket
from orchestrator.clock import US_PER_S
from orchestrator.ids import random_id
from orchestrator.scheduling.job import Job, Tier
from orchestrator.scheduling.work import Failed, PromptMessage, Replied, Reply, ReplyText, Report
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from orchestrator.transports.rpc.v1 import chorale_pb2_grpc as pb_grpc

TEXT = {"type": "realtime", "output_modalities": ["text"]}
ASK = json.dumps({"type": "response.create"})
_WITHIN_US = 60 * US_PER_S


class Client(Protocol):
    """One session, through one door."""

    async def ask(self) -> float:
        """Asks for a reply; returns, once it is complete, how many seconds its first word took."""
        ...


Door = Callable[[Ports], AbstractAsyncContextManager[Client]]


class _Pool:
    """No door: the dispatcher itself, as sessions use it."""

    def __init__(self, ports: Ports) -> None:
        self._dispatcher = ports.dispatcher
        self._clock = ports.clock
        self._id = random_id("direct")
        self._first_s: asyncio.Future[float] | None = None
        self._done: asyncio.Future[None] | None = None
        self._dispatcher.listen(self._id, self._deliver)

    async def ask(self) -> float:
        loop = asyncio.get_running_loop()
        first_s: asyncio.Future[float] = loop.create_future()
        done: asyncio.Future[None] = loop.create_future()
        self._first_s, self._done = first_s, done
        now_us = self._clock.now_us()
        work = Reply((PromptMessage("user", "hello"),))
        began_s = time.perf_counter()
        self._dispatcher.submit(
            Job(random_id("job"), self._id, work, Tier.GOLD, 2, now_us, now_us + _WITHIN_US)
        )
        await done
        return await first_s - began_s

    def close(self) -> None:
        self._dispatcher.drop_session(self._id)

    def _deliver(self, report: Report) -> None:
        assert self._first_s is not None
        assert self._done is not None
        if isinstance(report, ReplyText) and not self._first_s.done():
            self._first_s.set_result(time.perf_counter())
        elif isinstance(report, Replied):
            self._done.set_result(None)
        elif isinstance(report, Failed):
            self._done.set_exception(RuntimeError(report.message))


class _Session:
    """A session whose events come one by one."""

    def __init__(self, ask: Callable[[], Any], events: AsyncIterator[dict[str, Any]]) -> None:
        self._ask = ask
        self._events = events

    async def ask(self) -> float:
        began_s = time.perf_counter()
        first_s = 0.0
        asking = asyncio.ensure_future(self._ask())
        async for event in self._events:
            if event["type"] == "response.output_text.delta" and not first_s:
                first_s = time.perf_counter() - began_s
            elif event["type"] == "response.done":
                break
        await asking
        return first_s


@asynccontextmanager
async def directly(ports: Ports) -> AsyncGenerator[Client, None]:
    client = _Pool(ports)
    try:
        yield client
    finally:
        client.close()


@asynccontextmanager
async def by_websocket(ports: Ports) -> AsyncGenerator[Client, None]:
    async with RealtimeSocket.connect(f"http://127.0.0.1:{ports.http}") as socket:
        await socket.send({"type": "session.update", "session": TEXT})

        async def events() -> AsyncIterator[dict[str, Any]]:
            while True:
                yield await socket.receive()

        yield _Session(lambda: socket.send({"type": "response.create"}), events())


@asynccontextmanager
async def by_grpc(ports: Ports) -> AsyncGenerator[Client, None]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{ports.grpc}") as channel:
        stub: Any = pb_grpc.SessionsStub(channel)  # type: ignore[no-untyped-call]  # generated
        call = stub.Converse()
        await call.write(pb.ClientMessage(open=pb.Open(session=json.dumps(TEXT))))

        async def events() -> AsyncIterator[dict[str, Any]]:
            while True:
                message = await call.read()
                if message.HasField("event"):
                    yield json.loads(message.event.json)

        try:
            yield _Session(lambda: call.write(pb.ClientMessage(event=pb.Event(json=ASK))), events())
        finally:
            call.cancel()


def by_http(protocol: ProtocolType) -> Door:
    """Returns the door of gRPC-Web or of Connect: what a browser does."""

    @asynccontextmanager
    async def door(ports: Ports) -> AsyncGenerator[Client, None]:
        async with (
            HTTPTransport() as transport,
            ConnectClient(
                f"http://127.0.0.1:{ports.http}",
                protocol=protocol,
                codec=google_protobuf_binary_codec(),
                send_compression=None,
                http_client=HttpClient(transport),
            ) as client,
        ):
            create = pb.CreateRequest(session=json.dumps(TEXT))
            opened = await client.execute_unary(
                request=create, method=_method("Create", pb.CreateRequest, pb.SessionOpened)
            )
            named: dict[str, Any] = {"session_id": opened.session_id, "secret": opened.secret}
            watch = _method("Watch", pb.WatchRequest, pb.ServerMessage, StreamType.SERVER_STREAM)
            messages: Any = client.execute_server_stream(request=pb.WatchRequest(**named), method=watch)

            async def events() -> AsyncIterator[dict[str, Any]]:
                async for message in messages:
                    if message.HasField("event"):
                        yield json.loads(message.event.json)

            send = _method("Send", pb.SendRequest, pb.SendReply)
            asked = pb.SendRequest(events=[ASK], **named)
            try:
                yield _Session(lambda: client.execute_unary(request=asked, method=send), events())
            finally:
                await messages.aclose()

    return door


def _method(
    name: str, asked: type[Any], answered: type[Any], stream: StreamType = StreamType.UNARY
) -> MethodInfo[Any, Any]:
    return MethodInfo(
        name=name,
        service_name="chorale.v1.Sessions",
        input=asked,
        output=answered,
        idempotency_level=IdempotencyLevel.UNKNOWN,
        stream_type=stream,
    )


DIRECT = "none: the dispatcher"
DOORS: dict[str, Door] = {
    DIRECT: directly,
    "websocket": by_websocket,
    "grpc": by_grpc,
    "grpc-web": by_http(ProtocolType.GRPC_WEB),
    "connect": by_http(ProtocolType.CONNECT),
}
