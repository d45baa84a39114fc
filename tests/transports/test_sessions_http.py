"""Sessions over plain HTTP: opened, spoken to, read, come back to, ended; by those alone who may."""

import json
from collections.abc import AsyncIterator
from typing import Any, Literal
from unittest.mock import AsyncMock

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from orchestrator.errors import Overloaded, SessionClosed
from orchestrator.flow.tenants import Allowance
from orchestrator.ids import event_tag
from orchestrator.scheduling.job import Tier
from orchestrator.sessions.links import LinkKind, LoggedEvent, SessionRequest
from orchestrator.transports.auth import Key, KeyRing, Principal, digest_of
from orchestrator.transports.pace import Rate
from orchestrator.transports.sessions_http import MAX_EVENTS, MAX_EVENTS_BYTES, SESSIONS
from orchestrator.transports.sse_link import SseLink, StreamSettings
from orchestrator.wire import codec
from orchestrator.wire.server import Error, ErrorDetails
from tests.transports.fake_sessions import FakeSession
from tests.transports.running import House, build
from tests.transports.test_http import error_of, with_client

ACME = Principal("acme", Tier.GOLD, allowance=Allowance(sessions=9, links=2))
RING = KeyRing([Key(digest_of("sk-acme"), ACME), Key(digest_of("sk-lab"), Principal("lab", Tier.SILVER))])
LAB = {"Authorization": "Bearer sk-lab"}


def keyed() -> House:
    return build(RING, streams=StreamSettings(heartbeat_s=0.05))


async def opened(
    house: House, client: httpx.AsyncClient, key: str = "sk-acme"
) -> tuple[FakeSession, dict[str, str]]:
    """Opens a session; returns it with the headers of one who may do all with it."""
    answer = await client.post(SESSIONS, headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 201
    session = house.directory.sessions[-1]
    return session, {"Authorization": f"Bearer {key}", "Chorale-Session-Secret": session.secret}


def test_session_is_opened_with_all_that_is_needed_to_come_back() -> None:
    """Id, secret, expiry and the session itself; the key's tenant, limits and trace go along; no cache keeps it."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        body = {"session": {"type": "realtime", "instructions": "be brief"}, "model": "m7"}
        headers = {"Authorization": "Bearer sk-acme", "traceparent": "00-1-2-01"}
        answer = await client.post(SESSIONS, json=body, headers=headers)
        (session,) = house.directory.sessions
        told = answer.json()
        assert (answer.status_code, told["id"], told["secret"]) == (201, session.id, session.secret)
        assert (told["session"]["instructions"], told["session"]["model"]) == ("be brief", "m7")
        assert told["expires_at"] == session.view.expires_at
        assert answer.headers["Location"] == f"{SESSIONS}/{session.id}"
        assert answer.headers["Chorale-Session-Secret"] == session.secret
        assert answer.headers["Cache-Control"] == "no-store"
        asked = session.request
        assert (asked.tenant, asked.allowance, asked.traceparent) == ("acme", ACME.allowance, "00-1-2-01")
        assert asked.key_id == Key(digest_of("sk-acme"), ACME).id

    with_client(test, keyed)


@pytest.mark.parametrize(
    ("content", "status", "param"),
    [
        (b"", 201, None),
        (b"{}", 201, None),
        (b"[", 400, None),
        (b'{"session": 7}', 400, "session"),
        (b'{"session": {"instructions": "\\ud800"}}', 400, "session"),
        (b'{"model": "' + b"m" * 300 + b'"}', 400, "model"),
        (b'{"model": 7}', 400, "model"),
    ],
)
def test_session_is_opened_or_what_is_wrong_is_named(content: bytes, status: int, param: str | None) -> None:
    """Nothing at all asks for the server's own session; a refused one is not there."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        headers = {**LAB, "Content-Type": "application/json"} if content else LAB
        answer = await client.post(SESSIONS, content=content, headers=headers)
        assert answer.status_code == status
        assert len(house.directory.sessions) == (status == 201)
        if status != 201:
            assert error_of(answer)["param"] == param

    with_client(test, keyed)


def test_session_is_not_opened_without_key_room_or_time() -> None:
    """401, 503 with the time to come back, and 503 while the server ends; a used client secret is 401."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        assert (await client.post(SESSIONS)).status_code == 401
        entrance = house.entrance
        owner = entrance.admit({"authorization": "Bearer sk-lab"})
        once = {"Authorization": f"Bearer {entrance.make_secret(owner, None, 600, 1).value}"}
        house.directory.capacity = 0
        full = await client.post(SESSIONS, headers=once)
        assert (full.status_code, full.headers["Retry-After"]) == (503, "7")
        house.directory.capacity = 9
        assert [(await client.post(SESSIONS, headers=once)).status_code for _ in range(2)] == [201, 401]
        entrance.close()
        assert (await client.post(SESSIONS, headers=LAB)).status_code == 503

    with_client(test, keyed)


def test_session_is_its_tenants_and_of_those_who_know_its_secret() -> None:
    """For every address of it: another tenant, a wrong secret and none, and a session that is not there, are all the
    same 404; without a key it is 401, but for reading with the secret."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        session, good = await opened(house, client)
        told = set()
        for method, address in (
            ("GET", ""),
            ("POST", "/events"),
            ("GET", "/events"),
            ("DELETE", ""),
        ):
            path = f"{SESSIONS}/{session.id}{address}"
            for headers in (
                {**good, **LAB},
                {**good, "Chorale-Session-Secret": "rs_wrong"},
                {"Authorization": good["Authorization"]},
            ):
                answer = await client.request(method, path, headers=headers)
                assert answer.status_code == 404, (method, address, headers)
                told.add(answer.text)
            missing = await client.request(method, f"{SESSIONS}/sess_x{address}", headers=good)
            told.add(missing.text)
            wrong_key = {**good, "Authorization": "Bearer sk-nobody"}
            assert (await client.request(method, path, headers=wrong_key)).status_code == 401
            if (method, address) != ("GET", "/events"):
                secret = {"Chorale-Session-Secret": session.secret}
                assert (await client.request(method, path, headers=secret)).status_code == 401
        assert len(told) == 1
        assert session.submitted == []
        assert session.ended is None

    with_client(test, keyed)


def test_session_is_shown_and_ended() -> None:
    """As it is now, with the number of its newest event; after its end it is not there."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        session, good = await opened(house, client)
        session.emit("x")
        address = f"{SESSIONS}/{session.id}"
        shown = (await client.get(address, headers=good)).json()
        assert (shown["id"], shown["last"], shown["session"]["id"]) == (session.id, 1, session.id)
        assert session.secret not in json.dumps(shown)
        assert (await client.delete(address, headers=good)).status_code == 204
        assert session.ended is not None
        assert (await client.get(address, headers=good)).status_code == 404

    with_client(test, keyed)


def test_events_are_taken_one_or_many_in_order() -> None:
    """202 with how many, and up to which number the log goes."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        session, good = await opened(house, client)
        address = f"{SESSIONS}/{session.id}/events"
        one = await client.post(address, json={"type": "response.create"}, headers=good)
        session.emit("x")
        many = [{"type": "response.cancel"}, {"type": "input_audio_buffer.clear"}]
        two = await client.post(address, json=many, headers=good)
        assert (one.status_code, one.json()) == (202, {"accepted": 1, "last": 0})
        assert (two.status_code, two.json()) == (202, {"accepted": 2, "last": 1})
        kinds = [str(type(event).__struct_config__.tag) for event in session.submitted]
        assert kinds == ["response.create", "response.cancel", "input_audio_buffer.clear"]

    with_client(test, keyed)


@pytest.mark.parametrize(
    ("body", "code", "param", "accepted"),
    [
        ('{"type": "response.create"', "invalid_json", None, 0),
        ('[{"type": "response.cancel"}, {"type": "nonsense"}, {"type": "response.cancel"}]',
         "invalid_event", "type", 1),
        ('{"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": 7}}',
         "invalid_type", "item.content", 0),
        ('{"type": "input_audio_buffer.append", "audio": "AAAA"}', "invalid_event", "type", 0),
        ('[{"type": "response.cancel"}, 7]', "invalid_event", None, 1),
    ],
)  # fmt: skip
def test_events_are_taken_up_to_the_first_that_is_wrong(
    body: str, code: str, param: str | None, accepted: int
) -> None:
    """400 as the event would be answered, how many were taken before it, and none behind it is looked at."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        session, good = await opened(house, client)
        answer = await client.post(f"{SESSIONS}/{session.id}/events", content=body, headers=good)
        assert (answer.status_code, answer.json()["accepted"]) == (400, accepted)
        error = answer.json()["error"]
        assert (error["code"], error["param"], error["type"]) == (code, param, "invalid_request_error")
        assert len(session.submitted) == accepted

    with_client(test, keyed)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"[" * 100_000, b"[1" + b",1" * 400_000 + b"]", b"\xff\xfe", b'["\xff"]',
     b"[" + b",".join([b"{}"] * (MAX_EVENTS + 1)) + b"]", b"null"],
)  # fmt: skip
def test_body_that_is_no_event_is_refused(body: bytes) -> None:
    """No JSON, too deep, too many: 400 and no more; the session lives."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        session, good = await opened(house, client)
        answer = await client.post(f"{SESSIONS}/{session.id}/events", content=body, headers=good)
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] in ("invalid_json", "invalid_event", "invalid_value")
        assert session.submitted == []

    with_client(test, keyed)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)
EVENTS = st.fixed_dictionaries(
    {"type": st.sampled_from(codec.EVENT_NAMES)}, optional={"item": JSON, "session": JSON, "response": JSON}
)
BODIES = st.binary(max_size=60) | (EVENTS | JSON | st.lists(EVENTS | JSON, max_size=4)).map(
    lambda any: json.dumps(any).encode()
)


@settings(max_examples=60, deadline=None)
@given(st.lists(BODIES, min_size=1, max_size=20))
def test_whatever_is_posted_is_taken_or_refused(bodies: list[bytes]) -> None:
    """202 or 400, in the protocol's shape, and the next request is answered like the first."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        session, good = await opened(house, client)
        address = f"{SESSIONS}/{session.id}/events"
        for body in bodies:
            answer = await client.post(address, content=body, headers=good)
            assert answer.status_code in (202, 400), answer.text
            assert ("error" in answer.json()) == (answer.status_code == 400)
        assert (await client.post(address, json={"type": "response.cancel"}, headers=good)).status_code == 202

    with_client(test, keyed)


def test_what_a_session_refuses_is_the_answer() -> None:
    """Its private error becomes the status and the body, with the client's event id."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        session, good = await opened(house, client)
        address = f"{SESSIONS}/{session.id}/events"
        kinds: tuple[
            tuple[Literal["invalid_request_error", "rate_limit_error", "server_error"], int], ...
        ] = (
            ("invalid_request_error", 400),
            ("rate_limit_error", 429),
            ("server_error", 500),
        )
        for kind, status in kinds:
            details = ErrorDetails(kind, "no", "some_code", "some.param", "mine")
            session.answers = (codec.encode(Error(details), "event_p1"),)
            answer = await client.post(address, json=[{"type": "response.create"}] * 2, headers=good)
            assert (answer.status_code, answer.json()["accepted"]) == (status, 0)
            assert answer.json()["error"] == {
                "type": kind, "message": "no", "code": "some_code", "param": "some.param", "event_id": "mine",
            }  # fmt: skip

    with_client(test, keyed)


def test_event_for_a_session_that_is_full_or_has_ended_meanwhile() -> None:
    """429 with the protocol's code, and 404."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        session, good = await opened(house, client)

        for error, status in ((Overloaded("too many wait", 1.0), 429), (SessionClosed("It has ended."), 404)):
            session.perform = AsyncMock(side_effect=error)  # type: ignore[method-assign]
            answer = await client.post(
                f"{SESSIONS}/{session.id}/events", json={"type": "response.create"}, headers=good
            )
            assert answer.status_code == status

    with_client(test, keyed)


def test_bodies_of_events_may_be_larger_than_others_and_are_bounded() -> None:
    """Past what other addresses take it is read; past its own bound it is 413."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        session, good = await opened(house, client)
        address = f"{SESSIONS}/{session.id}/events"
        text = "x" * 200_000
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        big = [{"type": "conversation.item.create", "item": item}] * 5
        assert (await client.post(address, json=big, headers=good)).status_code == 202
        too_big = await client.post(address, content=b" " * (MAX_EVENTS_BYTES + 1), headers=good)
        assert (too_big.status_code, error_of(too_big)["code"]) == (413, "request_too_large")
        other = await client.post(
            SESSIONS, content=b" " * 600_000, headers={**good, "Content-Type": "application/json"}
        )
        assert other.status_code == 413

    with_client(test, keyed)


def test_page_of_an_allowed_origin_may_read_and_write() -> None:
    """Preflights allow what such pages send, and answers name them; others are refused before anything."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        page = {"Origin": "http://localhost:5173"}
        asked = {**page, "Access-Control-Request-Method": "DELETE"}
        allowed = await client.options(f"{SESSIONS}/sess_1", headers=asked)
        assert "DELETE" in allowed.headers["Access-Control-Allow-Methods"]
        made = await client.post(SESSIONS, headers=page)
        assert made.headers["Access-Control-Allow-Origin"] == page["Origin"]
        assert "Chorale-Session-Secret" in made.headers["Access-Control-Expose-Headers"]
        evil: dict[str, Any] = {"Origin": "https://evil.example"}
        assert (await client.get(f"{SESSIONS}/x/events?secret=y", headers=evil)).status_code == 403

    with_client(test, build)


def test_requests_that_say_too_much_are_told_when_to_come_back() -> None:
    """429 with `Retry-After`, before the body is read; nothing of it is handled. Another session is not asked."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        session, good = await opened(house, client)
        path = f"{SESSIONS}/{session.id}/events"
        events = [{"type": "response.cancel"}] * MAX_EVENTS
        first = await client.post(path, headers=good, json=events)
        assert first.status_code == 202
        read = False

        async def body() -> AsyncIterator[bytes]:
            nonlocal read
            read = True
            yield b"{}"

        over = await client.post(path, headers=good, content=body())
        assert (over.status_code, error_of(over)["code"], read) == (429, "rate_limit_exceeded", False)
        assert 1 <= int(over.headers["Retry-After"]) <= 60
        assert len(session.submitted) == MAX_EVENTS
        other, good = await opened(house, client)
        answer = await client.post(f"{SESSIONS}/{other.id}/events", headers=good, json=events[0])
        assert answer.status_code == 202

    with_client(test, lambda: build(RING, rate=Rate(1, 1e9, 10**9, 10)))


def test_nothing_that_shows_a_long_session_is_more_than_a_megabyte() -> None:
    """Its words are cut, in an answer as in events."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        session, good = await opened(house, client)
        words = "語" * 900_000
        session.view = structs.replace(session.view, instructions=words)
        answer = await client.get(f"{SESSIONS}/{session.id}", headers=good)
        assert len(answer.content) <= 2**20
        said = answer.json()["session"]["instructions"]
        assert len(said) > 300_000
        assert words.startswith(said)

    with_client(test, keyed)


def test_frame_of_an_event_stream_is_never_more_than_a_megabyte() -> None:
    """With its type and number around it."""
    session = FakeSession(SessionRequest("acme", 1), LinkKind.EVENTS)
    link = SseLink(session, False, StreamSettings())
    event = {"event_id": f"event_{event_tag(session.id)}_1", "type": "a", "text": "x" * 2**21}
    (sent,) = link._frames(LoggedEvent(json.dumps(event).encode()))
    assert sent.startswith(b"id: event_")
    assert 1_000_000 < len(sent) <= 2**20
