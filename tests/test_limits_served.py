"""Limits in a running server: who has used up a quota is told so, and what each worker may have is known."""

import re

from websockets.asyncio.client import connect

from orchestrator.app import Application
from tests.configs.scraped import ask, scraped_until
from tests.test_app import readiness, running


def test_server_second_request_of_a_minute_is_refused_with_the_time_to_wait() -> None:
    """One request a minute: the second reply fails by the protocol's own means, also over a second connection."""

    async def test(_: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        async with connect(f"ws://127.0.0.1:{port}/v1/realtime") as first:
            assert (await ask(first, "hello"))["status"] == "completed"
            refused = await ask(first, "and again")
        async with connect(f"ws://127.0.0.1:{port}/v1/realtime") as second:
            also_refused = await ask(second, "hello from elsewhere")
        for response in (refused, also_refused):
            assert response["status"] == "failed"
            error = response["status_details"]["error"]
            assert error["code"] == "rate_limit_exceeded"

    running(test, {"CHORALE_LIMITS__GOLD__REQUESTS": "1"})


def test_server_tells_the_limit_and_the_memory_of_every_worker() -> None:
    """The policy that was asked for, in the worker's first figures; each process tells what it has in use."""

    async def test(_: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        text = await scraped_until(
            port, lambda text: "chorale_worker_memory_share" in text and "chorale_limit_value" in text
        )
        assert re.search(r'chorale_limit_value\{[^}]*chorale_policy="gradient"[^}]*\} 2\.0', text), text
        shares = re.findall(r"^chorale_worker_memory_share\{[^}]*\} (\S+)$", text, re.MULTILINE)
        assert shares
        assert all(0 < float(share) < 1 for share in shares)

    running(
        test,
        {"CHORALE_WORKERS__LLM__LIMIT": "{policy: gradient, base: 2}", "CHORALE_WORKERS__LLM__PARALLEL": "3"},
    )
