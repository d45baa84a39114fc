"""How healthy the server says it is."""

import asyncio
import contextlib
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from orchestrator.transports.routes import WorkerCondition
from orchestrator.transports.rpc import health
from tests.transports.rpc.calling import Running, against, refused

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
SERVICE_UNKNOWN = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN


def stub_of(running: Running) -> Any:
    """A client; its types leave out what it can do."""
    return health_pb2_grpc.HealthStub(running.channel)


def test_health_follows_readiness() -> None:
    """As `/readyz`: every worker is ready and nothing drains; the same for the server and for each service."""

    async def test(running: Running) -> None:
        stub, house = stub_of(running), running.house
        for service in ("", "chorale.v1.Sessions", "grpc.health.v1.Health"):
            asked = health_pb2.HealthCheckRequest(service=service)
            assert (await stub.Check(asked)).status == SERVING
            house.readiness.workers.append(WorkerCondition("llm", "starting", False))
            assert (await stub.Check(asked)).status == NOT_SERVING
            house.readiness.workers.pop()
        house.entrance.close()
        assert (await stub.Check(health_pb2.HealthCheckRequest())).status == NOT_SERVING

    against(test)


def test_service_that_is_not_there_has_no_health() -> None:
    """NOT_FOUND for who asks once, SERVICE_UNKNOWN for who watches, as the protocol of health has it."""

    async def test(running: Running) -> None:
        stub = stub_of(running)
        asked = health_pb2.HealthCheckRequest(service="nobody")
        assert (await refused(stub.Check(asked)))[0] == "NOT_FOUND"
        call = stub.Watch(asked)
        assert (await call.read()).status == SERVICE_UNKNOWN
        call.cancel()

    against(test)


def test_who_watches_is_told_of_changes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once at the beginning, and then at each change; the end of the server ends the watching too."""
    monkeypatch.setattr(health, "_LOOK_EVERY_S", 0.01)

    async def test(running: Running) -> None:
        stub, house = stub_of(running), running.house
        call = stub.Watch(health_pb2.HealthCheckRequest())
        assert (await call.read()).status == SERVING
        reading = asyncio.ensure_future(call.read())
        await asyncio.sleep(0.1)
        assert not reading.done()
        house.entrance.close()
        assert (await reading).status == NOT_SERVING
        await house.server.stop(5)
        with pytest.raises(grpc.aio.AioRpcError):
            await call.read()

    against(test)


def test_watchers_do_not_take_the_places_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """They need no key, so they are few: one more is refused until one leaves."""
    monkeypatch.setattr(health, "MOST_WATCHERS", 2)

    async def test(running: Running) -> None:
        stub = stub_of(running)
        calls = [stub.Watch(health_pb2.HealthCheckRequest()) for _ in range(2)]
        for one in calls:
            assert (await one.read()).status == SERVING
        assert (await refused(stub.Watch(health_pb2.HealthCheckRequest()).read()))[0] == "RESOURCE_EXHAUSTED"
        calls.pop().cancel()
        first = None
        while first is None:
            again = stub.Watch(health_pb2.HealthCheckRequest())
            with contextlib.suppress(
                grpc.aio.AioRpcError
            ):  # the server learns in its own time that one has left
                first = await again.read()
        assert first.status == SERVING
        for one in (*calls, again):
            one.cancel()

    against(test)
