"""Coming back to a session over a WebSocket: who may, with what, and after which event it reads on."""

import json
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection

from orchestrator.errors import SessionClosed, WireError
from orchestrator.scheduling.job import Tier
from orchestrator.sessions.links import LinkKind, LoggedEvent, SessionRequest
from orchestrator.transports import rejoining
from orchestrator.transports.auth import Key, KeyRing, Principal, digest_of
from orchestrator.transports.rejoining import Back
from tests.transports.fake_sessions import FakeDirectory, FakeSession
from tests.transports.running import Running, against, build, closed, heard, open_session, refusal, say

CALLS = "/v1/realtime/calls"
OFFER = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\n"
RING = KeyRing(
    [
        Key(digest_of("sk-acme"), Principal("acme", Tier.PLATINUM)),
        Key(digest_of("sk-lab"), Principal("lab", Tier.SILVER)),
    ]
)


def opened(running: Running, tenant: str = "local") -> FakeSession:
    return running.house.directory.open(SessionRequest(tenant, 2), LinkKind.WEBSOCKET)


def place(session: FakeSession, after: object = None, secret: str | None = None) -> str:
    """The address of a session, with nothing secret in it unless asked for."""
    query = f"?session_id={session.id}"
    if secret is not None:
        query += f"&secret={secret}"
    return query if after is None else f"{query}&after={after}"


async def types(link: ClientConnection, count: int) -> list[str]:
    return [(await heard(link))["type"] for _ in range(count)]


def test_secret_is_taken_from_header_subprotocol_or_address() -> None:
    """Each of the three opens the session, the wrong secret in any of them does not, and the header goes first. What
    is selected of the subprotocols is `realtime` alone."""

    async def test(running: Running) -> None:
        session = opened(running)
        right, wrong = session.secret, session.secret[:-1] + "-"
        ways: list[dict[str, Any]] = [
            {"query": place(session, secret=right)},
            {"query": place(session), "subprotocols": ("realtime", f"chorale-session-secret.{right}")},
            {"query": place(session), "Chorale-Session-Secret": right},
            {"query": place(session, secret=wrong), "Chorale-Session-Secret": right},
        ]
        for way in ways:
            async with running.connect(**way) as link:
                assert (await heard(link))["session"]["id"] == session.id
                assert link.subprotocol in (None, "realtime")
                assert link.response is not None
                assert right not in str(link.response.headers)
        bad: list[dict[str, Any]] = [
            {"query": place(session)},
            {"query": place(session, secret=wrong)},
            {"query": place(session), "subprotocols": ("realtime", f"chorale-session-secret.{wrong}")},
            {"query": place(session, secret=right), "Chorale-Session-Secret": wrong},
        ]
        for way in bad:
            status, _ = await refusal(running, **way)
            assert status == 404
        assert not session.links

    against(test)


def test_new_session_comes_with_what_is_needed_to_come_back() -> None:
    """The answer to the upgrade names the session and its secret; nobody else's does."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            assert link.response is not None
            assert link.response.headers["Chorale-Session-Id"] == session.id
            assert link.response.headers["Chorale-Session-Secret"] == session.secret
        async with running.connect(place(session, 0, session.secret)) as link:
            assert link.response is not None
            assert "Chorale-Session-Secret" not in link.response.headers

    against(test)


def test_link_reads_on_after_the_event_that_it_names() -> None:
    """F-C1: `session.created`, then what it missed, in order and once, then what is live; a number or an id will do."""

    async def test(running: Running) -> None:
        session = opened(running)
        for number in range(1, 51):
            session.emit(f"number.{number}")
        for after in ("37", session.event_id(37)):
            async with running.connect(place(session, after, session.secret)) as link:
                expected = [
                    "session.created",
                    *(f"number.{number}" for number in range(38, session.last + 1)),
                ]
                assert await types(link, len(expected)) == expected
                session.emit(f"number.{session.last + 1}")
                assert await types(link, 1) == [f"number.{session.last}"]

    against(test)


def test_link_without_a_number_gets_what_is_live() -> None:
    """As ever: nothing is sent again to a client that does not say where it was."""

    async def test(running: Running) -> None:
        session = opened(running)
        session.emit("before")
        async with running.connect(place(session, secret=session.secret)) as link:
            assert await types(link, 1) == ["session.created"]
            session.emit("now")
            assert await types(link, 1) == ["now"]

    against(test)


def test_link_is_told_of_what_is_gone_and_goes_on_from_there() -> None:
    """One `chorale.gap` behind `session.created` and before all that is left; the link then lives on."""

    async def test(running: Running) -> None:
        session = opened(running)
        for number in range(1, 21):
            session.emit(f"number.{number}")
        session.drop_before(15)
        async with running.connect(place(session, 3, session.secret)) as link:
            assert await types(link, 1) == ["session.created"]
            gap = await heard(link)
            assert (gap["type"], gap["after"], gap["first"]) == ("chorale.gap", 3, 15)
            assert await types(link, 6) == [f"number.{number}" for number in range(15, 21)]
            await say(link, "response.create")
            await session.wait_for(1)
        async with running.connect(place(session, 14, session.secret)) as link:
            assert await types(link, 2) == ["session.created", "number.15"]  # nothing is missing: no gap

    against(test)


BAD = ("", "-1", "4", "1e3", "²", "٣", "9" * 17, "event_x_1", "event_p1", "null", "1%20", "%00")


def test_number_that_no_event_has_is_refused_before_the_upgrade() -> None:
    """400 with the parameter's name, whatever stands there, and without its text; nobody has joined."""

    async def test(running: Running) -> None:
        session = opened(running)
        for _ in range(3):
            session.emit("x")
        for after in BAD:
            status, error = await refusal(running, query=place(session, after, session.secret))
            assert (status, error["code"], error["param"]) == (400, "invalid_value", "after"), after
            assert error["message"] == (
                "Invalid value for 'after': expected the number, up to 3, or the id of an event of this session."
            )
        async with running.connect(place(session, 3, session.secret)) as link:
            assert await types(link, 1) == ["session.created"]
        status, error = await refusal(running, query="?after=3")
        assert (status, error["param"]) == (400, "after")

    against(test)


def test_number_is_looked_at_behind_the_secret_only() -> None:
    """Who does not know the secret is not told whether the number is one."""

    async def test(running: Running) -> None:
        session = opened(running)
        for after in (0, "nonsense"):
            status, _ = await refusal(running, query=place(session, after, "rs_wrong"))
            assert status == 404

    against(test)


def test_attach_that_refuses_after_the_upgrade_closes_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """1008 and its words; the session lives, for it was not opened for this link."""

    async def test(running: Running) -> None:
        session = opened(running)

        def refuse(*_: object) -> int:
            raise WireError("invalid_value", "No such event.", "after")

        monkeypatch.setattr(session, "attach", refuse)
        async with running.connect(place(session, 0, session.secret)) as link:
            assert await closed(link) == (1008, "No such event.")
        assert session.ended is None

    against(test)


def test_secret_alone_is_not_enough_where_keys_are_needed() -> None:
    """401 without a key; another tenant with the right secret finds nothing."""

    async def test(running: Running) -> None:
        session = opened(running, "acme")
        status, _ = await refusal(running, query=place(session, secret=session.secret))
        assert status == 401
        status, _ = await refusal(running, query=place(session, secret=session.secret), key="sk-lab")
        assert status == 404
        async with running.connect(place(session, secret=session.secret), key="sk-acme") as link:
            assert (await heard(link))["session"]["id"] == session.id

    against(test, lambda: build(RING))


def test_sideband_reads_on_too() -> None:
    """With a call's id and a number; numbers without a message (sound) are skipped. The secret is not shown to it."""

    async def test(running: Running) -> None:
        call_id, session = running.house.directory.open_call(SessionRequest("local", 2))
        session.emit("first")
        session.speak(b"\x01\x00")
        session.emit("third")
        told = json.dumps({"type": "four", "event_id": session.event_id(4)}).encode()
        session.emit(LoggedEvent(told, b"{}"))
        async with running.connect(f"?call_id={call_id}&after=1") as link:
            assert await types(link, 3) == ["session.created", "third", "four"]
        status, error = await refusal(running, query=f"?call_id={call_id}&after=5")
        assert (status, error["param"]) == (400, "after")

    against(test)


def test_draining_server_still_lets_clients_come_back() -> None:
    """What runs is to finish, for a client whose line broke meanwhile too; nobody new comes in."""

    async def test(running: Running) -> None:
        session = opened(running)
        running.house.entrance.close()
        async with running.connect(place(session, 0, session.secret)) as link:
            assert (await heard(link))["session"]["id"] == session.id
        status, _ = await refusal(running)
        assert status == 503

    against(test)


def test_request_that_names_no_session_comes_back_to_none() -> None:
    """`comes_back` gives nothing then, and its faults are those of the directory and of the number."""
    directory = FakeDirectory()
    session = directory.open(SessionRequest("t", 2), LinkKind.WEBSOCKET)
    assert rejoining.comes_back(directory, {}, {}, "t") is None
    assert rejoining.comes_back(directory, {}, {"session_id": ""}, "t") is None
    with pytest.raises(SessionClosed):
        rejoining.comes_back(directory, {}, {"session_id": session.id}, "t")
    shown = {"chorale-session-secret": session.secret}
    named = {"session_id": session.id}
    assert rejoining.comes_back(directory, shown, {**named, "after": "0"}, "t") == Back(session, 0)
    assert rejoining.comes_back(directory, shown, named, None) == Back(session, None)


def test_call_comes_back_to_its_session() -> None:
    """An offer with a session's id and secret is answered for that session, from the number that it names; what is
    wrong is refused as for WebSockets, and nobody new is told a secret."""

    async def test(running: Running) -> None:
        house = running.house
        async with house.client(**{"Content-Type": "application/sdp"}) as client:
            made = await client.post(CALLS, content=OFFER)
            (session,) = house.directory.sessions
            assert made.headers["Chorale-Session-Id"] == session.id
            assert made.headers["Chorale-Session-Secret"] == session.secret
            for _ in range(3):
                session.emit("x")
            address = f"{CALLS}?session_id={session.id}&after="
            secret = {"Chorale-Session-Secret": session.secret}
            house.entrance.close()
            back = await client.post(address + "2", content=OFFER, headers=secret)
            assert (back.status_code, house.calls.returned) == (201, [(session, 2)])
            assert back.headers["Location"] != made.headers["Location"]
            assert "Chorale-Session-Secret" not in back.headers
            for after, headers, status in (("2", {}, 404), ("4", secret, 400), ("x", secret, 400)):
                refused = await client.post(address + after, content=OFFER, headers=headers)
                assert refused.status_code == status
            assert len(house.directory.sessions) == 1
            assert (await client.post(CALLS, content=OFFER)).status_code == 503

    against(test)


def test_call_of_another_origin_may_read_what_it_needs_to_come_back() -> None:
    """A page of another origin sends the secret in a header, and reads it in one."""

    async def test(running: Running) -> None:
        page = {"Origin": "https://app.example.com"}
        asks = {**page, "Access-Control-Request-Method": "POST"}
        async with running.house.client() as client:
            preflight = await client.options(CALLS, headers=asks)
            assert "chorale-session-secret" in preflight.headers["Access-Control-Allow-Headers"]
            made = await client.post(
                CALLS, content=OFFER, headers={**page, "Content-Type": "application/sdp"}
            )
            exposed = made.headers["Access-Control-Expose-Headers"]
            assert "Chorale-Session-Id, Chorale-Session-Secret" in exposed

    against(test, lambda: build(origins=("https://app.example.com",)))
