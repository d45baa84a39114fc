"""The whole server with keys and every door open, and what a client of each door is told: one word for all of them."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
from connectrpc.errors import ConnectError
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from orchestrator.app import Application
from orchestrator.clients.peer import new_peer
from orchestrator.peers import close_peer
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from orchestrator.transports.rpc.v1 import chorale_pb2_grpc as pb_grpc
from tests.test_app import readiness, running
from tests.transports.calling import without_candidates
from tests.transports.rpc.connecting import calling
from tests.transports.test_http import CALLS

ACME, OTHER, PAGE = (f"sk-{name}-0123456789abcdef" for name in ("acme", "other", "page"))
ALLOWED, EVIL = "https://app.example.com", "https://evil.example"
SIGNING_KEY = bytes(range(32))

IN = "let in"
_WORDS = {
    200: IN,
    201: IN,
    202: IN,
    204: IN,
    101: IN,
    401: "unauthorized",
    403: "forbidden",
    404: "not found",
    "OK": IN,
    "UNAUTHENTICATED": "unauthorized",
    "PERMISSION_DENIED": "forbidden",
    "NOT_FOUND": "not found",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """What a client shows at a door."""

    key: str | None = ACME
    session_id: str = ""
    secret: str = ""
    origin: str | None = None

    def headers(self) -> dict[str, str]:
        """As HTTP headers, without the secret."""
        found = {} if self.key is None else {"authorization": f"Bearer {self.key}"}
        return found if self.origin is None else {**found, "origin": self.origin}

    def with_secret(self) -> dict[str, str]:
        return {**self.headers(), "chorale-session-secret": self.secret}


@dataclass(frozen=True, slots=True)
class Fort:
    """A server, and where its doors are."""

    application: Application
    port: int
    grpc_port: int
    offer: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def asked(self, method: str, path: str, headers: Mapping[str, str], **more: Any) -> str:
        """Asks by HTTP; returns what is answered, before any body of it is read."""
        async with (
            httpx.AsyncClient(base_url=self.url, trust_env=False, timeout=60) as client,
            client.stream(method, path, headers=dict(headers), **more) as answer,
        ):
            return str(_WORDS.get(answer.status_code, answer.status_code))

    async def linked(self, query: str, headers: Mapping[str, str]) -> str:
        """Asks for a WebSocket."""
        address = f"ws://127.0.0.1:{self.port}/v1/realtime{query}"
        try:
            async with connect(address, additional_headers=dict(headers), proxy=None):
                return IN
        except InvalidStatus as refused:
            return str(_WORDS.get(refused.response.status_code, refused.response.status_code))

    async def streamed(self, method: str, shown: Shown, *messages: Any) -> str:
        """Asks by gRPC, for the first message of a stream or for the only answer."""
        metadata = tuple(shown.headers().items())
        async with grpc.aio.insecure_channel(f"127.0.0.1:{self.grpc_port}") as channel:
            # The generated stub has no types.
            stub: Any = pb_grpc.SessionsStub(channel)  # type: ignore[no-untyped-call]
            try:
                if method == "Converse":
                    call = stub.Converse(metadata=metadata)
                    await call.write(messages[0])
                    await call.read()
                elif method == "Watch":
                    await stub.Watch(messages[0], metadata=metadata).read()
                else:
                    await getattr(stub, method)(messages[0], metadata=metadata)
            except grpc.aio.AioRpcError as refused:
                return _WORDS.get(refused.code().name, refused.code().name)
            return IN

    async def opened(self, key: str = ACME) -> Shown:
        """Opens a session, with all that is needed to come back to it."""
        async with httpx.AsyncClient(base_url=self.url, trust_env=False, timeout=60) as client:
            answer = await client.post("/v1/sessions", json={}, headers=Shown(key).headers())
        body = answer.json()
        return Shown(key, body["id"], body["secret"])


Door = Callable[[Fort, Shown], Awaitable[str]]

_BUSY = ("503", "UNAVAILABLE")
"""What HTTP and gRPC call it."""


def _patient(doors: Mapping[str, Door]) -> Mapping[str, Door]:
    """Comes again where a server has too much to do, as it asks for: that is no word about who came."""

    def patient(door: Door) -> Door:
        async def come(fort: Fort, shown: Shown) -> str:
            while (word := await door(fort, shown)) in _BUSY:  # noqa: ASYNC110 - it is asked, it does not tell
                await asyncio.sleep(1)
            return word

        return come

    return {name: patient(door) for name, door in doors.items()}


_SDP = {"content-type": "application/sdp"}
_NOTHING = json.dumps({"type": "input_audio_buffer.clear"})


def _http(method: str, path: str, **more: Any) -> Door:
    async def come(fort: Fort, shown: Shown) -> str:
        return await fort.asked(method, path.format(shown.session_id), shown.with_secret(), **more)

    return come


def _rpc(method: str, make: Callable[[dict[str, Any]], Any]) -> Door:
    async def come(fort: Fort, shown: Shown) -> str:
        named: dict[str, Any] = {"session_id": shown.session_id, "secret": shown.secret}
        return await fort.streamed(method, shown, make(named))

    return come


def _browser(way: str, method: str) -> Door:
    async def come(fort: Fort, shown: Shown) -> str:
        opened = pb.SessionOpened(session_id=shown.session_id, secret=shown.secret)
        async with calling(fort.port, way, None) as caller:
            caller._headers.update(shown.headers())
            try:
                match method:
                    case "Get":
                        await caller.get(shown.session_id, shown.secret)
                    case "Send":
                        await caller.send(opened, [_NOTHING])
                    case "Create":
                        await caller.create()
                    case _:
                        async for _ in caller.watch(opened):
                            break
            except ConnectError as refused:
                return _WORDS.get(refused.code.name, refused.code.name)
            return IN

    return come


async def _by_websocket(fort: Fort, shown: Shown) -> str:
    return await fort.linked(f"?session_id={shown.session_id}", shown.with_secret())


async def _by_address(fort: Fort, shown: Shown) -> str:
    return await fort.linked(f"?session_id={shown.session_id}&secret={shown.secret}", shown.headers())


async def _by_call(fort: Fort, shown: Shown) -> str:
    query = f"?session_id={shown.session_id}"
    return await fort.asked("POST", CALLS + query, {**shown.with_secret(), **_SDP}, content=fort.offer)


JOINING = _patient(
    {
        "WebSocket": _by_websocket,
        "WebSocket, secret in its address": _by_address,
        "SSE": _http("GET", "/v1/sessions/{}/events"),
        "HTTP, shown": _http("GET", "/v1/sessions/{}"),
        "HTTP, said": _http("POST", "/v1/sessions/{}/events", content=_NOTHING),
        "call": _by_call,
        "gRPC Get": _rpc("Get", lambda named: pb.GetRequest(**named)),
        "gRPC Send": _rpc("Send", lambda named: pb.SendRequest(events=[_NOTHING], **named)),
        "gRPC Watch": _rpc("Watch", lambda named: pb.WatchRequest(**named)),
        "gRPC Converse": _rpc("Converse", lambda named: pb.ClientMessage(join=pb.Join(**named))),
        "gRPC-Web Get": _browser("gRPC-Web", "Get"),
        "gRPC-Web Watch": _browser("gRPC-Web", "Watch"),
        "Connect Send": _browser("connect", "Send"),
        "Connect Watch": _browser("connect", "Watch"),
        # The last ones: they end it.
        "HTTP, ended": _http("DELETE", "/v1/sessions/{}"),
        "gRPC End": _rpc("End", lambda named: pb.EndRequest(**named)),
    }
)
"""Every way to come to a session that there is."""


async def _new_link(fort: Fort, shown: Shown) -> str:
    return await fort.linked("", shown.headers())


async def _new_link_by_subprotocol(fort: Fort, shown: Shown) -> str:
    offered = f"realtime, openai-insecure-api-key.{shown.key}"
    return await fort.linked(
        "", {**Shown(None, origin=shown.origin).headers(), "sec-websocket-protocol": offered}
    )


async def _new_call(fort: Fort, shown: Shown) -> str:
    return await fort.asked("POST", CALLS, {**shown.headers(), **_SDP}, content=fort.offer)


OPENING = _patient(
    {
        "WebSocket": _new_link,
        "HTTP": _http("POST", "/v1/sessions", json={}),
        "call": _new_call,
        "gRPC Create": _rpc("Create", lambda _: pb.CreateRequest()),
        "gRPC Converse": _rpc("Converse", lambda _: pb.ClientMessage(open=pb.Open())),
        "gRPC-Web Create": _browser("gRPC-Web", "Create"),
        "Connect Create": _browser("connect", "Create"),
    }
)
"""Every way to open a session."""

WORKING = _patient(
    {
        "client secrets": _http("POST", "/v1/realtime/client_secrets", json={}),
        "models": _http("GET", "/v1/models"),
        "chat": _http("POST", "/v1/chat/completions", json={"messages": [{"role": "user", "content": "a"}]}),
        "embeddings": _http("POST", "/v1/embeddings", json={"input": "a"}),
        "speech": _http("POST", "/v1/audio/speech", json={"input": "a", "response_format": "pcm"}),
        "metrics": _http("GET", "/metrics"),
    }
)
"""What a key is good for beside sessions."""


def defended(
    folder: Path,
    test: Callable[[Fort], Awaitable[None]],
    environment: Mapping[str, str] | None = None,
    within_s: float = 200,
) -> None:
    """Runs `test` before a server with keys, whose `SIGNING_KEY` is known; it then stops in good order."""
    keys, signing = folder / "keys.yaml", folder / "signing"
    keys.write_text(
        f"keys:\n- {{key: {ACME}, tenant: acme}}\n- {{key: {OTHER}, tenant: other}}\n"
        f"- {{key: {PAGE}, tenant: page, origins: ['{ALLOWED}']}}\n"
    )
    signing.write_bytes(SIGNING_KEY)
    for file in (keys, signing):
        file.chmod(0o600)

    async def against(application: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        assert application.grpc_port is not None
        await test(Fort(application, port, application.grpc_port, await offer()))

    running(
        against,
        {
            "CHORALE_SERVER__GRPC__PORT": "0",
            "CHORALE_SERVER__KEY_FILE": str(keys),
            "CHORALE_SERVER__SECRET_FILE": str(signing),
            "CHORALE_FLOW__SHEDDING": "false",
            "CHORALE_FLOW__SLO_ERROR_RATE": "1",
            "CHORALE_SESSIONS__GRACE_S": "600",  # a session waits for a test that takes its time
            **(environment or {}),
        },
        within_s=within_s,
    )


async def offer() -> str:
    """Returns an offer as a browser would make it, of a caller that never goes on."""
    peer = new_peer()
    try:
        peer.addTransceiver("audio")
        peer.createDataChannel("oai-events")
        await peer.setLocalDescription(await peer.createOffer())
        return without_candidates(peer.localDescription.sdp)
    finally:
        await close_peer(peer)
