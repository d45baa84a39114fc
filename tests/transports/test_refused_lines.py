"""Whoever finds no room is told of in the log, and counted, whichever door he came to."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import httpx
import pytest
from connectrpc.errors import ConnectError

from orchestrator.errors import Overloaded
from orchestrator.flow.tenants import Allowance
from orchestrator.scheduling.job import Tier
from orchestrator.transports.auth import Key, KeyRing, Principal, digest_of
from orchestrator.transports.sessions_http import SESSIONS
from tests.transports.asking import Asked, asking
from tests.transports.rpc.connecting import calling
from tests.transports.running import House, Running, against, build
from tests.transports.test_http import CALLS, OFFER, SDP, SECRETS, with_client

ACME = Principal("acme", Tier.GOLD, allowance=Allowance(links=1))
RING = KeyRing([Key(digest_of("sk-acme"), ACME)])
BEARER = {"Authorization": "Bearer sk-acme"}


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Callable[[], list[tuple[str, str, str]]]:
    """Returns who was told of, with what and why."""
    caplog.set_level("INFO")
    return lambda: [
        (one.__dict__["tenant"], one.__dict__["kind"], one.__dict__["reason"])
        for one in caplog.records
        if one.message == "refused"
    ]


async def new_session(house: House, client: httpx.AsyncClient) -> None:
    house.directory.capacity = 0
    assert (await client.post(SESSIONS, headers=BEARER)).status_code == 503


async def new_call(house: House, client: httpx.AsyncClient) -> None:
    house.calls.error = Overloaded("too many calls", 1.0)
    assert (await client.post(CALLS, content=OFFER, headers={**BEARER, **SDP})).status_code == 503


async def returning_call(house: House, client: httpx.AsyncClient) -> None:
    await client.post(SESSIONS, headers=BEARER)
    session = house.directory.sessions[-1]
    house.calls.error = Overloaded("too many calls", 1.0)
    back = f"{CALLS}?session_id={session.id}&secret={session.secret}"
    assert (await client.post(back, content=OFFER, headers={**BEARER, **SDP})).status_code == 503


async def new_secret(_: House, client: httpx.AsyncClient) -> None:
    asked = {"session": {"type": "realtime"}, "chorale": {"uses": 1}}
    assert (await client.post(SECRETS, json=asked, headers=BEARER)).status_code == 429


async def new_stream(house: House, client: httpx.AsyncClient) -> None:
    await client.post(SESSIONS, headers=BEARER)
    session = house.directory.sessions[-1]
    principal = house.entrance.admit({"authorization": "Bearer sk-acme"})
    with house.entrance.link(principal):
        answer = await client.get(
            f"{SESSIONS}/{session.id}/events", headers={**BEARER, "Chorale-Session-Secret": session.secret}
        )
    assert (answer.status_code, house.events.refused) == (429, 1)


@pytest.mark.parametrize(
    ("ask", "kind"),
    [
        (new_session, "session"),
        (new_call, "call"),
        (returning_call, "call"),
        (new_secret, "secret"),
        (new_stream, "link"),
    ],
)
def test_request_that_finds_no_room_is_told_of(
    ask: Callable[[House, httpx.AsyncClient], Awaitable[None]],
    kind: str,
    told: Callable[[], list[tuple[str, str, str]]],
) -> None:
    """A session, a call, one that comes back, a client secret and a stream of events."""
    with_client(ask, lambda: build(RING, max_secrets=1))
    assert told() == [("acme", kind, "rate_limit_exceeded")]


def test_call_of_a_server_that_ends_is_told_of(told: Callable[[], list[tuple[str, str, str]]]) -> None:
    """Though it is refused before its offer is read."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        house.entrance.close()
        assert (await client.post(CALLS, content=OFFER, headers={**BEARER, **SDP})).status_code == 503

    with_client(test, lambda: build(RING))
    assert told() == [("acme", "call", "server_shutting_down")]


def test_rpc_that_finds_no_room_is_told_of(told: Callable[[], list[tuple[str, str, str]]]) -> None:
    """A session that is asked for by itself, and a stream, which is counted too."""

    async def test(running: Running) -> None:
        async with calling(running.port, "connect", "sk-acme") as caller:
            opened = await caller.create()
            running.house.directory.capacity = 0
            with pytest.raises(ConnectError):
                await caller.create()
            with (
                running.house.entrance.link(
                    running.house.entrance.admit({"authorization": "Bearer sk-acme"})
                ),
                suppress(ConnectError),
            ):
                async for _ in caller.watch(opened):
                    raise AssertionError("there was room")
        assert running.house.streams.refused == 2

    against(test, lambda: build(RING))
    assert told() == [
        ("acme", "session", "rate_limit_exceeded"),
        ("acme", "link", "rate_limit_exceeded"),
    ]


def test_openai_request_that_finds_no_room_is_told_of(
    told: Callable[[], list[tuple[str, str, str]]],
) -> None:
    """Over the quota though its work costs nothing by itself, and while the server ends."""

    async def test(asked: Asked) -> None:
        async with asked.http(**BEARER) as client:
            statuses = [
                (await client.post("/v1/embeddings", json={"input": "one", "model": "vectors"})).status_code
                for _ in range(2)
            ]
            assert statuses == [200, 429]
            asked.running.house.entrance.close()
            assert (await client.post("/v1/embeddings", json={"input": "one"})).status_code == 503

    asking(test, ring=RING, requests=1)
    assert told() == [("acme", "request", "tenant_limit"), ("acme", "request", "server_shutting_down")]
