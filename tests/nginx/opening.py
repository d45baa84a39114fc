"""Sessions opened through nginx, whatever the door."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from orchestrator.transports.rpc.v1 import chorale_pb2_grpc as pb_grpc
from tests.nginx.proxying import Stand
from tests.transports.fake_sessions import FakeSession
from tests.transports.running import heard


def stub_of(stand: Stand) -> Any:
    """Returns a client of gRPC on a connection of its own; the generated stub has no types."""
    return pb_grpc.SessionsStub(stand.front.channel())  # type: ignore[no-untyped-call]  # generated


async def opened_over_http(stand: Stand, client: httpx.AsyncClient) -> tuple[FakeSession, str]:
    """Opens a session by POST; returns it and its secret."""
    answer = await client.post("/v1/sessions", json={})
    assert answer.status_code == 201, answer.text
    return stand.session(answer.json()["id"]), answer.json()["secret"]


async def over_http(stand: Stand) -> FakeSession:
    async with stand.front.client() as client:
        return (await opened_over_http(stand, client))[0]


async def over_websocket(stand: Stand) -> FakeSession:
    async with stand.front.connect("?model=m") as link:
        return stand.session((await heard(link))["session"]["id"])


async def over_grpc(stand: Stand) -> FakeSession:
    return stand.session((await stub_of(stand).Create(pb.CreateRequest(model="m"))).session_id)


async def over_connect(stand: Stand) -> FakeSession:
    async with stand.front.calling("connect") as caller:
        return stand.session((await caller.create(model="m")).session_id)


async def by_call(stand: Stand) -> FakeSession:
    async with stand.front.client() as client:
        answer = await client.post(
            "/v1/realtime/calls", content="v=0\r\n", headers={"content-type": "application/sdp"}
        )
        return stand.session(answer.headers["chorale-session-id"])


OPENED: dict[str, Callable[[Stand], Awaitable[FakeSession]]] = {
    "WebSocket": over_websocket,
    "HTTP": over_http,
    "gRPC": over_grpc,
    "Connect": over_connect,
    "call": by_call,
}
"""Every way to open a session; it goes on when its link has gone."""
