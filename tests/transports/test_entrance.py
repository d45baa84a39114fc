"""Who may come in: with which key, from where, how often wrong, and how many of a tenant at one time."""

import asyncio
import json
from collections.abc import Mapping

import httpx
import pytest

from orchestrator.clock import US_PER_S
from orchestrator.errors import Overloaded, Unauthorized
from orchestrator.flow.tenants import Allowance
from orchestrator.scheduling.job import Tier
from orchestrator.transports.attempts import ALLOWED
from orchestrator.transports.auth import LOCAL, Gate, Key, KeyRing, Principal, SecretBook, digest_of
from orchestrator.transports.entrance import KEY_WITHDRAWN, Entrance
from orchestrator.transports.proxies import Caller, Proxies, calling
from orchestrator.transports.refusals import Refusal, ShuttingDown
from tests.transports.running import Running, against, build, closed, heard, refusal, until
from tests.transports.test_http import CALLS, OFFER, SDP, error_of, with_client

ACME = Principal("acme", Tier.GOLD, allowance=Allowance(sessions=2, links=2))
RING = KeyRing([Key(digest_of("sk-acme"), ACME), Key(digest_of("sk-lab"), Principal("lab", Tier.SILVER))])
GOOD = {"authorization": "Bearer sk-acme"}
WRONG = {"authorization": "Bearer sk-nobody"}
FAR = Caller("203.0.113.7")


class HandClock:
    """Moves when it is told."""

    def __init__(self) -> None:
        self.us = 0

    def now_us(self) -> int:
        return self.us


def entrance(clock: HandClock | None = None) -> Entrance:
    return Entrance(Gate(RING, SecretBook(8)), ("loopback",), (), clock or HandClock(), wall_us=lambda: 1)


def status_of(door: Entrance, headers: Mapping[str, str], who: Caller = FAR) -> int:
    with calling(who):
        try:
            door.admit(headers)
        except Unauthorized:
            return 401
        except Refusal as refused:
            return refused.status
    return 200


def test_wrong_keys_from_one_address_are_limited() -> None:
    """After ten in a minute not even a right one is looked at, there; elsewhere it is; and after the wait again."""
    clock = HandClock()
    door = entrance(clock)
    assert [status_of(door, WRONG) for _ in range(ALLOWED + 1)] == [401] * (ALLOWED + 1)
    assert status_of(door, WRONG) == 429
    assert status_of(door, GOOD) == 429
    assert status_of(door, GOOD, Caller("203.0.113.8")) == 200
    clock.us = 2 * US_PER_S
    assert status_of(door, GOOD) == 200
    assert status_of(door, WRONG) == 401
    assert status_of(door, WRONG) == 429


def test_limited_address_is_told_when_to_come_back() -> None:
    """The refusal names whole seconds."""
    door = entrance()
    for _ in range(ALLOWED + 1):
        status_of(door, WRONG)
    with calling(FAR), pytest.raises(Refusal) as caught:
        door.admit(GOOD)
    assert (caught.value.headers, caught.value.wire_code) == ({"Retry-After": "2"}, "too_many_attempts")


@pytest.mark.parametrize(
    "who",
    [
        Caller("127.0.0.1"),
        Caller("127.0.0.1", hidden=True),
        Caller(),
        Caller("10.0.0.7", by_proxy=True, unnamed=True),
    ],
)
def test_addresses_that_may_be_everybodys_are_not_limited(who: Caller) -> None:
    """A proxy that nobody told us of: one bad client of it is not to lock out all."""
    door = entrance()
    assert {status_of(door, WRONG, who) for _ in range(3 * ALLOWED)} == {401}
    assert status_of(door, GOOD, who) == 200


def test_no_key_is_no_wrong_key() -> None:
    """Who shows none is told so, as often as he likes."""
    door = entrance()
    assert {status_of(door, {}) for _ in range(3 * ALLOWED)} == {401}
    assert status_of(door, GOOD) == 200


def test_client_secrets_that_are_wrong_count_too() -> None:
    """A forged one is a guess like any other."""
    door = entrance()
    for _ in range(ALLOWED + 1):
        status_of(door, {"sec-websocket-protocol": "openai-insecure-api-key.ek_nothing"})
    assert status_of(door, GOOD) == 429


def test_links_of_a_tenant_are_bounded_and_come_free() -> None:
    """The third waits until one has gone; another tenant is not asked; a broken one gives its place back."""
    door = entrance()
    acme, lab = door.admit(GOOD), door.admit({"authorization": "Bearer sk-lab"})
    with door.link(acme):
        with pytest.raises(ZeroDivisionError), door.link(acme):
            raise ZeroDivisionError
        with door.link(acme), door.link(lab):
            with pytest.raises(Overloaded) as caught, door.link(acme):
                pass
            assert caught.value.is_tenant
        with door.link(acme):
            pass


def test_withdrawn_key_closes_its_links_only() -> None:
    """Those that came by it are closed with a policy's code; one that has left already is not."""
    door = entrance()
    acme, lab = door.admit(GOOD), door.admit({"authorization": "Bearer sk-lab"})
    said: list[tuple[str, int, str]] = []
    with door.link(acme) as early:
        early.close = lambda code, reason: said.append(("early", code, reason))
    with door.link(acme) as one, door.link(lab) as other:
        one.close = lambda code, reason: said.append(("acme", code, reason))
        other.close = lambda code, reason: said.append(("lab", code, reason))
        door.withdraw(frozenset({acme.key_id}))
    assert said == [("acme", 1008, KEY_WITHDRAWN)]


def test_nothing_begins_by_a_key_that_has_been_withdrawn_meanwhile() -> None:
    """Taken out of the file or given to another tenant, its secrets too; another tier is no harm. Uses are left."""
    door = entrance()
    mine = door.admit(GOOD)
    once = door.admit({"authorization": f"Bearer {door.make_secret(mine, None, 600, 1).value}"})
    for ring in (
        KeyRing([Key(digest_of("sk-lab"), Principal("lab", Tier.GOLD))]),
        KeyRing([Key(digest_of("sk-acme"), Principal("lab", Tier.GOLD))]),
    ):
        door.gate.replace(ring)
        for who in (mine, once):
            for begins in (door.beginning, door.link):
                with pytest.raises(Unauthorized, match="withdrawn"), begins(who):
                    pass
    door.gate.replace(KeyRing([Key(digest_of("sk-acme"), Principal("acme", Tier.SILVER))]))
    for who in (mine, once):
        with door.beginning(who):
            pass


def test_who_finds_no_room_is_counted_and_told_of() -> None:
    """With what there was no room for; who may never come in is neither, nor is what goes wrong otherwise."""
    door, counted = entrance(), 0

    def count() -> None:
        nonlocal counted
        counted += 1

    for error in (Overloaded("full", 1.5), ShuttingDown(), Unauthorized("no"), ZeroDivisionError()):
        with pytest.raises(type(error)), door.telling("acme", "session", count):
            raise error
    with door.telling("acme", "session", count):
        pass
    assert counted == 2


def test_what_does_not_begin_takes_no_use() -> None:
    """A refusal of ours gives the use back, as does a client that leaves meanwhile; draining is a refusal too."""
    door = entrance()
    once = door.admit({"authorization": f"Bearer {door.make_secret(door.admit(GOOD), None, 600, 1).value}"})
    with pytest.raises(Overloaded), door.beginning(once):
        raise Overloaded("full", 1.0)
    with pytest.raises(asyncio.CancelledError), door.beginning(once):
        raise asyncio.CancelledError
    with door.beginning(once):
        pass
    with pytest.raises(Unauthorized), door.beginning(once):
        pass
    door.close()
    with pytest.raises(ShuttingDown), door.beginning(door.admit(GOOD)):
        pass


@pytest.mark.parametrize(
    ("who", "status"),
    [
        (Caller("127.0.0.1"), 200),
        (Caller("127.0.0.1", by_proxy=True), 200),
        (Caller("127.0.0.1", hidden=True), 421),
        (Caller("203.0.113.7", by_proxy=True), 421),
        (Caller("203.0.113.7"), 421),
    ],
)
def test_keyless_server_answers_its_own_machine_and_no_proxy_for_others(who: Caller, status: int) -> None:
    """With a proxy in front everybody would be local."""
    door = Entrance(Gate(None, SecretBook(8)), ("loopback",), (), HandClock())
    with calling(who):
        if status == 200:
            door.check_host({"host": "localhost"})
            assert door.admit({}) is LOCAL
        else:
            with pytest.raises(Refusal) as caught:
                door.check_host({"host": "localhost"})
            assert (caught.value.status, caught.value.wire_code) == (status, "forwarded")


def test_requests_by_a_known_proxy_are_those_of_its_clients() -> None:
    """Over HTTP: the eleventh wrong key of one client locks out that one, not the next; a header that a client wrote
    itself in front does not help."""

    async def test(_: object, client: httpx.AsyncClient) -> None:
        async def ask(key: str, forwarded: str) -> int:
            headers = {**SDP, "Authorization": f"Bearer {key}", "X-Forwarded-For": forwarded}
            return (await client.post(CALLS, content=OFFER, headers=headers)).status_code

        for number in range(ALLOWED + 1):
            assert await ask("sk-nobody", f"198.51.100.{number}, 203.0.113.7") == 401
        assert await ask("sk-acme", "203.0.113.7") == 429
        assert await ask("sk-acme", "203.0.113.8") == 201

    with_client(test, lambda: build(RING, proxies=Proxies(("127.0.0.1",))))


def test_keyless_server_refuses_what_a_proxy_passes_on() -> None:
    """HTTP and WebSocket, before any session comes about; with the proxy named, its own machine's requests pass."""

    async def far(running: Running) -> None:
        status, error = await refusal(running, **{"X-Forwarded-For": "203.0.113.7"})
        assert (status, error["code"]) == (421, "forwarded")
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}") as client:
            answer = await client.post(CALLS, content=OFFER, headers={**SDP, "X-Forwarded-For": "127.0.0.1"})
            assert (answer.status_code, error_of(answer)["code"]) == (421, "forwarded")
        assert running.house.directory.sessions == []

    async def near(running: Running) -> None:
        status, _ = await refusal(running, **{"X-Forwarded-For": "203.0.113.7"})
        assert status == 421
        async with running.connect(**{"X-Forwarded-For": "127.0.0.1"}) as link:
            assert (await heard(link))["type"] == "session.created"

    against(far)
    against(near, lambda: build(proxies=Proxies(("127.0.0.1",))))


def test_websocket_of_a_withdrawn_key_is_closed_and_others_stay() -> None:
    """1008 with the reason; the other tenant's link goes on."""

    async def test(running: Running) -> None:
        entrance = running.house.entrance
        async with running.connect(key="sk-acme") as gone, running.connect(key="sk-lab") as stays:
            await heard(gone)
            await heard(stays)
            entrance.withdraw(frozenset({Key(digest_of("sk-acme"), ACME).id}))
            assert await closed(gone) == (1008, KEY_WITHDRAWN)
            await stays.send(json.dumps({"type": "input_audio_buffer.clear"}))
            session = running.house.directory.sessions[1]
            async with asyncio.timeout(120), session.came:
                await session.came.wait_for(lambda: bool(session.submitted))

    against(test, lambda: build(RING))


def test_websockets_of_a_tenant_are_bounded_before_a_session_is_opened() -> None:
    """429 with Retry-After for the third; a place is free again once one has closed."""

    async def test(running: Running) -> None:
        async with running.connect(key="sk-acme") as one, running.connect(key="sk-acme") as two:
            await heard(one)
            await heard(two)
            status, error = await refusal(running, key="sk-acme")
            assert (status, error["code"], error["type"]) == (429, "rate_limit_exceeded", "rate_limit_error")
            assert len(running.house.directory.sessions) == 2
            async with running.connect(key="sk-lab") as other:
                await heard(other)
        await until(lambda: running.house.door.links == 0)
        async with running.connect(key="sk-acme") as again:
            await heard(again)

    against(test, lambda: build(RING))


def test_websocket_opens_with_one_use_of_a_secret_and_comes_back_without() -> None:
    """The second session is refused; the first may be joined again."""

    async def test(running: Running) -> None:
        entrance = running.house.entrance
        secret = entrance.make_secret(entrance.admit(GOOD), None, 600, 1).value
        async with running.connect(key=secret) as link:
            await heard(link)
            session = running.house.directory.sessions[0]
            assert session.request.key_id == entrance.admit(GOOD).key_id
            assert session.request.allowance == ACME.allowance
            status, error = await refusal(running, key=secret)
            assert (status, error["code"]) == (401, "invalid_api_key")
            async with running.connect(
                f"?session_id={session.id}&secret={session.secret}", key=secret
            ) as back:
                await heard(back)
        assert len(running.house.directory.sessions) == 1

    against(test, lambda: build(RING))


def test_preflight_and_page_checks_stand_before_every_door() -> None:
    """Also before those that are no ``/v1/``: a page of another origin is told nothing of them."""

    async def test(_: object, client: httpx.AsyncClient) -> None:
        evil = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
        good = {**evil, "Origin": "http://localhost:5173"}
        for path in ("/v1/sessions", "/chorale.v1.Sessions/Create", "/openapi.json"):
            refused = await client.options(path, headers=evil)
            assert (refused.status_code, error_of(refused)["code"]) == (403, "origin_not_allowed")
            allowed = await client.options(path, headers=good)
            assert allowed.status_code == 204
            names = allowed.headers["Access-Control-Allow-Headers"]
            assert all(one in names for one in ("last-event-id", "chorale-session-secret", "x-grpc-web"))

    with_client(test, lambda: build(RING))


@pytest.mark.parametrize("hidden", [False, True])
def test_log_says_where_an_address_may_be_that_of_a_proxy(
    hidden: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """All its clients wait for the one that errs: whoever runs the server is told what to name."""
    door = entrance()
    for _ in range(ALLOWED + 1):
        status_of(door, WRONG, Caller("203.0.113.7", hidden=hidden))
    (line,) = [one for one in caplog.records if "too many wrong keys" in one.message]
    assert ("server.proxies" in line.message) == hidden
