"""Who was not let in is counted and told of, at the doors of event streams and of RPC too."""

import asyncio
import logging
from collections.abc import Iterable

import httpx
import pytest

from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from orchestrator.transports.sessions_http import SESSIONS
from tests.transports.rpc.calling import Conversation, refused
from tests.transports.rpc.calling import Running as Calling
from tests.transports.rpc.calling import against as against_grpc
from tests.transports.rpc.calling import build as build_grpc
from tests.transports.rpc.connecting import calling
from tests.transports.running import House, Running, against, build
from tests.transports.test_event_streams import Reader
from tests.transports.test_http import with_client
from tests.transports.test_sessions_http import keyed, opened


async def _to_the_end(talk: Conversation) -> None:
    while True:
        await talk.read()


def lines(records: Iterable[logging.LogRecord]) -> list[tuple[object, ...]]:
    """Returns tenant, kind and reason of each line."""
    wanted = [vars(one) for one in records if one.message == "refused"]
    return [(one["tenant"], one["kind"], one["reason"]) for one in wanted]


def test_streams_that_find_no_room_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Over the tenant's links; one without a key has no tenant to be named by."""
    caplog.set_level("INFO")

    async def test(running: Running) -> None:
        house = running.house
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}") as client:
            session, good = await opened(house, client)
            events = f"{SESSIONS}/{session.id}/events"
            async with Reader(running, session, **good) as one, Reader(running, session, **good) as two:
                await one.until("session.created")
                await two.until("session.created")
                assert (await client.get(events, headers=good)).status_code == 429
                assert (await client.get(events)).status_code == 401
        assert house.events.refused == 1

    against(test, keyed)
    assert lines(caplog.records) == [("acme", "link", "rate_limit_exceeded")]


def test_sessions_that_find_no_room_over_http_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    """As upgrades are that open one: full, and at the end of the server; a bad request is not."""
    caplog.set_level("INFO")

    async def test(house: House, client: httpx.AsyncClient) -> None:
        assert (await client.post(SESSIONS, json={"session": {"type": "no"}})).status_code == 400
        house.directory.capacity = 0
        assert (await client.post(SESSIONS)).status_code == 503
        house.entrance.close()
        assert (await client.post(SESSIONS)).status_code == 503
        assert house.events.refused == 2

    with_client(test, build)
    assert lines(caplog.records) == [
        ("local", "session", "rate_limit_exceeded"), ("local", "session", "server_shutting_down"),
    ]  # fmt: skip


def test_calls_of_grpc_that_find_no_room_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Streams over the door's bound, and sessions over the server's."""
    caplog.set_level("INFO")

    async def test(running: Calling) -> None:
        async with running.converse() as first:
            opened = await first.open()
            asked = pb.WatchRequest(session_id=opened.session_id, secret=opened.secret)
            assert (await refused(running.stub.Watch(asked).read()))[0] == "RESOURCE_EXHAUSTED"
            assert (await refused(running.stub.Create(pb.CreateRequest())))[0] == "RESOURCE_EXHAUSTED"
            assert (await refused(running.stub.Get(pb.GetRequest())))[0] == "NOT_FOUND"
        assert running.house.door.refused == 2

    against_grpc(test, lambda: build_grpc(max_links=1, capacity=1))
    assert lines(caplog.records) == [
        ("local", "link", "rate_limit_exceeded"), ("local", "session", "rate_limit_exceeded"),
    ]  # fmt: skip


def test_calls_of_connect_that_find_no_room_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    """By the same door as gRPC's."""
    caplog.set_level("INFO")

    async def test(running: Running) -> None:
        running.house.entrance.close()
        async with calling(running.port, "connect") as caller:
            with pytest.raises(Exception, match="shutting down"):
                await caller.create()
        assert running.house.streams.refused == 1

    against(test)
    assert lines(caplog.records) == [("local", "session", "server_shutting_down")]


@pytest.mark.parametrize("door", ["events", "rpc"])
def test_links_that_were_told_too_much_are_counted(door: str) -> None:
    """What telemetry shows as lost of private messages: the links that were closed for too many."""

    async def on_events(running: Running) -> None:
        house = running.house
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}") as client:
            session, good = await opened(house, client)
        async with Reader(running, session, **good) as reads:
            await reads.until("session.created")
            (link,) = session.links.values()
            for _ in range(300):
                link.tell(b'{"type":"error","event_id":"event_1"}')
            await reads.to_the_end()
        async with asyncio.timeout(120):
            await house.events.wait_empty()
        assert house.events.told() == (0, 0, 1)

    async def on_rpc(running: Calling) -> None:
        async with running.converse() as talk:
            await talk.open()
            (link,) = running.session.links.values()
            for _ in range(300):
                link.tell(b'{"type":"error"}')
            assert (await refused(_to_the_end(talk)))[0] == "RESOURCE_EXHAUSTED"
        async with asyncio.timeout(120):
            await running.house.door.wait_empty()
        assert running.house.door.told() == (0, 0, 1)

    if door == "events":
        against(on_events, keyed)
    else:
        against_grpc(on_rpc)
