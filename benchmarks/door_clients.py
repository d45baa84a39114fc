"""Clients for `chorale bench doors`: each asks for a reply and says how long its first word took.

``python -m benchmarks.door_clients`` is a process of them, so that what a client costs is not in the server's way.
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple, Protocol

import grpc
import uvloop
from connectrpc.client import ConnectClient
from connectrpc.compat import google_protobuf_binary_codec
from connectrpc.method import IdempotencyLevel, MethodInfo, StreamType
from connectrpc.protocol import ProtocolType
from pyqwest import Client as HttpClient
from pyqwest import HTTPTransport, HTTPVersion

from orchestrator.clients.text_socket import RealtimeSocket
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from orchestrator.transports.rpc.v1 import chorale_pb2_grpc as pb_grpc

TEXT = {"type": "realtime", "output_modalities": ["text"]}
ASK = json.dumps({"type": "response.create"})
_CHAT = json.dumps(
    {"model": "scripted", "messages": [{"role": "user", "content": "hello"}], "stream": True}
).encode()


class Place(NamedTuple):
    """Where the doors are. `is_http2`: HTTP/2 is spoken where gRPC is, as nginx does, and requests go there."""

    http: int
    grpc: int
    is_http2: bool

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.grpc if self.is_http2 else self.http}"

    def transport(self) -> HTTPTransport:
        """Returns what requests are sent by."""
        return HTTPTransport(http_version=HTTPVersion.HTTP2 if self.is_http2 else HTTPVersion.HTTP1)


class Client(Protocol):
    """One session, through one door."""

    async def ask(self) -> float:
        """Asks for a reply; returns, once it is complete, how many seconds its first word took."""
        ...


Door = Callable[[Place], AbstractAsyncContextManager[Client]]


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
async def by_websocket(place: Place) -> AsyncGenerator[Client, None]:
    async with RealtimeSocket.connect(f"http://127.0.0.1:{place.http}") as socket:
        await socket.send({"type": "session.update", "session": TEXT})

        async def events() -> AsyncIterator[dict[str, Any]]:
            while True:
                yield await socket.receive()

        yield _Session(lambda: socket.send({"type": "response.create"}), events())


@asynccontextmanager
async def by_grpc(place: Place) -> AsyncGenerator[Client, None]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{place.grpc}") as channel:
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
    async def door(place: Place) -> AsyncGenerator[Client, None]:
        async with (
            place.transport() as transport,
            ConnectClient(
                place.url,
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
            to_it = {"chorale-session-id": opened.session_id}
            watch = _method("Watch", pb.WatchRequest, pb.ServerMessage, StreamType.SERVER_STREAM)
            messages: Any = client.execute_server_stream(
                request=pb.WatchRequest(**named), method=watch, headers=to_it
            )

            async def events() -> AsyncIterator[dict[str, Any]]:
                async for message in messages:
                    if message.HasField("event"):
                        yield json.loads(message.event.json)

            send = _method("Send", pb.SendRequest, pb.SendReply)
            asked = pb.SendRequest(events=[ASK], **named)
            try:
                yield _Session(
                    lambda: client.execute_unary(request=asked, method=send, headers=to_it), events()
                )
            finally:
                await messages.aclose()

    return door


@asynccontextmanager
async def by_sse(place: Place) -> AsyncGenerator[Client, None]:
    json_body = {"content-type": "application/json"}
    async with place.transport() as transport:
        client = HttpClient(transport)
        sessions = f"{place.url}/v1/sessions"
        opened = await client.post(sessions, json_body, json.dumps({"session": TEXT}).encode())
        session = json.loads(opened.content)
        secret = {"chorale-session-secret": session["secret"]}
        events = f"{sessions}/{session['id']}/events"
        streaming: Any = client.stream("GET", events, secret)  # its stub says otherwise
        async with streaming as answer:
            yield _Session(
                lambda: client.post(events, {**json_body, **secret}, ASK.encode()), _data(answer.content)
            )


class _Chat:
    """A request for each reply; there is no session."""

    def __init__(self, client: HttpClient, url: str) -> None:
        self._client = client
        self._url = url

    async def ask(self) -> float:
        began_s = time.perf_counter()
        first_s = 0.0
        headers = {"content-type": "application/json"}
        streaming: Any = self._client.stream("POST", self._url, headers, _CHAT)  # its stub says otherwise
        async with streaming as answer:
            async for chunk in _data(answer.content):
                if not first_s and chunk["choices"][0]["delta"].get("content"):
                    first_s = time.perf_counter() - began_s
        return first_s


@asynccontextmanager
async def by_chat(place: Place) -> AsyncGenerator[Client, None]:
    async with place.transport() as transport:
        yield _Chat(HttpClient(transport), f"{place.url}/v1/chat/completions")


async def _data(content: AsyncIterator[Any]) -> AsyncIterator[dict[str, Any]]:
    """Yields what server-sent events hold, to the end or to ``[DONE]``."""
    rest = b""
    async for piece in content:
        *lines, rest = (rest + bytes(piece)).split(b"\n")
        for line in lines:
            if line.startswith(b"data: {"):
                event: dict[str, Any] = json.loads(line[6:])
                yield event


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


DOORS: dict[str, Door] = {
    "websocket": by_websocket,
    "sse": by_sse,
    "grpc": by_grpc,
    "grpc-web": by_http(ProtocolType.GRPC_WEB),
    "connect": by_http(ProtocolType.CONNECT),
    "chat": by_chat,
}


class Talk(NamedTuple):
    """How many clients ask how often, each after a pause of `pause_s` on average, begun somewhere in a pause."""

    clients: int
    asks: int
    pause_s: float
    seed: int = 0


async def talk(clients: list[Client], plan: Talk) -> list[float]:
    """Returns the seconds to the first word of every reply."""
    took: list[float] = []

    async def one(client: Client, chance: random.Random) -> None:
        for _ in range(plan.asks):
            await asyncio.sleep(chance.uniform(0, 2 * plan.pause_s))
            took.append(await client.ask())

    chances = (random.Random(plan.seed + number) for number in range(len(clients)))
    await asyncio.gather(*map(one, clients, chances))
    return took


async def _through(door: str, place: Place, plan: Talk) -> list[float]:
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(DOORS[door](place)) for _ in range(plan.clients)]
        await talk(
            clients[:1], plan._replace(asks=1, pause_s=0)
        )  # what is made with the first request is there
        return await talk(clients, plan)


def main(door: str, given: str) -> None:
    """Prints the times of clients at one door. `given`: the place and the plan, as JSON lists."""
    place, plan = json.loads(given)
    print(json.dumps(uvloop.run(_through(door, Place(*place), Talk(*plan)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
