"""What secrets a request carries, wherever it carries them, no line of log and no answer shows them."""

import asyncio
import contextlib
import io
import logging
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from orchestrator.observability import logs
from orchestrator.scheduling.job import Tier
from orchestrator.transports.auth import Key, KeyRing, Principal, digest_of
from tests.transports.running import Running, against, build, heard, refusal
from tests.transports.test_http import CALLS, OFFER, SDP, SECRETS

MARK = "Zq7MARKEDxW"
"""Part of every secret below; that some look like secrets and some do not is the point."""

GOOD = f"sk-{MARK}-good-0123456789"
WRONG = (f"sk-{MARK}-wrong", f"{MARK}plain", f"ek_{MARK}" + "A" * 93)
RING = KeyRing([Key(digest_of(GOOD), Principal("acme", Tier.GOLD))])


@pytest.fixture
def log() -> Iterator[Callable[[], str]]:
    """Returns all that this process has logged meanwhile, as it would be written, and logs no more."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    stream = io.StringIO()
    opened = logs.configure("debug", "json", stream)

    with contextlib.ExitStack() as closing:
        closing.callback(opened.close)

        def written() -> str:
            closing.close()
            return stream.getvalue()

        yield written
    for handler in before:
        root.addHandler(handler)
    root.setLevel(level)


def test_no_secret_is_logged_or_answered(log: Callable[[], str]) -> None:
    """Keys in headers and subprotocols, secrets of clients and sessions in headers, subprotocols and addresses: taken
    or refused, over HTTP and WebSocket."""
    answers: list[str] = []

    async def test(running: Running) -> None:
        address = f"http://127.0.0.1:{running.port}"
        async with httpx.AsyncClient(base_url=address) as client:
            for key in (GOOD, *WRONG):
                carried = {
                    "Authorization": f"Bearer {key}",
                    "Chorale-Session-Secret": f"rs_{MARK}",
                    "Cookie": f"session={MARK}",
                }
                for method, path in (
                    ("GET", "/healthz"),
                    ("GET", f"/v1/realtime?secret=rs_{MARK}"),
                    ("GET", f"/nowhere?api_key={MARK}&token={MARK}"),
                    ("POST", f"{CALLS}?session_id=sess_1&secret={MARK}&after=x"),
                    ("POST", f"{CALLS}/rtc_1/hangup?key={MARK}"),
                    ("PUT", f"{SECRETS}?secret={MARK}"),
                ):
                    answer = await client.request(method, path, headers={**SDP, **carried}, content=OFFER)
                    answers.append(answer.text + str(answer.headers))
                bad = await client.post(SECRETS, headers=carried, json={"session": 7})
                answers.append(bad.text)
                answers.append((await client.options(CALLS, headers={**carried, "Origin": f"x{MARK}"})).text)
        for carried_by in (
            {"key": f"sk-{MARK}-wrong"},
            {"subprotocols": ("realtime", f"openai-insecure-api-key.{MARK}")},
            {"query": f"?session_id=sess_1&secret={MARK}", "key": GOOD},
            {"subprotocols": ("realtime", f"chorale-session-secret.{MARK}")},
        ):
            options: dict[str, Any] = dict(carried_by)
            _, error = await refusal(running, **options)
            answers.append(str(error))
        async with running.connect(f"?model=m&key={MARK}", key=GOOD) as link:
            await heard(link)
            await link.send(f'{{"type": "session.update", "event_id": 7, "secret": "{MARK}"')
            answers.append(str(await asyncio.wait_for(link.recv(), 30)))

    against(test, lambda: build(RING))
    logged = log()
    assert "/nowhere" in logged
    assert logged.count('"logger"') > 30
    assert MARK not in logged
    assert not [one for one in answers if MARK in one]
