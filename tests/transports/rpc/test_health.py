"""How healthy the server says it is."""

import asyncio
import contextlib
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from orchestrator.transports.routes import WorkerCondition
from orchestrator.transports.rpc import health
from orchestrator.transports.rpc import service as rpc_service
from tests.transports.rpc.calling import Running, against, build, refused

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


@pytest.mark.parametrize("method", ["Check", "Watch"])
def test_calls_that_never_ask_do_not_take_the_places_of_others(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They need no key: three hundred that have begun and say nothing leave room for everybody else, and end."""
    monkeypatch.setattr(rpc_service, "FIRST_WITHIN_S", 3.0)

    async def test(running: Running) -> None:
        own = (("grpc.use_local_subchannel_pool", 1),)
        address = f"127.0.0.1:{running.port}"
        channels = [grpc.aio.insecure_channel(address, options=own) for _ in range(3)]
        calls: list[Any] = [
            channel.stream_stream(f"/grpc.health.v1.Health/{method}")()
            for channel in channels
            for _ in range(100)
        ]
        ended = [asyncio.ensure_future(one.code()) for one in calls]
        await asyncio.wait(
            ended, return_when=asyncio.FIRST_COMPLETED
        )  # they have come, and some are too many
        await running.create()
        codes = {code.name for code in await asyncio.gather(*ended)}
        assert codes == {"RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED"}
        assert (await stub_of(running).Check(health_pb2.HealthCheckRequest())).status == SERVING
        for channel in channels:
            await channel.close()

    against(test, lambda: build(max_links=4))


def test_question_that_is_none_is_the_clients_fault() -> None:
    """INVALID_ARGUMENT for bytes that are no message, and for a call that ends without one."""

    async def test(running: Running) -> None:
        check: Any = running.channel.unary_unary("/grpc.health.v1.Health/Check")
        assert (await refused(check(b"\xff\xff")))[0] == "INVALID_ARGUMENT"
        silent: Any = running.channel.stream_unary("/grpc.health.v1.Health/Check")
        assert (await refused(silent(iter(()))))[0] == "INVALID_ARGUMENT"

    against(test)
