"""How clients of `chorale bench resume` connect, each time anew."""

from collections.abc import AsyncGenerator

from connectrpc.protocol import ProtocolType
from pyqwest import HTTPVersion

from benchmarks.door_clients import Place
from benchmarks.resume_rpc import Following, by_grpc, watching
from benchmarks.resume_sse import by_sse
from orchestrator.clients.address import Event
from orchestrator.clients.returning import Cursor
from orchestrator.clients.text_socket import RealtimeSocket


async def by_websocket(port: int, cursor: Cursor) -> AsyncGenerator[tuple[Event, str], None]:
    async with RealtimeSocket.connect(f"http://127.0.0.1:{port}", cursor=cursor) as socket:
        try:
            while True:
                event = await socket.receive()
                yield event, socket.text
        finally:
            socket.abort()  # a farewell would wait until all was read


TRANSPORTS: dict[str, Following] = {
    "websocket": by_websocket,
    "grpc": by_grpc,
    "grpc-web": watching(ProtocolType.GRPC_WEB, HTTPVersion.HTTP1),
    "connect": watching(ProtocolType.CONNECT, HTTPVersion.HTTP1),
    "sse": by_sse,
}
BY_HTTP2: dict[str, Following] = {
    "grpc": by_grpc,
    "grpc-web": watching(ProtocolType.GRPC_WEB, HTTPVersion.HTTP2),
    "connect": watching(ProtocolType.CONNECT, HTTPVersion.HTTP2),
}
"""What goes to nginx where it speaks HTTP/2. WebSockets and event streams go through it by HTTP/1.1."""


def way_of(transport: str, front: Place) -> tuple[Following, int]:
    """Returns how a client connects, and where."""
    if transport == "grpc" or (front.is_http2 and transport in BY_HTTP2):
        return BY_HTTP2[transport], front.grpc
    return TRANSPORTS[transport], front.http
