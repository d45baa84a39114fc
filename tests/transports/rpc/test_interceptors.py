"""What every call of the gRPC server passes."""

import logging
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from orchestrator.observability.instrument import Call
from orchestrator.observability.traceparent import TraceParent
from orchestrator.scheduling.job import Tier
from orchestrator.transports.auth import Key, KeyRing, Principal, digest_of
from orchestrator.transports.rpc import interceptors
from orchestrator.transports.rpc.interceptors import headers_of
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from tests.transports.rpc.calling import House, Running, against, build, refused
from tests.transports.running import until

MARK = "sk-planted-marker-7f3a"


def keyed() -> House:
    """A house that only one key opens."""
    return build(KeyRing([Key(digest_of(MARK), Principal("alpha", Tier.GOLD))]))


def test_metadata_is_read_as_headers() -> None:
    """Names in lower case, texts only, and the last of several of one name."""
    metadata: list[tuple[str, str | bytes]] = [("A", "1"), ("b-bin", b"\x00"), ("a", "2")]
    assert headers_of(metadata) == {"a": "2"}
    assert headers_of(None) == {}


def test_every_call_is_told_once_it_has_ended() -> None:
    """Its method as the route, its status as that of HTTP, its version 2; a stream counts when it is over."""

    async def test(running: Running) -> None:
        heard = running.house.requests
        opened = await running.create()
        await refused(running.stub.Get(pb.GetRequest(session_id="sess_none")))
        async with running.converse() as talk:
            await talk.join(opened)
            assert (heard.began_count, len(heard.records)) == (3, 2)
        await until(lambda: len(heard.records) == 3)
        told = [(one.method, one.route, one.status, one.version, one.error) for one in heard.records]
        assert told == [
            ("POST", "/chorale.v1.Sessions/Create", 200, "2", ""),
            ("POST", "/chorale.v1.Sessions/Get", 404, "2", ""),
            ("POST", "/chorale.v1.Sessions/Converse", 499, "2", ""),
        ]
        assert all(one.duration_s >= 0 for one in heard.records)

    against(test)


def test_call_is_told_as_a_child_of_its_clients_span() -> None:
    """With its method and status; calls about health and those without a key are none."""
    remote = TraceParent(0xABC, 0xDEF, True)

    async def test(running: Running) -> None:
        heard = running.house.requests
        key = ("authorization", f"Bearer {MARK}")
        traced = ("traceparent", f"00-{0xABC:032x}-{0xDEF:016x}-01")
        await running.stub.Create(pb.CreateRequest(), metadata=(key, traced))
        await refused(running.stub.Get(pb.GetRequest(), metadata=(key,)))
        await refused(running.stub.Get(pb.GetRequest(), metadata=(traced,)))
        health: Any = health_pb2_grpc.HealthStub(running.channel)
        await health.Check(health_pb2.HealthCheckRequest(), metadata=(traced,))
        await until(lambda: len(heard.records) == 4)
        assert [one.call for one in heard.records] == [
            Call(system="grpc", method="chorale.v1.Sessions/Create", remote=remote, status="OK"),
            Call(system="grpc", method="chorale.v1.Sessions/Get", status="NOT_FOUND"),
            None,
            None,
        ]

    against(test, keyed)


def test_call_whose_time_is_up_is_told_as_such() -> None:
    """504 and not 499: its client did not leave. Its link is gone, and the session waits."""

    async def test(running: Running) -> None:
        opened = await running.create()
        asked = pb.WatchRequest(session_id=opened.session_id, secret=opened.secret)
        call = running.stub.Watch(asked, timeout=3)
        await call.read()
        await call.read()
        assert (await refused(call.read()))[0] == "DEADLINE_EXCEEDED"
        heard = running.house.requests
        await until(lambda: len(heard.records) == 2)
        assert heard.records[-1].status == 504
        await until(lambda: not running.session.links)
        assert running.session.ended is None

    against(test)


def test_fault_of_our_own_is_told_without_its_text(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """INTERNAL, "Internal error."; the log has the whole of it, and other calls go on."""

    async def test(running: Running) -> None:
        opened = await running.create()
        session = running.session
        monkeypatch.setattr(type(session), "read", lambda *_: 1 / 0)
        asked = pb.WatchRequest(session_id=opened.session_id, secret=opened.secret)
        call = running.stub.Watch(asked)
        await call.read()
        name, text, trailers = await refused(call.read())
        assert (name, text, trailers) == ("INTERNAL", "Internal error.", {})
        assert "ZeroDivisionError" in caplog.text
        assert running.house.requests.records[-1].error == "INTERNAL"
        assert not session.links
        await running.stub.Get(pb.GetRequest(session_id=opened.session_id, secret=opened.secret))

    against(test)


def test_log_has_a_line_for_each_call_and_none_of_its_secrets(caplog: pytest.LogCaptureFixture) -> None:
    """Method, status and address; never a key, a session's secret, or what was said."""
    caplog.set_level(logging.DEBUG)

    async def test(running: Running) -> None:
        key = (("authorization", f"Bearer {MARK}"), ("x-other", MARK))
        opened = await running.stub.Create(pb.CreateRequest(session='{"instructions":"psst"}'), metadata=key)
        named = pb.GetRequest(session_id=opened.session_id, secret=opened.secret)
        await running.stub.Get(named, metadata=key)
        bad = (("authorization", f"Bearer {MARK}x"),)
        await refused(running.stub.Get(named, metadata=bad))

        def lines_of() -> list[logging.LogRecord]:
            return [one for one in caplog.records if one.getMessage() == "/chorale.v1.Sessions/Get"]

        await until(lambda: len(lines_of()) == 2)  # written behind the answer
        lines = lines_of()
        written = "\n".join(f"{one.getMessage()} {vars(one)}" for one in caplog.records)
        assert [vars(one)["status"] for one in lines] == ["OK", "UNAUTHENTICATED"]
        assert "127.0.0.1" in vars(lines[0])["client"]
        for secret in (MARK, opened.secret, "psst"):
            assert secret not in written

    against(test, keyed)


def test_health_needs_no_key_and_reflection_does() -> None:
    """Who balances load has no key; what the server can do is shown to those who may use it."""

    async def test(running: Running) -> None:
        health: Any = health_pb2_grpc.HealthStub(running.channel)
        await health.Check(health_pb2.HealthCheckRequest())
        make: Any = reflection_pb2_grpc.ServerReflectionStub  # typed for threaded channels only
        reflection = make(running.channel)
        asked = reflection_pb2.ServerReflectionRequest(list_services="")
        call = reflection.ServerReflectionInfo(iter([asked]))
        assert (await refused(call.read()))[0] == "UNAUTHENTICATED"
        key = (("authorization", f"Bearer {MARK}"),)
        answer = await reflection.ServerReflectionInfo(iter([asked]), metadata=key).read()
        assert [one.name for one in answer.list_services_response.service] == [
            "chorale.v1.Sessions", "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection",
        ]  # fmt: skip

    against(test, keyed)


def test_method_that_is_not_there_is_said_to_be_missing() -> None:
    """UNIMPLEMENTED, with a key and without one."""

    async def test(running: Running) -> None:
        nothing: Any = running.channel.unary_unary("/chorale.v1.Sessions/Nothing")
        assert (await refused(nothing(b"")))[0] == "UNIMPLEMENTED"
        assert (await refused(nothing(b"", metadata=(("authorization", f"Bearer {MARK}"),))))[
            0
        ] == "UNIMPLEMENTED"

    against(test, keyed)


def test_tenant_has_so_many_calls_at_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more is refused before it is read, and told when to come back; another tenant's is not; places come free."""
    monkeypatch.setattr(interceptors, "MOST_CALLS", 3)
    other = Key(digest_of("sk-other"), Principal("beta", Tier.GOLD))

    async def test(running: Running) -> None:
        key, others = (("authorization", f"Bearer {MARK}"),), (("authorization", "Bearer sk-other"),)
        make: Any = running.channel.stream_unary("/chorale.v1.Sessions/Send")
        silent = [make(metadata=key) for _ in range(3)]
        await until(lambda: running.house.requests.began_count == 3)
        name, _, trailers = await refused(running.stub.Get(pb.GetRequest(), metadata=key))
        assert (name, trailers["retry-after-ms"]) == ("RESOURCE_EXHAUSTED", "1000")
        assert running.house.door.refused == 1
        await running.stub.Create(pb.CreateRequest(), metadata=others)
        async with running.converse(authorization=f"Bearer {MARK}") as talk:
            await talk.open()
        for call in silent:
            call.cancel()
        await until(lambda: len(running.house.requests.records) >= 6)
        assert (await refused(running.stub.Get(pb.GetRequest(), metadata=key)))[0] == "NOT_FOUND"

    against(test, lambda: build(KeyRing([Key(digest_of(MARK), Principal("alpha", Tier.GOLD)), other])))


def test_message_of_who_has_no_key_is_not_read() -> None:
    """Refused before it has come: one that is too large for the server is not even found to be."""

    async def test(running: Running) -> None:
        options = (("grpc.max_send_message_length", -1),)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{running.port}", options=options) as channel:
            for name in ("Get", "Send"):
                call: Any = channel.unary_unary(f"/chorale.v1.Sessions/{name}")
                assert (await refused(call(b"x" * 22_100_000)))[0] == "UNAUTHENTICATED"
            watch: Any = channel.unary_stream("/chorale.v1.Sessions/Watch")
            assert (await refused(watch(b"x" * 22_100_000).read()))[0] == "UNAUTHENTICATED"

    against(test, keyed)
