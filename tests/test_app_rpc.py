"""gRPC and gRPC-Web in the whole server, with engines that are scripts."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from connectrpc.errors import ConnectError
from websockets.asyncio.client import connect

from orchestrator.app import Application, CannotListen
from orchestrator.settings import load
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from orchestrator.transports.rpc.v1 import chorale_pb2_grpc as pb_grpc
from orchestrator.transports.server import listen
from tests.test_app import SCRIPTED, certificate, free_port, readiness, running
from tests.transports.rpc.calling import Conversation, told
from tests.transports.rpc.connecting import calling
from tests.transports.running import item, until

GRPC = {"CHORALE_SERVER__GRPC__PORT": "0"}


async def ready(application: Application, port: int) -> int:
    """Waits until work is done; returns where gRPC is spoken."""
    await readiness(port, lambda answer: answer.status_code == 200)
    assert application.grpc_port is not None
    return application.grpc_port


def stub_of(channel: grpc.aio.Channel) -> Any:
    return pb_grpc.SessionsStub(channel)  # type: ignore[no-untyped-call]  # generated


async def spoken_reply(talk: Conversation) -> list[pb.ServerMessage]:
    """Asks for a reply; returns all that is sent up to its end."""
    await talk.say("conversation.item.create", item=item("hello there"))
    await talk.say("response.create")
    heard = []
    while True:
        heard.append(message := await talk.read())
        if message.HasField("event") and json.loads(message.event.json)["type"] == "response.done":
            return heard


def test_application_answers_over_grpc_and_browsers_read_along() -> None:
    """Every number comes once and in order, with the sound; who comes back, and who watches, gets the same bytes."""

    async def test(application: Application, port: int) -> None:
        address = f"127.0.0.1:{await ready(application, port)}"
        async with grpc.aio.insecure_channel(address) as channel, calling(port, "gRPC-Web") as browser:
            async with Conversation(stub_of(channel).Converse()) as talk:
                opened = await talk.open(model="m")
                heard = await spoken_reply(talk)
            assert [one.number for one in heard] == list(range(1, len(heard) + 1))
            assert any(one.speech.data for one in heard)
            async with Conversation(stub_of(channel).Converse()) as back:
                await back.join(opened, after=4)
                assert [await back.read() for _ in heard[4:]] == heard[4:]
            watched = browser.watch(opened, after=0, speech=True)
            begun = [await anext(watched) for _ in range(2 + len(heard))]
            assert begun[2:] == heard
            reply = await browser.send(opened, ['{"type":"response.cancel"}'])
            assert (reply.accepted, json.loads(reply.error)["error"]["code"]) == (
                0,
                "response_cancel_not_active",
            )
            last = (await browser.get(opened.session_id, opened.secret)).last
            assert last == heard[-1].number
            await browser.end(opened)
            assert [one async for one in watched if one.number] == []

    running(test, GRPC)


def test_application_counts_links_by_the_door_that_they_came_by() -> None:
    """A WebSocket, a stream of gRPC and two of server-sent events: each is in its own series of `/metrics`."""

    async def test(application: Application, port: int) -> None:
        address = f"127.0.0.1:{await ready(application, port)}"
        async with (
            grpc.aio.insecure_channel(address) as channel,
            Conversation(stub_of(channel).Converse()) as talk,
            connect(f"ws://127.0.0.1:{port}/v1/realtime?model=m", proxy=None) as link,
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
            AsyncExitStack() as streams,
        ):
            opened = await talk.open(model="m")
            await link.recv()
            shown = {"chorale-session-secret": opened.secret}
            where, readers = f"/v1/sessions/{opened.session_id}/events", []
            for _ in range(2):
                stream = await streams.enter_async_context(client.stream("GET", where, headers=shown))
                readers.append(stream.aiter_raw())
                await anext(readers[-1])
            told = (await client.get("/metrics")).text
            found = re.findall(r'^chorale_links\{chorale_link_kind="(\w+)"\} (\d+)', told, re.MULTILINE)
            assert dict(found) == {"websocket": "1", "call": "0", "events": "2", "rpc": "1"}

    running(test, GRPC)


async def for_ever(read: Callable[[], Awaitable[object]]) -> None:
    while True:
        await read()


def test_streams_of_an_application_that_stops_are_told_so() -> None:
    """UNAVAILABLE, by either port: who is told OK takes its session for complete, and does not begin anew."""

    async def test(application: Application, port: int) -> None:
        address = f"127.0.0.1:{await ready(application, port)}"
        async with (
            grpc.aio.insecure_channel(address) as channel,
            calling(port, "gRPC-Web") as browser,
            Conversation(stub_of(channel).Converse()) as talk,
        ):
            watched = browser.watch(await talk.open(model="m"))
            await anext(watched)
            application.stop()
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                await for_ever(talk.read)
            assert told(ended.value)[:2] == ("UNAVAILABLE", "The server is shutting down.")
            with pytest.raises(ConnectError) as dropped:
                await for_ever(watched.__anext__)
            assert dropped.value.code.name == "UNAVAILABLE"

    running(test, GRPC)


def test_application_speaks_grpc_over_the_same_tls(tmp_path: Path) -> None:
    """`server.tls` holds for both ports."""
    cert_file, key_file = certificate(tmp_path)

    async def test(application: Application, port: int) -> None:
        await until(lambda: application.grpc_port is not None)
        trusted = grpc.ssl_channel_credentials(cert_file.read_bytes())
        async with (
            grpc.aio.secure_channel(f"localhost:{application.grpc_port}", trusted) as channel,
            Conversation(stub_of(channel).Converse()) as talk,
        ):
            assert (await talk.open(model="m")).session_id

    running(test, {**GRPC, "CHORALE_SERVER__TLS": f"{{cert: {cert_file}, key: {key_file}}}"})


def test_application_refuses_a_taken_grpc_port_and_frees_the_other() -> None:
    """`CannotListen` says which; nothing was started, and the HTTP port may be taken again."""
    (taken,) = listen("127.0.0.1", 0)
    taken.listen()
    port = free_port()
    with taken:
        settings = load(
            None,
            {**SCRIPTED, "CHORALE_SERVER__GRPC__PORT": str(taken.getsockname()[1])},
            {"server.port": port},
        )

        async def main() -> None:
            with pytest.raises(CannotListen, match=r"Another server may run there; .*GRPC__PORT"):
                await Application(settings).run()
            assert asyncio.all_tasks() == {asyncio.current_task()}

        asyncio.run(main())
    (again,) = listen("127.0.0.1", port)
    again.close()
