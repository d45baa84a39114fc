"""A written conversation with a running server over nothing but HTTP."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

from orchestrator.app import Application
from orchestrator.settings import load
from tests.test_app import SCRIPTED, free_port, readiness, running

ROOT = Path(__file__).parent.parent
TEXT = {"session": {"type": "realtime", "output_modalities": ["text"]}}


async def events(answer: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in answer.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


def message(text: str) -> list[dict[str, Any]]:
    content = [{"type": "input_text", "text": text}]
    item = {"id": "item_mine", "type": "message", "role": "user", "content": content}
    return [{"type": "conversation.item.create", "item": item}, {"type": "response.create"}]


def test_server_answers_in_writing_over_plain_http() -> None:
    """Asked by requests, answered on the stream; a reader that is cut in the middle of the reply and comes back has
    every event once; a request that is refused says why; the session ends when it is told to."""

    async def test(_: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60
        ) as client:
            opened = (await client.post("/v1/sessions", json=TEXT)).json()
            address = f"/v1/sessions/{opened['id']}"
            secret = {"Chorale-Session-Secret": opened["secret"]}
            came: list[dict[str, Any]] = []
            async with client.stream("GET", f"{address}/events", headers=secret) as stream:
                said = await client.post(f"{address}/events", json=message("hello"), headers=secret)
                assert (said.status_code, said.json()["accepted"]) == (202, 2)
                async for event in events(stream):
                    came.append(event)
                    if event["type"] == "response.output_text.delta":
                        break
            again = await client.post(f"{address}/events", json=message("hello"), headers=secret)
            assert (again.status_code, again.json()["accepted"]) == (400, 0)
            assert again.json()["error"]["code"] == "item_create_duplicate_item_id"
            back = {**secret, "Last-Event-ID": came[-1]["event_id"]}
            async with client.stream("GET", f"{address}/events", headers=back) as stream:
                async for event in events(stream):
                    if event["type"] != "session.created":
                        came.append(event)
                    if event["type"] == "response.done":
                        assert event["response"]["status"] == "completed"
                        break
            written = "".join(one["delta"] for one in came if one["type"] == "response.output_text.delta")
            (done,) = [one["text"] for one in came if one["type"] == "response.output_text.done"]
            assert written == done != ""
            numbers = [int(one["event_id"].rpartition("_")[2]) for one in came if "_p" not in one["event_id"]]
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
            assert (await client.delete(address, headers=secret)).status_code == 204
            while (await client.get(address, headers=secret)).status_code != 404:  # noqa: ASYNC110 - it ends in time
                await asyncio.sleep(0.02)
            gone = await client.get(f"{address}/events", headers=back)
            assert gone.status_code == 204

    running(test)


def test_sample_over_plain_http_prints_an_answer() -> None:
    """`samples/ask_http.py` needs Python alone."""

    async def test(_: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(ROOT / "samples/ask_http.py"),
            "hello",
            env={"CHORALE_URL": f"http://127.0.0.1:{port}"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, told = await process.communicate()
        assert (process.returncode, told) == (0, b"")
        assert len(out.split()) >= 1

    running(test)


def test_server_that_stops_ends_its_streams() -> None:
    """A reader's stream ends in good order, and the server waits for nothing more."""

    async def main() -> None:
        port = free_port()
        application = Application(load(None, SCRIPTED, {"server.port": port}))
        serving = asyncio.create_task(application.run())
        await readiness(port, lambda answer: answer.status_code == 200)
        kinds: list[str] = []
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60
        ) as client:
            opened = (await client.post("/v1/sessions", json=TEXT)).json()
            secret = {"Chorale-Session-Secret": opened["secret"]}
            async with client.stream("GET", f"/v1/sessions/{opened['id']}/events", headers=secret) as stream:
                async for event in events(stream):
                    if not kinds:
                        application.stop()
                    kinds.append(event["type"])
        assert kinds[0] == "session.created"
        async with asyncio.timeout(120):
            await serving
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
