"""A real scrape, after a conversation in which everything happened that metrics tell of."""

import asyncio
import json
from collections.abc import Callable
from functools import cache
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect

from orchestrator.app import Application
from tests.test_app import readiness, running


async def ask(link: ClientConnection, text: str) -> dict[str, Any]:
    """Says something and returns the response that came of it."""
    part = {"type": "input_text", "text": text}
    item = {"type": "message", "role": "user", "content": [part]}
    await link.send(json.dumps({"type": "conversation.item.create", "item": item}))
    await link.send(json.dumps({"type": "response.create"}))
    while (event := json.loads(await link.recv()))["type"] != "response.done":
        pass
    response: dict[str, Any] = event["response"]
    return response


async def scrape(port: int) -> str:
    """Returns what `/metrics` says."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        answer = await client.get("/metrics")
        assert answer.status_code == 200
        return answer.text


async def scraped_until(port: int, wanted: Callable[[str], bool]) -> str:
    """Scrapes until the text is as wanted."""
    async with asyncio.timeout(120):
        while not wanted(text := await scrape(port)):  # noqa: ASYNC110 - a scrape is asked, it does not tell
            await asyncio.sleep(0.02)
    return text


_LAST = ("\nchorale_turns_total", "\nchorale_limit_value", "\nchorale_worker_memory_share")
"""What comes a moment after the answer: the end of a turn, a worker's next sign of life."""


def scraped() -> str:
    """Returns a scrape after two turns, the second with what was cached of the first. Asked of one server, once: what
    went wrong there goes wrong for all who ask."""
    text, trouble = _scraped()
    assert not trouble
    return text


@cache
def _scraped() -> tuple[str, str]:
    texts: list[str] = []

    async def test(_: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        async with connect(f"ws://127.0.0.1:{port}/v1/realtime") as link:
            for words in ("hello", "and again"):
                assert (await ask(link, words))["status"] == "completed"
            texts.append(await scraped_until(port, lambda text: all(one in text for one in _LAST)))

    try:
        running(test, {"CHORALE_LIMITS__GOLD__LLM_TOKENS": "1000000"})
    except TimeoutError as error:
        return "", f"{error!r}: no scrape held {_LAST}"
    return texts[0], ""


def series_in(text: str) -> set[str]:
    """Returns the names of the series that a scrape holds."""
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return {line.partition("{")[0].partition(" ")[0] for line in lines}


def labels_in(text: str) -> dict[str, set[str]]:
    """Returns the labels of each series of a scrape, those that at least one of its lines has."""
    found: dict[str, set[str]] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, rest = line.partition("{")
            pairs = rest.rpartition("}")[0] if rest else ""
            labels = found.setdefault(name.partition(" ")[0], set())
            labels.update(pair.partition("=")[0].strip(",") for pair in pairs.split('",') if pair)
    return found
