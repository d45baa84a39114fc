"""What the server says of how it is doing."""

import httpx

from orchestrator.transports.routes import ServiceCondition, WorkerCondition
from tests.transports.running import House
from tests.transports.test_http import keyed, with_client


def test_health_is_not_readiness() -> None:
    """`/healthz` is fine as soon as the process runs; `/readyz` names each worker and why it is not ready."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        house.readiness.workers = [
            WorkerCondition("asr", "ready", True),
            WorkerCondition("llm", "starting", False, "loading the model"),
        ]
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        waiting = await client.get("/readyz")
        assert waiting.status_code == 503
        assert waiting.json() == {
            "ready": False,
            "draining": False,
            "service": {"level": 0, "degraded": False, "since_s": None},
            "workers": [
                {"name": "asr", "state": "ready", "ready": True, "reason": None},
                {"name": "llm", "state": "starting", "ready": False, "reason": "loading the model"},
            ],
        }
        house.readiness.workers = [
            WorkerCondition("asr", "ready", True),
            WorkerCondition("llm", "ready", True),
        ]
        assert (await client.get("/readyz")).status_code == 200
        assert (await client.head("/readyz")).status_code == 200

    with_client(test, keyed)


def test_a_server_that_leaves_things_out_is_ready_and_says_so() -> None:
    """Taking it out of a balancer would put its load on the others: operators read the level, balancers the status."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        house.readiness.served = ServiceCondition(3, True, 12.5)
        answer = await client.get("/readyz")
        assert answer.status_code == 200
        assert answer.json()["service"] == {"level": 3, "degraded": True, "since_s": 12.5}

    with_client(test, keyed)
