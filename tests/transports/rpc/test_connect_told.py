"""What is told of calls of gRPC-Web and Connect: to telemetry, to the log, and to their clients where they fail."""

import httpx
import pytest
from connectrpc.code import Code

from orchestrator.observability.traceparent import TraceParent
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from tests.transports.fake_sessions import FakeSession
from tests.transports.rpc.calling import Heard
from tests.transports.rpc.connecting import Caller, calling
from tests.transports.rpc.test_connect import GET, each_way, leave, newest, read, refused
from tests.transports.running import Running, against, build, until


@pytest.mark.parametrize(("way", "system"), [("connect", "connectrpc"), ("gRPC-Web", "grpc")])
def test_calls_are_told_by_method_as_those_of_grpc(way: str, system: str) -> None:
    """Requests are counted by the method that was called, as children of the client's span; how a stream ended is told
    too; methods that are not there are not told apart."""
    heard = Heard()

    async def main(running: Running) -> None:
        async with calling(running.port, way) as caller:
            opened = await caller.create()
            await refused(caller.get("x", "y"))
            messages = caller.watch(opened)
            await read(messages, 2)
            await leave(messages)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}", trust_env=False) as client:
            await client.post("/chorale.v1.Sessions/Nothing", json={})
            await client.post(GET, json={}, headers={"traceparent": f"00-{7:032x}-{8:016x}-01"})
        await until(lambda: len(heard.records) == 5)
        told = {(one.route, one.call.status) if one.call else one.route for one in heard.records}
        assert told == {
            ("/chorale.v1.Sessions/Create", "OK"),
            ("/chorale.v1.Sessions/Get", "NOT_FOUND"),
            ("/chorale.v1.Sessions/Watch", "CANCELLED"),
            "",
        }
        calls = [one.call for one in heard.records if one.call is not None]
        assert {one.system for one in calls[:3]} == {system}
        assert calls[-1].remote == TraceParent(7, 8, True)

    against(main, lambda: build(requests=heard))


def test_call_over_http_whose_time_is_up_is_told_as_such() -> None:
    """DEADLINE_EXCEEDED, to its client and to who counts."""
    heard = Heard()

    async def main(running: Running) -> None:
        async with calling(running.port, "connect") as caller:
            opened = await caller.create()
        message = pb.WatchRequest(session_id=opened.session_id, secret=opened.secret).SerializeToString()
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}", trust_env=False) as client:
            headers = {"content-type": "application/grpc-web+proto", "grpc-timeout": "200m"}
            body = b"\0" + len(message).to_bytes(4, "big") + message
            answer = await client.post("/chorale.v1.Sessions/Watch", content=body, headers=headers)
            assert b"grpc-status: 4\r" in answer.content
        await until(lambda: len(heard.records) == 2)
        assert heard.records[-1].call is not None
        assert heard.records[-1].call.status == "DEADLINE_EXCEEDED"
        await until(lambda: not newest(running).links)

    against(main, lambda: build(requests=heard))


def test_fault_of_our_own_is_told_without_its_text(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """INTERNAL in words that say nothing; the log has the whole of it."""

    async def test(running: Running, caller: Caller) -> None:
        opened = await caller.create()
        monkeypatch.setattr(FakeSession, "read", lambda *_: 1 / 0)
        messages = caller.watch(opened)
        await read(messages, 1)
        error = await refused(anext(messages))
        assert (error.code, error.message) == (Code.INTERNAL, "Internal error.")
        monkeypatch.setattr(running.house.directory, "by_id", lambda *_: 1 / 0)
        error = await refused(caller.get("x", "y"))
        assert (error.code, error.message) == (Code.INTERNAL, "Internal error.")
        assert caplog.text.count("ZeroDivisionError") == 2

    each_way(test, "connect")


def test_error_of_ours_is_a_status_and_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    """An expected refusal leaves no stack in the log."""

    async def test(running: Running, caller: Caller) -> None:
        assert (await refused(caller.get("x", "y"))).code is Code.NOT_FOUND
        assert not [one for one in caplog.records if one.exc_info]

    each_way(test, "connect")
