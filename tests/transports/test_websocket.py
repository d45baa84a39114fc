"""Joining a session over a WebSocket, with a real server and a real client around fake sessions."""

import pytest

from orchestrator.errors import SessionClosed
from orchestrator.scheduling.job import Tier
from orchestrator.sessions.links import LinkKind, SessionRequest
from orchestrator.transports.auth import Key, KeyRing, Principal, digest_of
from orchestrator.wire.client import CreateItem, CreateResponse
from tests.transports.fake_sessions import FakeSession
from tests.transports.running import (
    Running,
    against,
    build,
    closed,
    heard,
    item,
    open_session,
    refusal,
    say,
    until,
)

RING = KeyRing(
    [
        Key(digest_of("sk-acme"), Principal("acme", Tier.PLATINUM, ("https://app.example.com",))),
        Key(digest_of("sk-lab"), Principal("lab", Tier.SILVER)),
    ]
)


def test_link_is_told_session_created_first_and_then_the_log() -> None:
    """`session.created` precedes every event, events come as logged, one JSON text message each."""

    async def test(running: Running) -> None:
        async with running.connect("?model=some-model&unknown=1") as link:
            created = await heard(link)
            session = running.house.directory.sessions[0]
            assert created["type"] == "session.created"
            assert created["session"]["id"] == session.id
            assert created["session"]["model"] == "some-model"
            for kind in ("response.created", "response.done"):
                session.emit(kind)
            assert [(await heard(link))["type"] for _ in range(2)] == ["response.created", "response.done"]
        await until(lambda: not session.links)
        assert session.ended is None

    against(test)


def test_link_hands_client_events_to_its_session_in_order() -> None:
    """Every event that is no sound is submitted, in the order in which it was sent."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            for number in range(100):
                await say(link, "conversation.item.create", event_id=str(number), item=item("x"))
            await say(link, "response.create")
            await session.wait_for(101)
            ids = [event.event_id for event in session.submitted[:-1] if isinstance(event, CreateItem)]
            assert ids == [str(number) for number in range(100)]
            assert isinstance(session.submitted[-1], CreateResponse)

    against(test)


def test_link_answers_invalid_messages_in_order_and_lives_on() -> None:
    """Broken JSON, unknown types and binary messages each bring one error with the client's event id."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            await link.send("{")
            await say(link, "no.such.event", event_id="e2")
            await link.send(b"\x00\x01")
            await say(link, "input_audio_buffer.append", event_id="e4", audio="!!")
            session.emit("after")
            errors = [await heard(link) for _ in range(5)]
            found = [
                (one["error"]["code"], one["error"]["event_id"]) for one in errors if one["type"] == "error"
            ]
            assert found == [
                ("invalid_json", None),
                ("invalid_event", "e2"),
                ("invalid_event", None),
                ("invalid_value", "e4"),
            ]
            await say(link, "response.create")
            await session.wait_for(1)

    against(test)


def test_sideband_sees_a_calls_events_without_its_sound() -> None:
    """`?call_id=` joins the call's session: events both ways, no audio deltas, and sound is refused."""

    async def test(running: Running) -> None:
        call_id, session = running.house.directory.open_call(SessionRequest("local", 2))
        async with running.connect(f"?call_id={call_id}") as link:
            assert (await heard(link))["session"]["id"] == session.id
            (joined,) = session.links.values()
            assert joined.kind is LinkKind.SIDEBAND
            session.speak(b"\x01\x00")
            session.emit("response.done")
            assert (await heard(link))["type"] == "response.done"
            await say(link, "input_audio_buffer.append", event_id="e", audio="AAAA")
            assert (await heard(link))["error"]["event_id"] == "e"
            await say(link, "response.create")
            await session.wait_for(1)
            assert session.intake.position == 0
        await until(lambda: not session.links)
        assert session.ended is None

    against(test)


def test_sideband_of_an_unknown_or_foreign_call_is_not_found() -> None:
    """A call of another tenant looks like no call at all."""

    async def test(running: Running) -> None:
        call_id, _ = running.house.directory.open_call(SessionRequest("acme", 2))
        for query in ("?call_id=rtc_nobody", f"?call_id={call_id}"):
            status, error = await refusal(running, query=query, key="sk-lab")
            assert (status, error["type"]) == (404, "invalid_request_error")

    against(test, lambda: build(RING))


def test_session_is_joined_again_with_its_secret_only() -> None:
    """A client that lost its connection comes back with id and secret; the id alone opens nothing."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
        for secret in ("", "wrong"):
            status, _ = await refusal(running, query=f"?session_id={session.id}&secret={secret}")
            assert status == 404
        async with running.connect(f"?session_id={session.id}&secret={session.secret}") as link:
            assert (await heard(link))["session"]["id"] == session.id
            session.emit("response.done")
            assert (await heard(link))["type"] == "response.done"
        assert len(running.house.directory.sessions) == 1

    against(test)


def test_transcription_sessions_are_asked_for_in_the_url() -> None:
    """`?intent=transcription` opens a session of that type."""

    async def test(running: Running) -> None:
        async with running.connect("?intent=transcription") as link:
            created = await heard(link)
            assert created["session"]["type"] == "transcription"

    against(test)


def test_upgrade_without_a_valid_key_is_refused_as_json() -> None:
    """401 before the upgrade, with the protocol's code; no session comes about."""

    async def test(running: Running) -> None:
        for key in (None, "sk-nobody", "ek_nobody"):
            status, error = await refusal(running, key=key)
            assert (status, error["code"], error["param"]) == (401, "invalid_api_key", None)
        assert running.house.directory.sessions == []

    against(test, lambda: build(RING))


def test_upgrade_with_a_key_opens_a_session_of_its_tenant_and_tier() -> None:
    """The key decides for whom the session runs."""

    async def test(running: Running) -> None:
        async with running.connect(key="sk-lab") as link:
            session = await open_session(link, running)
            assert (session.request.tenant, session.request.tier) == ("lab", Tier.SILVER)

    against(test, lambda: build(RING))


def test_browser_brings_its_key_as_a_subprotocol_and_gets_realtime() -> None:
    """Exactly `realtime` is selected, the key is never echoed; without an offer nothing is selected."""

    async def test(running: Running) -> None:
        offer = ["realtime", "openai-insecure-api-key.sk-lab", "openai-beta.realtime-v1"]
        async with running.connect(subprotocols=offer) as link:
            assert link.subprotocol == "realtime"
            assert link.response is not None
            assert "sk-lab" not in str(link.response.headers)
        async with running.connect(key="sk-lab") as link:
            assert link.subprotocol is None

    against(test, lambda: build(RING))


def test_client_secret_brings_its_session() -> None:
    """A connection made with a client secret starts with the stored configuration."""

    async def test(running: Running) -> None:
        gate = running.house.entrance.gate
        owner = gate.admit("sk-lab", 0)
        secret = gate.secrets.make(
            owner, b'{"type":"realtime","model":"m7","instructions":"be brief"}', 600, 10**16
        )
        async with running.connect("", key=secret.value) as link:
            session = (await heard(link))["session"]
            assert (session["instructions"], session["model"]) == ("be brief", "m7")

    against(test, lambda: build(RING))


def test_pages_of_other_origins_are_refused() -> None:
    """A WebSocket knows no CORS: the origin is checked before the upgrade, per key where the key says so."""

    async def test(running: Running) -> None:
        status, error = await refusal(running, key="sk-lab", Origin="https://evil.example")
        assert (status, error["code"]) == (403, "origin_not_allowed")
        status, _ = await refusal(running, key="sk-lab", Origin="https://app.example.com")
        assert status == 403
        async with running.connect(key="sk-acme", Origin="https://app.example.com"):
            pass
        async with running.connect(key="sk-lab", Origin="http://localhost:5173"):
            pass

    against(test, lambda: build(RING))


def test_keyless_server_answers_to_its_own_names_only() -> None:
    """DNS rebinding: a name that merely points here is refused, before any session comes about."""

    async def test(running: Running) -> None:
        status, error = await refusal(running, name="rebound.example", Origin="http://rebound.example")
        assert (status, error["code"]) == (421, "host_not_allowed")
        assert running.house.directory.sessions == []

    against(test)


def test_unknown_addresses_are_refused_as_json() -> None:
    """A WebSocket to anywhere else gets a 404 in the same shape."""

    async def test(running: Running) -> None:
        status, error = await refusal(running, query="/elsewhere")
        assert (status, error["code"]) == (404, "not_found")

    against(test)


def test_links_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """Links that join existing sessions count too. Refusals are counted, and the log says whose; who has no key is
    neither."""
    caplog.set_level("INFO", "orchestrator.transports.entrance")

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            status, error = await refusal(running, query=f"?session_id={session.id}&secret={session.secret}")
            assert (status, error["code"]) == (503, "rate_limit_exceeded")
            status, _ = await refusal(running, Origin="https://evil.example")
            assert status == 403
        assert running.house.door.refused == 1
        (line,) = [one for one in caplog.records if one.message == "refused"]
        fields = {"tenant": "local", "kind": "link", "reason": "rate_limit_exceeded"}
        assert fields.items() <= line.__dict__.items()

    against(test, lambda: build(max_links=1))


def test_upgrades_while_the_server_drains_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    """503 with the reason in the log: a client that finds no room in a restart is seen as well."""
    caplog.set_level("INFO", "orchestrator.transports.entrance")

    async def test(running: Running) -> None:
        running.house.entrance.close()
        status, error = await refusal(running)
        assert (status, error["code"]) == (503, "server_shutting_down")
        assert running.house.door.refused == 1
        (line,) = [one for one in caplog.records if one.message == "refused"]
        assert {"reason": "server_shutting_down", "retry_after_s": 5.0}.items() <= line.__dict__.items()

    against(test)


def test_link_that_never_comes_about_takes_no_use_of_a_client_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """The session that was opened for it has ended; the next one is opened by the same secret, and no third."""

    async def test(running: Running) -> None:
        entrance = running.house.entrance
        once = entrance.make_secret(entrance.admit({}), None, 600, 1).value
        with monkeypatch.context() as patch:
            patch.setattr(FakeSession, "attach", _gone)
            async with running.connect(key=once) as link:
                assert (await closed(link))[0] == 1001
        async with running.connect(key=once) as link:
            await heard(link)
        status, _ = await refusal(running, key=once)
        assert status == 401

    against(test)


def _gone(*_: object) -> int:
    raise SessionClosed("The session has ended.")
