"""The whole server, with engines that are scripts, behind nginx: every door brings what it brings without."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from benchmarks.nginx_front import Ports
from orchestrator.app import Application
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from tests.nginx.opening import stub_of
from tests.nginx.proxying import Front, Stand, nginx
from tests.test_app import free_port, readiness, running
from tests.transports.reading_events import parsed
from tests.transports.rpc.calling import Conversation
from tests.transports.running import heard, item
from tests.transports.test_media import tone, wav

pytestmark = pytest.mark.needs("nginx")

BEHIND = {"CHORALE_SERVER__GRPC__PORT": "0", "CHORALE_SERVER__PROXIES": "[127.0.0.1]"}


def behind(
    folder: Path,
    test: Callable[[Front], Awaitable[None]],
    environment: dict[str, str] | None = None,
    edit: Callable[[str], str] = str,
) -> None:
    """Runs `test` with nginx before a server that is ready; the other one is not there."""

    async def main(application: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        assert application.grpc_port is not None
        here, nobody = Ports(port, application.grpc_port), Ports(free_port(), free_port())
        async with nginx(folder, here, nobody, edit=edit) as front:
            await test(front)

    running(main, {**BEHIND, **(environment or {})})


async def replied(
    say: Callable[[str], Awaitable[None]], hear: Callable[[], Awaitable[dict[str, Any]]]
) -> str:
    """Asks in writing; returns the words of the answer."""
    await say(json.dumps({"type": "conversation.item.create", "item": item("hello there")}))
    await say(json.dumps({"type": "response.create", "response": {"output_modalities": ["text"]}}))
    words = ""
    while (event := await hear())["type"] != "response.done":
        assert event["type"] != "error", event
        if event["type"] == "response.output_text.delta":
            words += event["delta"]
    assert event["response"]["status"] == "completed"
    return words


def test_sessions_are_the_same_by_every_door(tmp_path: Path) -> None:
    """A WebSocket, server-sent events, gRPC and gRPC-Web: each opens a session, and the same answer comes."""

    async def test(front: Front) -> None:
        async with front.connect("?model=m") as link:
            assert (await heard(link))["session"]["id"].startswith("sess_")
            words = await replied(link.send, lambda: heard(link))
        assert words
        assert await over_http(front) == words
        assert await over_grpc(front) == words
        assert await over_grpc_web(front) == words

    behind(tmp_path, test)


async def over_http(front: Front) -> str:
    async with front.client() as client:
        made = (await client.post("/v1/sessions", json={})).json()
        where = f"/v1/sessions/{made['id']}/events"
        shown = {"chorale-session-secret": made["secret"]}
        async with client.stream("GET", where, headers=shown) as stream:
            chunks, waiting, read = stream.aiter_raw(), list[str](), b""

            async def say(event: str) -> None:
                answer = await client.post(where, content=event, headers=shown)
                assert answer.status_code == 202, answer.text

            async def hear() -> dict[str, Any]:
                nonlocal read
                while not waiting:
                    read += await anext(chunks)
                    whole, read = read.rpartition(b"\n\n")[0] + b"\n\n", read.rpartition(b"\n\n")[2]
                    waiting.extend(one.data for one in parsed(whole))
                event: dict[str, Any] = json.loads(waiting.pop(0))
                return event

            return await replied(say, hear)


async def over_grpc(front: Front) -> str:
    stub = stub_of(Stand(front, ()))  # type: ignore[arg-type]  # its server is no fake
    async with Conversation(stub.Converse()) as talk:
        await talk.open(model="m")

        async def say(event: str) -> None:
            await talk.call.write(pb.ClientMessage(event=pb.Event(json=event)))

        return await replied(say, talk.event)


async def over_grpc_web(front: Front) -> str:
    async with front.calling("gRPC-Web") as caller:
        opened = await caller.create(model="m")
    async with front.calling("gRPC-Web", **{"chorale-session-id": opened.session_id}) as caller:
        messages = caller.watch(opened, after=0)

        async def say(event: str) -> None:
            assert not (await caller.send(opened, [event])).error

        async def hear() -> dict[str, Any]:
            while not (message := await anext(messages)).HasField("event"):
                pass
            event: dict[str, Any] = json.loads(message.event.json)
            return event

        return await replied(say, hear)


def test_stock_client_has_its_work_done(tmp_path: Path) -> None:
    """Chat in a stream and at once, a transcript of an upload, speech as it is made."""

    async def test(front: Front) -> None:
        async with httpx2.AsyncClient(verify=front.trusted, trust_env=False) as http:
            client = openai.AsyncOpenAI(
                api_key="any", base_url=f"{front.url}/v1", http_client=http, max_retries=0
            )
            asked: Any = {"model": "m", "messages": [{"role": "user", "content": "hello there"}]}
            whole = (await client.chat.completions.create(**asked)).choices[0].message.content
            streamed = await client.chat.completions.create(**asked, stream=True)
            words = [one.choices[0].delta.content or "" async for one in streamed if one.choices]
            assert "".join(words) == whole
            file = ("talk.wav", wav(tone(60.0, 16_000), 16_000))
            await client.audio.transcriptions.create(model="m", file=file)
            spoken = await client.audio.speech.create(
                model="m", voice="alloy", input="Hello.", response_format="pcm"
            )
            assert len(spoken.content) > 0

    behind(tmp_path, test)


def test_page_is_delivered_and_packed(tmp_path: Path) -> None:
    """By the server's own compression; the page knows its server by the name that the browser has."""

    async def test(front: Front) -> None:
        async with front.client(origin=front.url) as client:
            page = await client.get("/", headers={"accept-encoding": "gzip, br"})
            assert page.headers["content-encoding"] == "br"
            assert "<html" in page.text
            made = await client.post("/v1/sessions", json={})
            assert made.headers["access-control-allow-origin"] == front.url

    behind(tmp_path, test)
