"""The Realtime protocol in a running server: what reaches the language model, and what its limiter tells."""

import asyncio
import base64
import json
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from orchestrator.app import Application
from tests.test_app import readiness, running

PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(1_500_000)).decode()
ITEM = {
    "type": "message",
    "role": "user",
    "content": [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}", "detail": "low"},
    ],
}


async def say(link: ClientConnection, type: str, **fields: Any) -> None:
    await link.send(json.dumps({"type": type, **fields}))


async def until(link: ClientConnection, *types: str) -> dict[str, Any]:
    """The next event of one of these types."""
    async with asyncio.timeout(120):
        while True:
            event: dict[str, Any] = json.loads(await link.recv())
            if event["type"] in types:
                return event


def test_server_shows_an_image_to_a_model_that_sees() -> None:
    """Two megabytes from the client's socket into the worker's process, and not one of them back."""

    async def test(_: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        async with connect(f"ws://127.0.0.1:{port}/v1/realtime") as link:
            await say(link, "conversation.item.create", item=ITEM)
            added = await until(link, "conversation.item.added", "error")
            assert added["item"]["content"][1]["image_url"] == "chorale:image:1"
            await say(link, "response.create", response={"output_modalities": ["text"]})
            response = (await until(link, "response.done"))["response"]
            assert response["output"][0]["content"][0]["text"] == "You said: What is this? [1 images]"

    running(test, {"CHORALE_WORKERS__LLM__IMAGES": "true"})


def test_server_refuses_an_image_that_its_model_would_not_see() -> None:
    """In words, at once, and the session goes on without it."""

    async def test(_: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        async with connect(f"ws://127.0.0.1:{port}/v1/realtime") as link:
            await say(link, "conversation.item.create", item=ITEM, event_id="mine")
            error = (await until(link, "conversation.item.added", "error"))["error"]
            assert (error["code"], error["param"], error["event_id"]) == (
                "invalid_value",
                "item.content[1].type",
                "mine",
            )
            await say(link, "response.create", response={"output_modalities": ["text"]})
            assert (await until(link, "response.done"))["response"]["status"] == "completed"

    running(test)


def test_server_tells_what_is_left_of_the_limits() -> None:
    """Behind a response, from the same account that refuses the next one."""

    async def test(_: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        async with connect(f"ws://127.0.0.1:{port}/v1/realtime") as link:
            left = []
            for _answer in range(2):
                await say(link, "response.create", response={"output_modalities": ["text"]})
                assert (await until(link, "response.done"))["response"]["status"] == "completed"
                (limit,) = (await until(link, "rate_limits.updated"))["rate_limits"]
                left.append((limit["name"], limit["limit"], limit["remaining"]))
            assert left == [("requests", 2, 1), ("requests", 2, 0)]
            await say(link, "response.create", response={"output_modalities": ["text"]})
            assert (await until(link, "response.done"))["response"]["status"] == "failed"

    running(test, {"CHORALE_LIMITS__GOLD__REQUESTS": "2"})
