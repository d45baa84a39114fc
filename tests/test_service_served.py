"""What a running server leaves out: clients and operators see it, and it is all there again afterwards."""

import json

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from orchestrator.app import Application
from orchestrator.flow.shedding import Sheddable
from orchestrator.observability.instrument import Ending, TurnRecord
from tests.configs.scraped import ask, scraped_until
from tests.test_app import readiness, running


def fail_turns(application: Application, count: int = 100) -> None:
    """So many turns end badly now."""
    now = application._clock.now_us()
    for turn in range(count):
        application._serving.turn(
            TurnRecord(
                session_id="x", conversation_id="", turn=turn, tier=3, modality="text", began_us=now, ended_us=now,
                outcome=Ending.FAILED, error="worker_failed",
            )
        )  # fmt: skip


def test_server_goes_easy_on_itself_and_says_so() -> None:
    """After a hundred failed turns: ready all the same, degraded in `/readyz` and `/metrics`; a reply is text without a
    voice, and is no failure."""

    async def test(application: Application, port: int) -> None:
        before = await readiness(port, lambda answer: answer.status_code == 200)
        assert before.json()["service"] == {"level": 0, "degraded": False, "since_s": None}
        fail_turns(application)
        after = await readiness(port, lambda answer: answer.json()["service"]["degraded"])
        assert (after.status_code, after.json()["service"]["level"]) == (200, 2)
        assert after.json()["service"]["since_s"] >= 0
        async with connect(f"ws://127.0.0.1:{port}/v1/realtime") as link:
            assert (await ask(link, "hello"))["status"] == "completed"
        text = await scraped_until(port, lambda text: 'chorale_shed_total{chorale_shed_what="speech"' in text)
        assert "\nchorale_service_degraded" in text
        assert application._serving.statistics().shed[Sheddable.SPEECH] >= 1

    running(test)


def test_server_opens_no_session_where_there_is_too_much_to_do() -> None:
    """A queue at its mark: 503 with the time to come back, though there are places for sessions; once it is empty
    they are opened again."""

    async def test(application: Application, port: int) -> None:
        await readiness(port, lambda answer: answer.status_code == 200)
        queue = application._dispatcher._scheduler.queue
        waiting = 0
        while queue.admit("llm", 3, 0, 0, 0):
            waiting += 1
        full = await readiness(port, lambda answer: answer.json()["service"]["level"] == 4)
        assert full.status_code == 200
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"ws://127.0.0.1:{port}/v1/realtime")
        assert refused.value.response.status_code == 503
        assert refused.value.response.headers["Retry-After"] == "2"
        for _ in range(waiting):
            queue.withdrawn("llm", 3, 0)
        await readiness(port, lambda answer: answer.json()["service"]["level"] < 4)
        async with connect(f"ws://127.0.0.1:{port}/v1/realtime") as link:
            assert json.loads(await link.recv())["type"] == "session.created"

    running(test)
