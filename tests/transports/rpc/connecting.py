"""The stock client of Connect and gRPC-Web, in front of the HTTP server of `tests.transports.running`."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from connectrpc.client import ConnectClient
from connectrpc.compat import google_protobuf_binary_codec, google_protobuf_json_codec
from connectrpc.method import IdempotencyLevel, MethodInfo, StreamType
from connectrpc.protocol import ProtocolType
from google.protobuf.message import Message
from pyqwest import Client, HTTPTransport

from orchestrator.transports.rpc.v1 import chorale_pb2 as pb

Reply = TypeVar("Reply", bound=Message)

WAYS = {
    "connect": (ProtocolType.CONNECT, google_protobuf_binary_codec()),
    "connect with JSON": (ProtocolType.CONNECT, google_protobuf_json_codec()),
    "gRPC-Web": (ProtocolType.GRPC_WEB, google_protobuf_binary_codec()),
}
"""How a client may speak on the HTTP port."""


class Caller:
    """Calls the methods of the service, one way."""

    def __init__(
        self, client: ConnectClient, key: str | None, headers: Mapping[str, str] | None = None
    ) -> None:
        self._client = client
        self._headers = {**({"authorization": f"Bearer {key}"} if key else {}), **(headers or {})}

    async def create(self, **fields: str) -> pb.SessionOpened:
        return await self._ask("Create", pb.CreateRequest(**fields), pb.SessionOpened)

    async def get(self, session_id: str, secret: str) -> pb.GetReply:
        return await self._ask("Get", pb.GetRequest(session_id=session_id, secret=secret), pb.GetReply)

    async def end(self, opened: pb.SessionOpened) -> None:
        asked = pb.EndRequest(session_id=opened.session_id, secret=opened.secret)
        await self._ask("End", asked, pb.EndReply)

    async def send(self, opened: pb.SessionOpened, events: Sequence[str], sound: bytes = b"") -> pb.SendReply:
        asked = pb.SendRequest(session_id=opened.session_id, secret=opened.secret, events=events, sound=sound)
        return await self._ask("Send", asked, pb.SendReply)

    def watch(
        self, opened: pb.SessionOpened, after: int | None = None, speech: bool = False
    ) -> AsyncIterator[pb.ServerMessage]:
        asked = pb.WatchRequest(
            session_id=opened.session_id, secret=opened.secret, after=after, speech=speech
        )
        method = _method("Watch", pb.WatchRequest, pb.ServerMessage, StreamType.SERVER_STREAM)
        return self._client.execute_server_stream(request=asked, method=method, headers=self._headers)

    def converse(self, *messages: pb.ClientMessage) -> AsyncIterator[pb.ServerMessage]:
        """Says all of it, and returns what is answered."""

        async def said() -> AsyncIterator[pb.ClientMessage]:
            for message in messages:
                yield message

        method = _method("Converse", pb.ClientMessage, pb.ServerMessage, StreamType.BIDI_STREAM)
        return self._client.execute_bidi_stream(request=said(), method=method, headers=self._headers)

    async def _ask(self, name: str, asked: Message, answered: type[Reply]) -> Reply:
        method: MethodInfo[Any, Reply] = _method(name, type(asked), answered, StreamType.UNARY)
        return await self._client.execute_unary(request=asked, method=method, headers=self._headers)


def _method(name: str, asked: type[Any], answered: type[Any], stream: StreamType) -> MethodInfo[Any, Any]:
    return MethodInfo(
        name=name,
        service_name="chorale.v1.Sessions",
        input=asked,
        output=answered,
        idempotency_level=IdempotencyLevel.UNKNOWN,
        stream_type=stream,
    )


@asynccontextmanager
async def calling(port: int, way: str, key: str | None = None) -> AsyncIterator[Caller]:
    """A client; `way` is one of `WAYS`."""
    protocol, codec = WAYS[way]
    async with (
        HTTPTransport() as transport,
        ConnectClient(
            f"http://127.0.0.1:{port}",
            protocol=protocol,
            codec=codec,
            send_compression=None,
            http_client=Client(transport),
        ) as client,
    ):
        yield Caller(client, key)
