"""Keys in a running server: they come and go with their file, and take their tenants' links and limits with them."""

import asyncio
import os
import signal
from pathlib import Path

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from orchestrator.app import Application
from tests.configs.scraped import ask
from tests.test_app import readiness, running

ONE, TWO = "sk-one-0123456789", "sk-two-0123456789"
SECRETS = "/v1/realtime/client_secrets"


def entry(key: str, tenant: str, more: str = "") -> str:
    return f"- {{key: {key}, tenant: {tenant}{more}}}\n"


async def status(port: int, key: str) -> int:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        return (await client.post(SECRETS, headers={"Authorization": f"Bearer {key}"})).status_code


async def until_status(port: int, key: str, wanted: int) -> None:
    while await status(port, key) != wanted:  # noqa: ASYNC110 - a server tells nobody of its keys
        await asyncio.sleep(0.02)


async def end_of(link: ClientConnection) -> tuple[int, str]:
    try:
        while True:
            await link.recv()
    except ConnectionClosed as end:
        return (end.rcvd.code, end.rcvd.reason) if end.rcvd else (1006, "")


def speaking(port: int, key: str) -> connect:
    return connect(
        f"ws://127.0.0.1:{port}/v1/realtime",
        additional_headers={"Authorization": f"Bearer {key}"},
        proxy=None,
    )


def test_server_follows_its_key_file(tmp_path: Path) -> None:
    """A key is added, its limits hold, the other is withdrawn: its link is closed, a conversation by the new one goes
    on, and a file that is broken after that changes nothing."""
    file = tmp_path / "keys.yaml"
    file.write_text("keys:\n" + entry(ONE, "a"))

    async def test(_: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        async with speaking(port, ONE) as first:
            assert (await ask(first, "hello"))["status"] == "completed"
            assert await status(port, TWO) == 401
            file.write_text("keys:\n" + entry(ONE, "a") + entry(TWO, "b", ", limits: {requests: 1}"))
            await until_status(port, TWO, 200)
            async with speaking(port, TWO) as second:
                assert (await ask(second, "hello"))["status"] == "completed"
                assert (await ask(second, "again"))["status"] == "failed"
                file.write_text("keys:\n" + entry(TWO, "b"))
                assert await end_of(first) == (1008, "The key has been withdrawn.")
                assert await status(port, ONE) == 401
                file.write_text("keys: [")
                os.kill(os.getpid(), signal.SIGHUP)
                assert (await ask(second, "and now without limits"))["status"] == "completed"
                assert await status(port, TWO) == 200

    running(test, {"CHORALE_SERVER__KEY_FILE": str(file), "CHORALE_SERVER__KEY_POLL_S": "0.05"})


def test_server_keeps_links_of_a_withdrawn_key_if_it_is_told_to(tmp_path: Path) -> None:
    """`revoke: keep`: the key opens nothing more, and the conversation goes on."""
    file = tmp_path / "keys.yaml"
    file.write_text("keys:\n" + entry(ONE, "a"))

    async def test(_: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        async with speaking(port, ONE) as link:
            file.write_text("keys:\n" + entry(TWO, "a"))
            os.kill(os.getpid(), signal.SIGHUP)
            await until_status(port, ONE, 401)
            assert (await ask(link, "hello"))["status"] == "completed"

    running(
        test,
        {
            "CHORALE_SERVER__KEY_FILE": str(file),
            "CHORALE_SERVER__KEY_POLL_S": "3600",
            "CHORALE_SERVER__REVOKE": "keep",
        },
    )
