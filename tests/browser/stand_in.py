"""The stand-in's doors: page, calls and socket on one port, in a thread of their own, to be stopped and started again."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable

import uvicorn
from aiortc import MediaStreamTrack, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket, WebSocketDisconnect

from tests.browser.places import CONTENT_SECURITY_POLICY, WEB
from tests.browser.stand_in_session import Script, ScriptedSession, ToneTrack, mono

NOWHERE = "127.0.0.1 9 typ host"
"""The discard port, where nobody answers a STUN check."""


def free_port() -> int:
    """Returns a TCP port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class StandIn:
    """A server for page tests. `start` and `stop` may alternate: the port stays."""

    def __init__(self) -> None:
        self.script = Script()
        self.port = free_port()
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._peers: set[RTCPeerConnection] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> None:
        ready = threading.Event()

        async def lifespan_of(serve: Callable[[], Awaitable[None]]) -> None:
            self._loop = asyncio.get_running_loop()
            await serve()

        app = Starlette(
            routes=[
                Route("/", self._page),
                Mount("/web", StaticFiles(directory=WEB)),
                Route("/v1/realtime/calls", self._call, methods=["POST"]),
                Route("/v1/realtime/calls/{call_id}/hangup", self._hang_up, methods=["POST"]),
                WebSocketRoute("/v1/realtime", self._socket),
            ],
            middleware=[],
        )
        config = uvicorn.Config(
            app, host="127.0.0.1", port=self.port, ws="websockets-sansio", log_level="error", lifespan="off"
        )
        config.timeout_graceful_shutdown = 1
        self._server = uvicorn.Server(config)
        server = self._server

        def run() -> None:
            asyncio.run(lifespan_of(server.serve))

        self._thread = threading.Thread(target=run, name="stand-in")
        self._thread.start()
        while not server.started:
            if not self._thread.is_alive():
                raise RuntimeError("the stand-in could not start")
            ready.wait(0.02)

    def stop(self) -> None:
        """Ends everything at once, calls included, as a stopped server does."""
        if self._server is None or self._thread is None or self._loop is None:
            return
        asyncio.run_coroutine_threadsafe(self._close_peers(), self._loop).result(10)
        self._server.should_exit = True
        self._thread.join(10)
        self._server = self._thread = self._loop = None

    async def _close_peers(self) -> None:
        for peer in list(self._peers):
            await peer.close()
        self._peers.clear()
        for task in list(self._tasks):
            task.cancel()

    async def _page(self, request: Request) -> Response:
        return FileResponse(WEB / "index.html", headers={"Content-Security-Policy": CONTENT_SECURITY_POLICY})

    def _refusal(self, key: str | None) -> Response | None:
        script = self.script
        if script.key is not None and key != script.key:
            return JSONResponse({"error": {"message": "Incorrect API key.", "code": "invalid_api_key"}}, 401)
        if script.refuse_status is not None:
            body = {"error": {"message": "No place is free.", "code": "rate_limit_exceeded"}}
            return JSONResponse(body, script.refuse_status, {"Retry-After": "1"})
        return None

    async def _call(self, request: Request) -> Response:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        refusal = self._refusal(key if scheme == "Bearer" else None)
        if refusal is not None:
            return refusal
        offer = (await request.body()).decode()
        if not offer:
            return JSONResponse({"error": {"message": "The offer is empty.", "code": "invalid_value"}}, 400)
        peer = RTCPeerConnection()
        self._peers.add(peer)
        track = ToneTrack()
        peer.addTrack(track)
        peer.on("datachannel", lambda channel: self._open(channel, track, peer))
        await peer.setRemoteDescription(RTCSessionDescription(offer, "offer"))
        await peer.setLocalDescription(await peer.createAnswer())
        answer = peer.localDescription.sdp
        if not self.script.has_path:
            answer = _without_path(answer)
            await peer.close()
        headers = {"Location": f"/v1/realtime/calls/rtc_{id(peer)}"}
        return Response(answer, 201, headers, "application/sdp")

    def _open(self, channel: object, track: ToneTrack, peer: RTCPeerConnection) -> None:
        from aiortc import RTCDataChannel

        assert isinstance(channel, RTCDataChannel)
        session = ScriptedSession(self.script, channel.send, track)
        channel.on("message", session.receive)
        channel.on("close", session.close)
        session.begin()
        source = peer.getReceivers()[0].track
        task = asyncio.get_running_loop().create_task(_listen(source, session))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _hang_up(self, request: Request) -> Response:
        for peer in list(self._peers):
            if f"rtc_{id(peer)}" == request.path_params["call_id"]:
                await peer.close()
                self._peers.discard(peer)
        return Response()

    async def _socket(self, websocket: WebSocket) -> None:
        offered: list[str] = websocket.scope["subprotocols"]
        keys = [name.removeprefix("openai-insecure-api-key.") for name in offered if "api-key" in name]
        refusal = self._refusal(keys[0] if keys else None)
        if refusal is not None:
            await websocket.send_denial_response(refusal)
            return
        await websocket.accept(subprotocol="realtime")
        outbox: asyncio.Queue[str] = asyncio.Queue(1000)
        session = ScriptedSession(self.script, outbox.put_nowait, None)
        session.begin()

        async def write() -> None:
            while True:
                await websocket.send_text(await outbox.get())

        writer = asyncio.get_running_loop().create_task(write())
        try:
            while True:
                session.receive(await websocket.receive_text())
        except WebSocketDisconnect:
            session.close()
        finally:
            writer.cancel()


async def _listen(source: MediaStreamTrack, session: ScriptedSession) -> None:
    while True:
        try:
            frame = await source.recv()
        except MediaStreamError:
            return
        assert isinstance(frame, AudioFrame)
        session.hear(mono([frame]))


def _without_path(sdp: str) -> str:
    """Returns a description whose only candidate leads nowhere."""
    lines = [line for line in sdp.splitlines() if not line.startswith("a=candidate")]
    at = next(index for index, line in enumerate(lines) if line.startswith("a=ice-ufrag"))
    lines.insert(at, f"a=candidate:1 1 udp 2130706431 {NOWHERE}")
    return "\r\n".join(lines) + "\r\n"
