"""The stand-in's doors: page, calls and socket on one port, in a thread of their own, to be stopped and started."""

import asyncio
import socket
import threading
import time
from collections.abc import Awaitable, Callable

import uvicorn
from aiortc import MediaStreamTrack, RTCDataChannel, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from orchestrator.transports import page
from tests.browser.stand_in_session import SECRET, Script, ScriptedSession, ToneTrack, mono

PATIENCE_S = 60
"""For a machine that is busy with the browser."""

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
        self._sessions: dict[str, ScriptedSession] = {}
        self._sockets: set[WebSocket] = set()
        self.answered: list[str] = []
        """The calls that were answered, in order."""
        self.hung_up: list[str] = []
        self.returns: list[str] = []
        """The queries of those who came back, in order."""

    @property
    def calls(self) -> int:
        """How many calls are open."""
        return len(self._peers)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> None:
        """Returns once the port answers."""
        app = Starlette(
            routes=[
                *(Route(path, _serve(file)) for path, file in page.read_page().items()),
                Route("/v1/realtime/calls", self._call, methods=["POST"]),
                Route("/v1/realtime/calls/{call_id}/hangup", self._hang_up, methods=["POST"]),
                WebSocketRoute("/v1/realtime", self._socket),
            ]
        )
        config = uvicorn.Config(
            app,
            host="127.0.0.1",
            port=self.port,
            ws="websockets-sansio",
            log_level="error",
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        server = self._server = uvicorn.Server(config)
        thread = self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(server)), name="stand-in"
        )
        thread.start()
        deadline = time.monotonic() + PATIENCE_S
        while not server.started:
            if not thread.is_alive() or time.monotonic() > deadline:
                raise RuntimeError("the stand-in did not start")
            time.sleep(0.01)

    async def _serve(self, server: uvicorn.Server) -> None:
        self._loop = asyncio.get_running_loop()
        await server.serve()

    def break_sockets(self) -> None:
        """Closes every WebSocket as a fault would; their sessions live on."""
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(self._break_sockets(), self._loop).result(PATIENCE_S)

    def break_calls(self) -> None:
        """Ends every call as a lost network would, and what was sent of it; their sessions live on."""
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(self._break_calls(), self._loop).result(PATIENCE_S)

    async def _break_calls(self) -> None:
        for peer in list(self._peers):
            self._peers.discard(peer)
            await peer.close()

    async def _break_sockets(self) -> None:
        for websocket in list(self._sockets):
            await websocket.close(1011, "something broke")

    def stop(self) -> None:
        """Ends everything at once, calls included, as a stopped server does."""
        if self._server is None or self._thread is None or self._loop is None:
            return
        asyncio.run_coroutine_threadsafe(self._close_peers(), self._loop).result(PATIENCE_S)
        self._server.should_exit = True
        self._thread.join(PATIENCE_S)
        self._server = self._thread = self._loop = None

    async def _close_peers(self) -> None:
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()
        for peer in list(self._peers):
            await peer.close()
        self._peers.clear()
        for task in list(self._tasks):
            task.cancel()

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
        back = self._back(request.query_params, request.headers.get("chorale-session-secret"))
        if back is None and "session_id" in request.query_params:
            return _no_session()
        offer = (await request.body()).decode()
        if not offer:
            return JSONResponse({"error": {"message": "The offer is empty.", "code": "invalid_value"}}, 400)
        peer = RTCPeerConnection()
        self._peers.add(peer)
        track = ToneTrack()
        peer.addTrack(track)
        peer.on("connectionstatechange", lambda: self._follow(peer))
        peer.on("datachannel", lambda channel: self._open(channel, track, peer, back))
        await peer.setRemoteDescription(RTCSessionDescription(offer, "offer"))
        await peer.setLocalDescription(await peer.createAnswer())
        answer = peer.localDescription.sdp
        if not self.script.has_path:
            answer = _without_path(answer)
            await peer.close()
        self.answered.append(f"rtc_{id(peer)}")
        headers = {"Location": f"/v1/realtime/calls/{self.answered[-1]}"}
        return Response(answer, 201, headers, "application/sdp")

    def _follow(self, peer: RTCPeerConnection) -> None:
        if peer.connectionState in ("closed", "failed"):
            self._peers.discard(peer)

    def _back(self, query: QueryParams, secret: str | None) -> "tuple[ScriptedSession, int | None] | None":
        session = self._sessions.get(query.get("session_id", ""))
        if session is None or secret != SECRET:
            return None
        self.returns.append(str(query))
        return session, int(query["after"]) if "after" in query else None

    def _open(
        self,
        channel: RTCDataChannel,
        track: ToneTrack,
        peer: RTCPeerConnection,
        back: "tuple[ScriptedSession, int | None] | None",
    ) -> None:
        session = ScriptedSession(self.script, channel.send, track) if back is None else back[0]
        self._sessions[session.id] = session

        def send(event: str) -> None:
            if channel.readyState == "open":
                channel.send(event)

        channel.on("message", session.receive)
        session.begin(send, None if back is None else back[1], None if back is None else track)
        source = peer.getReceivers()[0].track
        task = asyncio.get_running_loop().create_task(_listen(source, session))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _hang_up(self, request: Request) -> Response:
        self.hung_up.append(request.path_params["call_id"])
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
        shown = [name.removeprefix("chorale-session-secret.") for name in offered if "session-secret" in name]
        back = self._back(websocket.query_params, shown[0] if shown else None)
        if (back is None and "session_id" in websocket.query_params) or self.script.drops_sockets:
            await websocket.send_denial_response(_no_session())
            return
        await websocket.accept(subprotocol="realtime")
        outbox: asyncio.Queue[str] = asyncio.Queue(1000)
        session = ScriptedSession(self.script, outbox.put_nowait, None) if back is None else back[0]
        self._sessions[session.id] = session
        session.begin(outbox.put_nowait, None if back is None else back[1])
        self._sockets.add(websocket)

        async def write() -> None:
            while True:
                await websocket.send_text(await outbox.get())

        writer = asyncio.get_running_loop().create_task(write())
        try:
            while True:
                session.receive(await websocket.receive_text())
        except WebSocketDisconnect:
            pass
        finally:
            self._sockets.discard(websocket)
            writer.cancel()


def _no_session() -> JSONResponse:
    return JSONResponse({"error": {"message": "There is no such session.", "code": None}}, 404)


def _serve(file: page.PageFile) -> Callable[[Request], Awaitable[Response]]:
    """Serves a file of the page exactly as the real server does, policy included."""

    async def serve(request: Request) -> Response:
        return page.serve(file, request)

    return serve


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
