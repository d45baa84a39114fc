"""Sessions over gRPC without streams, and who may have them."""

import json
from typing import Any

import grpc
import pytest

from orchestrator.scheduling.job import Tier
from orchestrator.transports.auth import Key, KeyRing, Principal, digest_of
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from orchestrator.wire.client import CommitAudio, CreateResponse
from tests.transports.fake_sessions import FakeSession
from tests.transports.rpc.calling import House, Running, against, build, refused

COMMIT = '{"type":"input_audio_buffer.commit"}'


def keyed() -> House:
    """A house with two tenants."""
    keys = [
        Key(digest_of("key-a"), Principal("alpha", Tier.PLATINUM)),
        Key(digest_of("key-b"), Principal("beta", Tier.SILVER)),
    ]
    return build(KeyRing(keys))


def test_requests_open_show_and_end_a_session() -> None:
    """Create, Get and End: what a client without streams needs besides Watch and Send."""

    async def test(running: Running) -> None:
        opened = await running.stub.Create(pb.CreateRequest(model="m", session='{"instructions":"x"}'))
        session = running.session
        session.emit("a")
        named: dict[str, Any] = {"session_id": opened.session_id, "secret": opened.secret}
        got = await running.stub.Get(pb.GetRequest(**named))
        assert (json.loads(got.session)["instructions"], got.last) == ("x", 1)
        call = running.stub.Watch(pb.WatchRequest(**named))
        await call.read()
        await running.stub.End(pb.EndRequest(**named))
        assert session.ended == "ended by its client"
        while await call.read() is not grpc.aio.EOF:
            pass
        assert await call.code() is grpc.StatusCode.OK

    against(test)


def test_send_hands_in_sound_and_events_in_order() -> None:
    """Sound first, then each event once the one before has been handled; the reply says how many."""

    async def test(running: Running) -> None:
        opened = await running.create()
        session = running.session
        session.emit("a")
        asked = pb.SendRequest(
            session_id=opened.session_id, secret=opened.secret, sound=b"\1\0" * 2_400,
            events=[COMMIT, '{"type":"input_audio_buffer.append","audio":"AQABAAEA"}', '{"type":"response.create"}'],
        )  # fmt: skip
        assert await running.stub.Send(asked) == pb.SendReply(accepted=3, last=1)
        assert [type(event) for event in session.submitted] == [CommitAudio, CreateResponse]
        assert session.intake.position == 1_602

    against(test)


def test_send_stops_at_the_first_event_that_is_refused() -> None:
    """Broken by itself or refused by the session: the reply has its `error`, and nothing behind is handed in."""

    async def test(running: Running) -> None:
        opened = await running.create()
        session = running.session
        named: dict[str, Any] = {"session_id": opened.session_id, "secret": opened.secret}
        bad = '{"type":"nope","event_id":"e7"}'
        reply = await running.stub.Send(pb.SendRequest(events=[COMMIT, bad, COMMIT], **named))
        assert (reply.accepted, len(session.submitted)) == (1, 1)
        assert json.loads(reply.error)["error"]["event_id"] == "e7"
        session.answers = (b'{"type":"error"}',)
        reply = await running.stub.Send(pb.SendRequest(events=[COMMIT, COMMIT], **named))
        assert (reply.accepted, reply.error) == (0, '{"type":"error"}')
        name, _, trailers = await refused(running.stub.Send(pb.SendRequest(events=[COMMIT] * 65, **named)))
        assert (name, trailers["chorale-param"]) == ("INVALID_ARGUMENT", "events")

    against(test)


def test_secret_is_needed_and_nothing_tells_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong secret, none, and a session that never was are one answer, and endless ones are not hashed."""
    shown: list[int] = []

    async def test(running: Running) -> None:
        opened = await running.create()
        find = running.house.directory.by_id

        def by_id(session_id: str, secret: str, tenant: str | None) -> FakeSession:
            shown.append(len(secret))
            return find(session_id, secret, tenant)

        monkeypatch.setattr(running.house.directory, "by_id", by_id)
        for session_id, secret in (
            (opened.session_id, ""), (opened.session_id, "x"), ("sess_none", opened.secret), ("", ""),
            (opened.session_id, opened.secret + "x" * 100_000),
        ):  # fmt: skip
            named: dict[str, Any] = {"session_id": session_id, "secret": secret}
            answers = [
                await refused(running.stub.Get(pb.GetRequest(**named))),
                await refused(running.stub.End(pb.EndRequest(**named))),
                await refused(running.stub.Send(pb.SendRequest(**named))),
                await refused(running.stub.Watch(pb.WatchRequest(**named)).read()),
            ]
            async with running.converse() as talk:
                await talk.call.write(pb.ClientMessage(join=pb.Join(**named)))
                answers.append(await refused(talk.call.read()))
            assert len({(name, text) for name, text, _ in answers}) == 1
            assert answers[0][0] == "NOT_FOUND"
        assert running.session.ended is None
        assert max(shown) < 1_000

    against(test)


def test_key_is_needed_where_the_server_has_keys_and_sessions_are_its_tenants() -> None:
    """Without one UNAUTHENTICATED; the right secret of another tenant's session is as good as a wrong one."""

    async def test(running: Running) -> None:
        assert (await refused(running.stub.Create(pb.CreateRequest())))[0] == "UNAUTHENTICATED"
        async with running.converse(authorization="Bearer nope") as talk:
            assert (await refused(talk.call.read()))[0] == "UNAUTHENTICATED"
        assert not running.house.directory.sessions
        one, other = (("authorization", "Bearer key-a"),), (("authorization", "Bearer key-b"),)
        opened = await running.stub.Create(pb.CreateRequest(), metadata=one)
        request = running.session.request
        assert (request.tenant, request.tier) == ("alpha", Tier.PLATINUM)
        asked = pb.GetRequest(session_id=opened.session_id, secret=opened.secret)
        assert (await running.stub.Get(asked, metadata=one)).last == 0
        assert (await refused(running.stub.Get(asked, metadata=other)))[0] == "NOT_FOUND"

    against(test, keyed)


def test_web_page_of_another_origin_is_refused() -> None:
    """A browser cannot speak gRPC; what claims to be one and comes from elsewhere is sent away all the same."""

    async def test(running: Running) -> None:
        call = running.stub.Create(pb.CreateRequest(), metadata=(("origin", "https://evil.example"),))
        assert (await refused(call))[0] == "PERMISSION_DENIED"

    against(test)


def test_bad_session_is_refused_and_leaves_nothing_behind() -> None:
    """What is no JSON object, endless, or not the protocol's: INVALID_ARGUMENT that names the field."""

    async def test(running: Running) -> None:
        for session, param in (
            ("[]", "session"), ("{", "session"), ('{"type":"realtime","audio":{"input":7}}', "session.audio.input"),
            (" " * 600_000, "session"),
        ):  # fmt: skip
            name, _, trailers = await refused(running.stub.Create(pb.CreateRequest(session=session)))
            assert (name, trailers["chorale-param"]) == ("INVALID_ARGUMENT", param)
        assert (await refused(running.stub.Create(pb.CreateRequest(model="m" * 300))))[
            0
        ] == "INVALID_ARGUMENT"
        assert not running.house.directory.sessions

    against(test)
