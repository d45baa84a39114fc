"""gRPC, gRPC-Web and Connect for `chorale bench resume`, by their stock clients: a connection each time, and what came
as events of the protocol, so that it can be compared with what a WebSocket was sent.

gRPC-Web and Connect are spoken over HTTP/1.1, as the server itself does, and over HTTP/2, as nginx does.
"""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Callable
from typing import Any

import grpc
from connectrpc.client import ConnectClient
from connectrpc.compat import google_protobuf_binary_codec
from connectrpc.errors import ConnectError
from connectrpc.method import IdempotencyLevel, MethodInfo, StreamType
from connectrpc.protocol import ProtocolType
from pyqwest import Client, HTTPTransport, HTTPVersion

from orchestrator.clients.address import CallFailed, Event
from orchestrator.clients.returning import Cursor
from orchestrator.ids import event_tag
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from orchestrator.transports.rpc.v1 import chorale_pb2_grpc as pb_grpc
from orchestrator.wire import codec
from orchestrator.wire.server import AudioDelta, Gap

Following = Callable[[int, Cursor], AsyncGenerator[tuple[Event, str], None]]
"""One connection of a transport: to a port, where a cursor stands. Yields events, and as what bytes they came; raises
`CallFailed` or `ServerAway` where the connection breaks."""

_ONE_CONNECTION = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0))
"""Each time anew: channels to one address share their connection, and its pauses, otherwise."""

_WATCH = MethodInfo(
    name="Watch",
    service_name="chorale.v1.Sessions",
    input=pb.WatchRequest,
    output=pb.ServerMessage,
    idempotency_level=IdempotencyLevel.UNKNOWN,
    stream_type=StreamType.SERVER_STREAM,
)


async def by_grpc(port: int, cursor: Cursor) -> AsyncGenerator[tuple[Event, str], None]:
    """Joins by a stream in both directions."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=_ONE_CONNECTION) as channel:
        stub: Any = pb_grpc.SessionsStub(channel)  # type: ignore[no-untyped-call]  # generated
        call = stub.Converse()
        join = pb.Join(session_id=cursor.session_id, secret=cursor.secret, after=cursor.last)
        try:
            await call.write(pb.ClientMessage(join=join))
            while (message := await call.read()) is not grpc.aio.EOF:
                for event, text in _events(message, cursor):
                    yield event, text
        except grpc.aio.AioRpcError as error:
            raise CallFailed(f"{error.code()}: {error.details()}") from None
        finally:
            call.cancel()


def watching(protocol: ProtocolType, version: HTTPVersion) -> Following:
    """Returns what watches by gRPC-Web or by Connect."""

    async def follow(port: int, cursor: Cursor) -> AsyncGenerator[tuple[Event, str], None]:
        asked = pb.WatchRequest(
            session_id=cursor.session_id, secret=cursor.secret, after=cursor.last, speech=True
        )
        async with (
            HTTPTransport(http_version=version) as transport,
            ConnectClient(
                f"http://127.0.0.1:{port}",
                protocol=protocol,
                codec=google_protobuf_binary_codec(),
                send_compression=None,
                http_client=Client(transport),
            ) as client,
        ):
            messages: Any = client.execute_server_stream(
                request=asked, method=_WATCH, headers={"chorale-session-id": cursor.session_id}
            )
            try:
                async for message in messages:
                    for event, text in _events(message, cursor):
                        yield event, text
            except ConnectError as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise asyncio.CancelledError from None  # which this client makes an error of its own
                raise CallFailed(f"{error.code}: {error.message}") from None
            finally:
                await messages.aclose()

    return follow


def _events(message: pb.ServerMessage, cursor: Cursor) -> list[tuple[Event, str]]:
    """Returns the event that a message stands for, and its text; nothing for what has none."""
    match message.WhichOneof("message"):
        case "event":
            text = message.event.json
        case "speech":
            speech = message.speech
            delta = AudioDelta(
                response_id=speech.response_id,
                item_id=speech.item_id,
                output_index=speech.output_index,
                content_index=speech.content_index,
                delta=base64.b64encode(speech.data).decode(),
            )
            text = codec.encode(delta, f"event_{event_tag(cursor.session_id)}_{message.number}").decode()
        case "gap":
            text = codec.encode(Gap(message.gap.after, message.gap.first), "event_gap").decode()
        case _:
            return []
    event: Event = json.loads(text)
    return [(event, text)]
