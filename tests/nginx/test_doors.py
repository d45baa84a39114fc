"""Every door through a real nginx, as `configs/nginx.conf` sets it up."""

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from tests.nginx.opening import opened_over_http, stub_of
from tests.nginx.proxying import Stand, against
from tests.transports.reading_events import parsed
from tests.transports.rpc.calling import Conversation
from tests.transports.rpc.connecting import WAYS
from tests.transports.running import heard, until

pytestmark = pytest.mark.needs("nginx")


def test_websocket_passes_in_both_directions(tmp_path: Path) -> None:
    """With the subprotocol and compression that client and server agree on; each event as soon as it is sent."""

    async def test(stand: Stand) -> None:
        async with stand.front.connect("?model=m", ["realtime"]) as link:
            created = await heard(link)
            assert link.subprotocol == "realtime"
            assert link.response is not None
            assert "permessage-deflate" in link.response.headers["Sec-WebSocket-Extensions"]
            session = stand.session(created["session"]["id"])
            for number in range(1, 6):
                session.emit("response.output_text.delta")
                assert (await heard(link))["event_id"] == session.event_id(number)
            await link.send(json.dumps({"type": "response.cancel"}))
            await session.wait_for(1)

    against(tmp_path, test)


def test_server_sent_events_are_not_held_back(tmp_path: Path) -> None:
    """Each event is there before there is another, unpacked; who speaks meanwhile does so by a request of its own."""

    async def test(stand: Stand) -> None:
        async with stand.front.client() as client:
            session, secret = await opened_over_http(stand, client)
            where = f"/v1/sessions/{session.id}/events"
            shown = {"chorale-session-secret": secret, "accept-encoding": "gzip, br, zstd"}
            async with client.stream("GET", where, headers=shown) as stream:
                assert stream.headers["content-type"].startswith("text/event-stream")
                assert "content-encoding" not in stream.headers
                read, chunks = b"", stream.aiter_raw()
                for number in range(1, 6):
                    session.emit("response.output_text.delta")
                    wanted = f"id: {session.event_id(number)}\n".encode()
                    while wanted not in read or not read.endswith(b"\n\n"):
                        read += await anext(chunks)
                assert [one.last_id for one in parsed(read)][-1] == session.event_id(5)
                said = await client.post(where, json={"type": "response.cancel"}, headers=shown)
                assert said.status_code == 202
                assert len(session.submitted) == 1

    against(tmp_path, test)


def test_grpc_streams_pass_in_both_directions(tmp_path: Path) -> None:
    """Sound in and out as bytes, events as they come, the health of the server; over the port that HTTP has."""

    async def test(stand: Stand) -> None:
        stub = stub_of(stand)
        async with Conversation(stub.Converse()) as talk:
            session = stand.session((await talk.open(model="m")).session_id)
            for number in range(1, 6):
                session.emit("response.output_text.delta")
                assert (await talk.read()).number == number
                await talk.sound(bytes(4_800))
            await until(lambda: session.intake.position > 4 * 1_600)
            session.speak(bytes(960))
            assert (await talk.read()).speech.data == bytes(960)
            await talk.say("response.cancel")
            await session.wait_for(1)

    against(tmp_path, test)


@pytest.mark.parametrize("way", WAYS)
def test_browsers_rpc_passes(tmp_path: Path, way: str) -> None:
    """Create, Send, and a Watch that is not held back, over HTTP/2."""

    async def test(stand: Stand) -> None:
        async with stand.front.calling(way) as caller:
            opened = await caller.create(model="m")
            session = stand.session(opened.session_id)
        async with stand.front.calling(way, **{"chorale-session-id": session.id}) as caller:
            watched = caller.watch(opened)
            assert (await anext(watched)).opened.session_id == session.id
            await anext(watched)
            for number in range(1, 4):
                session.emit("response.output_text.delta")
                assert (await anext(watched)).number == number
            assert (await caller.send(opened, ['{"type":"response.cancel"}'])).accepted == 1
            await caller.get(session.id, session.secret)

    against(tmp_path, test)


def test_calls_are_offered_and_hung_up(tmp_path: Path) -> None:
    """The call's address leads back to the server that has it."""

    async def test(stand: Stand) -> None:
        async with stand.front.client() as client:
            for _ in range(8):
                sdp = {"content-type": "application/sdp"}
                answer = await client.post("/v1/realtime/calls", content="v=0\r\n", headers=sdp)
                assert answer.status_code == 201
                session = stand.session(answer.headers["chorale-session-id"])
                gone = await client.post(answer.headers["location"] + "/hangup")
                assert (gone.status_code, session.ended) == (200, "hung up")

    against(tmp_path, test)


def test_plain_http_is_sent_to_tls(tmp_path: Path) -> None:
    """With the same method, path and query; nothing is served there."""

    async def test(stand: Stand) -> None:
        async with stand.front.client() as client:
            plain = f"http://localhost:{stand.front.plain_port}/v1/sessions?x=1"
            answer = await client.post(plain, json={})
            assert answer.status_code == 308
            assert answer.headers["location"] == "https://localhost/v1/sessions?x=1"
        assert not any(one.house.directory.sessions for one in stand.nodes)

    against(tmp_path, test)


def test_metrics_are_not_shown_to_everybody(tmp_path: Path) -> None:
    """404: each server is asked for its own, from inside."""

    async def test(stand: Stand) -> None:
        async with stand.front.client() as client:
            assert (await client.get("/metrics")).status_code == 404
            assert (await client.get("/healthz")).json() == {"status": "ok"}

    against(tmp_path, test)


def impatient(text: str) -> str:
    """Returns the configuration with the bounds of bodies that a test can wait for."""
    for shipped, wanted in (
        ("client_body_timeout 20s;", "client_body_timeout 1s;"),
        ("send_timeout 1m;", "send_timeout 1s;"),
    ):
        assert shipped in text
        text = text.replace(shipped, wanted)
    return text


def test_grpc_client_may_listen_without_a_word(tmp_path: Path) -> None:
    """The bound between two parts of a body is for uploads, not for who streams and has nothing to say."""

    async def test(stand: Stand) -> None:
        async with Conversation(stub_of(stand).Converse()) as talk:
            session = stand.session((await talk.open(model="m")).session_id)
            await asyncio.sleep(2.5)  # longer than the bound
            session.emit("response.output_text.delta")
            assert (await talk.read()).number == 1
            await talk.say("response.cancel")
            await session.wait_for(1)

    against(tmp_path, test, impatient)


def test_links_outlive_a_reload_of_nginx(tmp_path: Path) -> None:
    """Old processes keep what is open, by whatever door; new requests go to new ones."""

    async def test(stand: Stand) -> None:
        async with (
            stand.front.connect("?model=m") as link,
            Conversation(stub_of(stand).Converse()) as talk,
            stand.front.client() as client,
        ):
            session = stand.session((await heard(link))["session"]["id"])
            spoken = stand.session((await talk.open(model="m")).session_id)
            where, shown = f"/v1/sessions/{session.id}/events", {"chorale-session-secret": session.secret}
            async with client.stream("GET", where, headers=shown) as stream:
                read, chunks = b"", stream.aiter_raw()
                while b"session.created" not in read:
                    read += await anext(chunks)
                os.kill(stand.front.master, signal.SIGHUP)
                await until(lambda: "gracefully shutting down" in stand.front.written())
                session.emit("response.output_text.delta")
                assert (await heard(link))["event_id"] == session.event_id(1)
                while session.event_id(1).encode() not in read:
                    read += await anext(chunks)
                spoken.emit("response.output_text.delta")
                assert (await talk.read()).number == 1
                await talk.say("response.cancel")
                await spoken.wait_for(1)
                async with stand.front.client() as another:
                    assert (await another.get("/healthz")).status_code == 200

    against(tmp_path, test)


def test_grpc_reaches_methods_of_one_answer(tmp_path: Path) -> None:
    """Also those of health, which have a service of their own."""

    async def test(stand: Stand) -> None:
        stub = stub_of(stand)
        opened = await stub.Create(pb.CreateRequest(model="m"))
        named = (("chorale-session-id", opened.session_id),)
        asked = pb.GetRequest(session_id=opened.session_id, secret=opened.secret)
        assert (await stub.Get(asked, metadata=named)).last == 0
        health: Any = health_pb2_grpc.HealthStub(stand.front.channels[0])
        assert (await health.Check(health_pb2.HealthCheckRequest())).status == 1

    against(tmp_path, test)
