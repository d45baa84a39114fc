"""How healthy the server says it is."""

import asyncio
import contextlib
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from orchestrator.transports.routes import WorkerCondition
from orchestrator.transports.rpc import health
from tests.transports.rpc.calling import Running, against, build, refused
from tests.transports.running import until

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
        assert await call.read() is grpc.aio.EOF

    against(test)


def test_who_watches_is_told_of_the_end_before_it_comes() -> None:
    """Though the server ends at once, and nobody has looked since: NOT_SERVING, and then the end of the stream."""

    async def test(running: Running) -> None:
        call = stub_of(running).Watch(health_pb2.HealthCheckRequest())
        assert (await call.read()).status == SERVING
        stopping = asyncio.ensure_future(running.house.server.stop(5))
        assert (await call.read()).status == NOT_SERVING
        assert await call.read() is grpc.aio.EOF
        await stopping

    against(test)


def test_health_of_every_service_is_listed() -> None:
    """In one answer, the server itself as "" among them."""

    async def test(running: Running) -> None:
        messages: Any = health_pb2
        listed = await stub_of(running).List(messages.HealthListRequest())
        names = {
            "",
            "chorale.v1.Sessions",
            "grpc.health.v1.Health",
            "grpc.reflection.v1alpha.ServerReflection",
        }
        assert {name: one.status for name, one in listed.statuses.items()} == dict.fromkeys(names, SERVING)

    against(test)


def silent(running: Running, method: str, count: int) -> list[Any]:
    """Begins calls whose request never comes."""
    make: Any = running.channel.stream_unary(f"/grpc.health.v1.Health/{method}")
    return [make() for _ in range(count)]


def test_who_asks_for_health_and_says_nothing_takes_no_place_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody needs a key for it: many such calls, and still work is done and health is told; they are ended."""
    monkeypatch.setattr(health, "ASKED_WITHIN_S", 3_600.0)

    async def test(running: Running) -> None:
        asking = silent(running, "Check", 100) + silent(running, "Watch", 20)
        await until(lambda: running.house.requests.began_count == len(asking))
        await running.create()
        assert (await stub_of(running).Check(health_pb2.HealthCheckRequest())).status == SERVING
        ended = len(asking) - health.MOST_ASKING
        await until(lambda: len([one for one in asking if one.done()]) >= ended)
        for call in asking:
            if call.done():
                assert await call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            call.cancel()

    against(test, lambda: build(max_links=4))


def test_who_never_says_what_he_asks_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """DEADLINE_EXCEEDED; who says that he asks nothing, too much or noise: INVALID_ARGUMENT."""
    monkeypatch.setattr(health, "ASKED_WITHIN_S", 0.05)

    async def test(running: Running) -> None:
        (call,) = silent(running, "Check", 1)
        assert (await refused(call))[0] == "DEADLINE_EXCEEDED"
        (call,) = silent(running, "Check", 1)
        await call.done_writing()
        assert (await refused(call))[0] == "INVALID_ARGUMENT"
        check: Any = running.channel.unary_unary("/grpc.health.v1.Health/Check")
        for noise in (b"\x0a\x00" * 2_000, b"\xff" * 20):
            assert (await refused(check(noise)))[0] == "INVALID_ARGUMENT"

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
