"""Sessions over gRPC, through a real channel."""

import asyncio
import json

import grpc
import pytest

from orchestrator.errors import WireError
from orchestrator.sessions.links import LinkKind
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from orchestrator.transports.rpc.v1 import chorale_pb2_grpc as pb_grpc
from orchestrator.wire.client import CommitAudio, CreateResponse, UpdateSession
from orchestrator.wire.session import AudioFormat
from tests.transports.rpc.calling import Running, against, build, refused, serving
from tests.transports.running import item, until

COMMIT = '{"type":"input_audio_buffer.commit"}'


def test_stream_opens_a_session_as_it_is_asked_to() -> None:
    """Model, partial session and trace context reach the session; the first answer names it, its secret and 0."""

    async def test(running: Running) -> None:
        parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        async with running.converse(traceparent=parent) as talk:
            opened = await talk.open(model="gpt", session='{"instructions":"Be brief."}')
            session = running.session
            assert (opened.session_id, opened.secret, opened.last) == (session.id, session.secret, 0)
            assert json.loads(opened.session)["instructions"] == "Be brief."
            assert (session.request.model, session.request.traceparent) == ("gpt", parent)
            (link,) = session.links.values()
            assert (session.kind, link.kind, link.playout) == (LinkKind.RPC, LinkKind.RPC, None)

    against(test)


def test_stream_carries_events_and_sound_both_ways_in_order() -> None:
    """Events go in as JSON and sound as bytes, in one order; out come numbered events and speech."""

    async def test(running: Running) -> None:
        async with running.converse() as talk:
            await talk.open()
            session = running.session
            await talk.sound(b"\x01\x00" * 2_400)
            await talk.say("input_audio_buffer.commit")
            await talk.say("response.create")
            await session.wait_for(2)
            assert session.intake.position == 1_600
            assert [type(event) for event in session.submitted] == [CommitAudio, CreateResponse]
            session.emit("response.created")
            session.speak(b"\x02\x00" * 100)
            session.emit("response.done")
            first, speech, last = [await talk.read() for _ in range(3)]
            assert [message.number for message in (first, speech, last)] == [1, 2, 3]
            assert json.loads(first.event.json)["type"] == "response.created"
            assert speech.speech == pb.Speech(data=b"\x02\x00" * 100, response_id="resp_1", item_id="item_1")
            assert json.loads(last.event.json)["type"] == "response.done"

    against(test)


def test_sound_is_in_the_formats_of_the_session() -> None:
    """After an update to G.711, one byte is one sample at 8 kHz, in and out; what is held back comes with the end."""

    async def test(running: Running) -> None:
        async with running.converse() as talk:
            await talk.open()
            session = running.session
            audio = {
                "input": {"format": {"type": "audio/pcmu"}},
                "output": {"format": {"type": "audio/pcmu"}},
            }
            await talk.say("session.update", session={"type": "realtime", "audio": audio})
            await talk.sound(b"\xff" * 800)
            await talk.say("input_audio_buffer.commit")
            await session.wait_for(2)
            assert isinstance(session.submitted[0], UpdateSession)
            assert session.intake.position == 1_600
            assert session.view.audio.output.format == AudioFormat("audio/pcmu")
            session.speak(b"\0\0" * 240)
            session.speak(b"", last=True)
            heard = b""
            while len(heard) < 80:
                heard += (await talk.read()).speech.data
            assert heard == b"\xff" * 80

    against(test)


def test_base64_appends_are_taken_too() -> None:
    """The protocol's own append works in a stream as on a WebSocket, on the same stream of samples."""

    async def test(running: Running) -> None:
        async with running.converse() as talk:
            await talk.open()
            await talk.say("input_audio_buffer.append", audio="AQABAAEA")
            await talk.sound(b"\x01\x00" * 3)
            await talk.say("input_audio_buffer.commit")
            await running.session.wait_for(1)
            assert running.session.intake.position == 4

    against(test)


def test_what_is_wrong_with_an_event_is_answered_and_the_stream_goes_on() -> None:
    """Bad JSON, unknown types, messages without anything and a second `open`: an error each, with number 0."""

    async def test(running: Running) -> None:
        async with running.converse() as talk:
            await talk.open()
            await talk.call.write(pb.ClientMessage(event=pb.Event(json="{")))
            await talk.say("nope", event_id="e1")
            await talk.call.write(pb.ClientMessage())
            await talk.call.write(pb.ClientMessage(open=pb.Open()))
            await talk.say("input_audio_buffer.append", audio="!", event_id="e2")
            answers = [await talk.read() for _ in range(5)]
            errors = [json.loads(answer.event.json)["error"] for answer in answers]
            assert [error["code"] for error in errors] == [
                "invalid_json", "invalid_event", "invalid_event", "invalid_event", "invalid_value",
            ]  # fmt: skip
            assert [error["event_id"] for error in errors] == [None, "e1", None, None, "e2"]
            assert {answer.number for answer in answers} == {0}
            await talk.say("input_audio_buffer.commit")
            await running.session.wait_for(1)

    against(test)


def test_stream_that_does_not_begin_with_a_session_is_refused() -> None:
    """An event first, nothing at all, and a message that is none: INVALID_ARGUMENT, and no session is made."""

    async def test(running: Running) -> None:
        for first in (pb.ClientMessage(event=pb.Event(json=COMMIT)), pb.ClientMessage()):
            async with running.converse() as talk:
                await talk.call.write(first)
                name, _, trailers = await refused(talk.call.read())
                assert (name, trailers["chorale-param"]) == ("INVALID_ARGUMENT", "message")
        async with running.converse() as talk:
            await talk.call.done_writing()
            assert (await refused(talk.call.read()))[0] == "INVALID_ARGUMENT"
        assert not running.house.directory.sessions

    against(test)


def test_bytes_that_are_no_message_are_the_clients_fault() -> None:
    """INVALID_ARGUMENT for a stream and for a request, without a word of what broke inside."""

    async def test(running: Running) -> None:
        def raw(data: bytes) -> bytes:
            return data

        unary = running.channel.unary_unary("/chorale.v1.Sessions/Get", raw, raw)
        name, text, _ = await refused(unary(b"\xff\xff"))
        assert (name, text) == ("INVALID_ARGUMENT", "The message is no chorale.v1.GetRequest.")
        stream = running.channel.stream_stream("/chorale.v1.Sessions/Converse", raw, raw)()
        await stream.write(b"\xff\xff")
        assert (await refused(stream.read()))[0] == "INVALID_ARGUMENT"
        async with running.converse() as talk:
            await talk.open()
            session = running.session
        second = running.channel.stream_stream("/chorale.v1.Sessions/Converse", raw, raw)()
        join = pb.ClientMessage(join=pb.Join(session_id=session.id, secret=session.secret))
        await second.write(join.SerializeToString())
        await second.read()
        await second.write(b"\xff\xff")
        await second.read()
        assert (await refused(second.read()))[0] == "INVALID_ARGUMENT"
        await until(lambda: not session.links)

    against(test)


def test_session_is_joined_again_where_its_client_left_off() -> None:
    """With `after`, what was missed comes once, in order, then what is new; without it, only what is new."""

    async def test(running: Running) -> None:
        async with running.converse() as talk:
            opened = await talk.open()
        session = running.session
        await until(lambda: not session.links)
        for kind in ("a", "b", "c"):
            session.emit(kind)
        async with running.converse() as back, running.converse() as live:
            again = await back.join(opened, after=1)
            assert (again.session_id, again.secret, again.last) == (session.id, session.secret, 1)
            assert (await live.join(opened)).last == 3
            session.emit("d")
            missed = [await back.read() for _ in range(3)]
            assert [message.number for message in missed] == [2, 3, 4]
            new = await live.read()
            assert (new.number, json.loads(new.event.json)["type"]) == (4, "d")
            assert new == missed[-1]

    against(test)


def test_what_is_no_longer_held_is_told_as_a_gap() -> None:
    """One typed gap, with number 0, between `session.created` and the first that is still there."""

    async def test(running: Running) -> None:
        opened = await running.create()
        session = running.session
        for _ in range(5):
            session.emit("a")
        session.drop_before(4)
        async with running.converse() as talk:
            assert (await talk.join(opened, after=1)).last == 3
            gap = await talk.read()
            assert (gap.WhichOneof("message"), gap.number, gap.gap) == ("gap", 0, pb.Gap(after=1, first=4))
            assert [(await talk.read()).number for _ in range(2)] == [4, 5]

    against(test)


def test_number_that_never_was_is_refused() -> None:
    """Beyond the newest event: INVALID_ARGUMENT on `after`, and nobody is linked."""

    async def test(running: Running) -> None:
        opened = await running.create()
        for after in (1, 2**64 - 1):
            async with running.converse() as talk:
                join = pb.Join(session_id=opened.session_id, secret=opened.secret, after=after)
                await talk.call.write(pb.ClientMessage(join=join))
                name, _, trailers = await refused(talk.call.read())
                assert (name, trailers["chorale-param"]) == ("INVALID_ARGUMENT", "after")
        assert not running.session.links

    against(test)


def test_watch_sends_events_and_speech_only_where_it_is_wanted() -> None:
    """Without `speech` its numbers are passed over, which is no gap, and to the session nobody hears; with it every
    entry comes."""

    async def test(running: Running) -> None:
        opened = await running.create()
        session = running.session
        session.emit("a")
        session.speak(b"\1\0" * 10)
        session.emit("b")
        numbers: dict[bool, list[int]] = {}
        for speech in (False, True):
            asked = pb.WatchRequest(
                session_id=opened.session_id, secret=opened.secret, after=0, speech=speech
            )
            call = running.stub.Watch(asked)
            numbers[speech] = []
            while not numbers[speech] or numbers[speech][-1] < 3:
                numbers[speech].append((await call.read()).number)
            (link,) = session.links.values()
            assert link.kind is (LinkKind.RPC if speech else LinkKind.EVENTS)
            call.cancel()
            await until(lambda: not session.links)
        assert numbers == {False: [0, 0, 1, 3], True: [0, 0, 1, 2, 3]}

    against(test)


def test_closing_server_opens_nothing_new_and_ends_its_streams() -> None:
    """Who asks for a session while it drains is told to come back; a stream ends UNAVAILABLE after its last words."""

    async def test(running: Running) -> None:
        async with running.converse() as talk:
            opened = await talk.open()
            running.house.entrance.close()
            name, _, trailers = await refused(running.stub.Create(pb.CreateRequest()))
            assert (name, trailers["chorale-code"]) == ("UNAVAILABLE", "server_shutting_down")
            async with running.converse() as again:
                await again.join(opened)  # running turns may be heard to their end
            running.session.emit("last words")
            stopping = asyncio.ensure_future(running.house.server.stop(5))
            assert (await talk.event())["type"] == "last words"
            name, text, _ = await refused(talk.call.read())
            assert (name, text[:31]) == ("UNAVAILABLE", "The server is shutting down; co")
            await stopping

    against(test)


def test_client_that_says_no_more_goes_on_reading() -> None:
    """Half a stream closed is not the end of it; cancelling is, and the session is let go at once."""

    async def test(running: Running) -> None:
        talk = running.converse()
        await talk.open()
        await talk.call.done_writing()
        session = running.session
        session.emit("later")
        assert (await talk.event())["type"] == "later"
        talk.call.cancel()
        await until(lambda: not session.links)
        assert session.ended is None

    against(test)


def test_deadline_of_a_client_ends_its_stream_only() -> None:
    """The call ends DEADLINE_EXCEEDED, its link goes, the session stays."""

    async def test(running: Running) -> None:
        opened = await running.create()
        asked = pb.WatchRequest(session_id=opened.session_id, secret=opened.secret)
        call = running.stub.Watch(asked, timeout=3)
        assert (await call.read()).WhichOneof("message") == "opened"
        await call.read()
        assert (await refused(call.read()))[0] == "DEADLINE_EXCEEDED"
        await until(lambda: not running.session.links)
        assert running.session.ended is None

    against(test)


def test_client_without_asyncio_is_served_like_any_other() -> None:
    """The plain, threaded client of gRPC: a request, and a stream with an iterator of messages."""

    async def test(running: Running) -> None:
        def talk() -> list[str]:
            with grpc.insecure_channel(f"127.0.0.1:{running.port}") as channel:
                stub = pb_grpc.SessionsStub(channel)  # type: ignore[no-untyped-call]  # generated
                first = pb.ClientMessage(open=pb.Open(model="m"))
                event = pb.ClientMessage(event=pb.Event(json=json.dumps({
                    "type": "conversation.item.create", "item": item("hello"),
                })))  # fmt: skip
                call = stub.Converse(iter([first, event]))
                kinds = [next(call).WhichOneof("message") for _ in range(3)]
                call.cancel()
                return kinds

        talking = asyncio.ensure_future(asyncio.to_thread(talk))
        await until(lambda: bool(running.house.directory.sessions))
        await running.session.wait_for(1)
        running.session.emit("heard")
        assert await talking == ["opened", "event", "event"]

    against(test)


def test_refusal_in_the_middle_is_an_answer_and_not_the_end() -> None:
    """What the session itself refuses comes as its `error` on the stream that asked."""

    async def test(running: Running) -> None:
        async with running.converse() as talk:
            await talk.open()
            (link_id,) = running.session.links
            running.session.refuse(link_id, WireError("invalid_value", "no", "x"), "e1")
            answer = await talk.event()
            assert (answer["type"], answer["error"]["event_id"]) == ("error", "e1")

    against(test)


def test_server_runs_on_the_loop_of_production() -> None:
    """uvloop and gRPC's own thread get along: a stream both ways, and an end in good order."""
    uvloop = pytest.importorskip("uvloop")

    async def main() -> None:
        async with asyncio.timeout(120), serving(build()) as running, running.converse() as talk:
            await talk.open()
            await talk.say("response.cancel")
            await running.session.wait_for(1)
            running.session.emit("a")
            assert (await talk.read()).number == 1
            talk.call.cancel()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
