"""gRPC under pressure: clients that do not read, that say too much or nothing, and full servers."""

import asyncio
import zlib
from typing import Any

import grpc
import pytest

from orchestrator.sessions.links import LoggedEvent
from orchestrator.transports.pace import Rate
from orchestrator.transports.rpc import grpc_server, link, service
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from orchestrator.wire.client import CancelResponse
from tests.transports.rpc.calling import Running, against, build, refused
from tests.transports.running import until

WRITING = "INTERNAL"
"""What the client of grpc.aio says of a call that ends while it is writing, whatever the server says."""

BIG = LoggedEvent(b'{"event_id":"event_1","type":"a","text":"' + b"x" * 60_000 + b'"}')


def test_client_that_reads_nothing_is_sent_away_once_the_log_has_passed_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its messages stay in the log and nowhere else; when that drops them, its call ends and another goes on."""
    monkeypatch.setattr(link, "_STUCK_AFTER_S", 0.0)
    monkeypatch.setattr(grpc_server, "CLOSE_WITHIN_S", 0.2)

    async def test(running: Running) -> None:
        opened = await running.create()
        session = running.session
        asked = pb.WatchRequest(session_id=opened.session_id, secret=opened.secret)
        slow, quick = running.stub.Watch(asked), running.stub.Watch(asked)
        for call in (slow, quick):
            await call.read()
            await call.read()
        read = 0
        while len(session.links) == 2:
            session.emit(BIG)
            session.drop_before(session.last - 3)
            read = (await quick.read()).number
        assert read == session.last
        assert session.last < 500
        ended = await refused(_to_the_end(slow))
        assert ended[0] in ("UNAVAILABLE", "CANCELLED")  # as it is told, or as its stream is reset
        session.emit("still here")
        assert (await quick.read()).number == session.last
        slow.cancel()
        quick.cancel()

    against(test)


async def _to_the_end(call: grpc.aio.UnaryStreamCall[object, object]) -> None:
    while await call.read() is not grpc.aio.EOF:
        pass


def test_slow_client_that_reads_again_is_told_that_it_fell_behind() -> None:
    """What it did not take is gone: UNAVAILABLE, and it comes back with the number that it has."""

    async def test(running: Running) -> None:
        opened = await running.create()
        session = running.session
        asked = pb.WatchRequest(session_id=opened.session_id, secret=opened.secret)
        call = running.stub.Watch(asked)
        await call.read()
        await call.read()
        for _ in range(200):
            session.emit(BIG)
        await asyncio.sleep(0.05)
        session.drop_before(session.last)
        name, text, _ = await refused(_to_the_end(call))
        assert (name, "connect again" in text) == ("UNAVAILABLE", True)

    against(test)


def test_stream_is_read_no_further_while_its_session_has_no_room() -> None:
    """What a client says faster than its session takes it waits at the client: HTTP/2 holds it back."""

    async def test(running: Running) -> None:
        async with running.converse() as talk:
            await talk.open()
            session = running.session
            session.room.clear()
            said = 0

            async def say() -> None:
                nonlocal said
                while True:
                    await talk.say("response.cancel", padding="x" * 10_000)
                    said += 1

            saying = asyncio.ensure_future(say())
            seen = -1
            while said != seen:
                seen = said
                await asyncio.sleep(0.3)
            assert said < 100  # of 10 KB each
            assert not session.submitted
            session.room.set()
            await until(lambda: said > seen + 50)
            assert isinstance(session.submitted[0], CancelResponse)
            saying.cancel()

    against(test)


def test_stream_that_says_too_much_is_read_more_slowly_and_then_ended() -> None:
    """Over its rate it is held back; a client that does not let up is sent away, its session stays."""
    rate = Rate(events_per_s=10, bytes_per_s=1e9, burst_bytes=10**9, excess_s=0.5)

    async def test(running: Running) -> None:
        async with running.converse() as talk:
            await talk.open()
            session = running.session

            async def shout() -> None:
                while True:
                    await talk.say("response.cancel")

            shouting = asyncio.ensure_future(shout())
            name, text, _ = await refused(_to_the_end(talk.call))
            assert (name, "too much" in text) in {("RESOURCE_EXHAUSTED", True), (WRITING, False)}
            await until(lambda: bool(running.house.requests.records))
            assert running.house.requests.records[0].status == 429
            assert 5 <= len(session.submitted) <= 20
            assert session.ended is None
            shouting.cancel()
            await asyncio.gather(shouting, return_exceptions=True)

    against(test, lambda: build(rate=rate))


def test_sound_is_read_no_further_while_the_detector_is_behind() -> None:
    """Sound that runs ahead of who listens to it waits; it is not lost."""

    async def test(running: Running) -> None:
        async with running.converse() as talk:
            await talk.open()
            session = running.session
            session.intake.is_behind = True
            await talk.sound(b"\1\0" * 12_000)
            await talk.say("response.cancel")
            await asyncio.sleep(0.1)
            assert not session.submitted
            session.intake.is_behind = False
            await session.wait_for(1)
            assert session.intake.position > 7_900

    against(test)


def test_sound_beyond_the_buffer_is_refused_and_the_stream_goes_on() -> None:
    """An `error` of too much sound, in order."""

    async def test(running: Running) -> None:
        async with running.converse() as talk:
            await talk.open()
            running.session.intake.bound = 100
            await talk.sound(b"\1\0" * 2_400)
            assert (await talk.event())["error"]["code"] == "rate_limit_exceeded"
            await talk.say("input_audio_buffer.commit")
            await running.session.wait_for(1)

    against(test)


def test_message_over_the_bound_ends_the_call_and_not_the_server() -> None:
    """RESOURCE_EXHAUSTED above 21 MiB in a stream, INVALID_ARGUMENT above 1 MiB in a request."""

    async def test(running: Running) -> None:
        options = (("grpc.max_send_message_length", -1),)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{running.port}", options=options) as channel:
            send: Any = channel.unary_unary("/chorale.v1.Sessions/Send")
            big = pb.SendRequest(sound=b"x" * 2**20).SerializeToString()
            assert (await refused(send(big)))[:2] == (
                "INVALID_ARGUMENT",
                "A request has at most 1048576 bytes.",
            )
            talk: Any = channel.stream_stream("/chorale.v1.Sessions/Converse")()

            async def say() -> None:
                await talk.write(b"x" * 22_100_000)  # refused before it has gone, or behind it
                await talk.read()

            assert (await refused(say()))[0] in ("RESOURCE_EXHAUSTED", WRITING)
        await running.create()

    against(test)


def test_compressed_message_is_refused_before_it_is_unpacked() -> None:
    """A bomb of a thousand to one, and any other gzip: the call ends, and nothing was unpacked for it."""

    async def test(running: Running) -> None:
        for size in (10, 20_000_000):
            call = running.stub.Create(pb.CreateRequest(model="m" * size), compression=grpc.Compression.Gzip)
            assert (await refused(call))[0] in ("UNIMPLEMENTED", "INTERNAL")
        assert len(zlib.compress(b"m" * 20_000_000)) < 2**20
        assert not running.house.directory.sessions

    against(test)


def test_full_server_refuses_links_and_sessions_and_says_when_to_come_back() -> None:
    """Over its links and over its sessions: RESOURCE_EXHAUSTED with the milliseconds to wait, room once one left."""

    async def test(running: Running) -> None:
        async with running.converse() as first:
            opened = await first.open()
            session = running.session
            asked = pb.WatchRequest(session_id=opened.session_id, secret=opened.secret)
            name, _, trailers = await refused(running.stub.Watch(asked).read())
            assert (name, int(trailers["retry-after-ms"]) > 0) == ("RESOURCE_EXHAUSTED", True)
            async with running.converse() as second:
                assert (await refused(second.call.read()))[0] == "RESOURCE_EXHAUSTED"
            assert running.house.directory.sessions == [session]
            name, _, trailers = await refused(running.stub.Create(pb.CreateRequest()))
            assert (name, trailers["retry-after-ms"]) == ("RESOURCE_EXHAUSTED", "7000")
        await until(lambda: running.house.door.links == 0)
        watch = running.stub.Watch(asked)
        assert (await watch.read()).WhichOneof("message") == "opened"
        watch.cancel()

    against(test, lambda: build(max_links=1, capacity=1))


def test_stream_that_says_nothing_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who opens a stream and says nothing holds no place for long: DEADLINE_EXCEEDED."""
    monkeypatch.setattr(service, "FIRST_WITHIN_S", 0.05)

    async def test(running: Running) -> None:
        async with running.converse() as talk:
            assert (await refused(talk.call.read()))[0] == "DEADLINE_EXCEEDED"
        get: Any = running.channel.stream_unary("/chorale.v1.Sessions/Get")
        assert (await refused(get()))[0] == "DEADLINE_EXCEEDED"

    against(test)


def test_streams_that_say_nothing_take_no_place_of_other_calls() -> None:
    """They count as links from their first moment: one too many is refused, and short calls go on beside them."""

    async def test(running: Running) -> None:
        silent = [running.converse() for _ in range(2)]
        await until(lambda: running.house.requests.began_count == 2)
        async with running.converse() as third:
            assert (await refused(third.call.read()))[0] == "RESOURCE_EXHAUSTED"
        await running.create()
        opened = await silent[0].open()
        assert opened.session_id
        for talk in silent:
            talk.call.cancel()
        await until(lambda: running.house.door.links == 0)
        async with running.converse() as again:
            await again.join(opened)

    against(test, lambda: build(max_links=2))


def test_watchers_that_ask_for_nothing_count_as_links() -> None:
    """Before their request has come too: one link too many is refused, and short calls go on beside them."""

    async def test(running: Running) -> None:
        watch: Any = running.channel.stream_stream("/chorale.v1.Sessions/Watch")
        silent = [watch() for _ in range(2)]
        await until(lambda: running.house.entrance.links == 2)
        async with running.converse() as third:
            assert (await refused(third.call.read()))[0] == "RESOURCE_EXHAUSTED"
        await running.create()
        for call in silent:
            call.cancel()
        await until(lambda: running.house.entrance.links == 0)

    against(test, lambda: build(max_links=2))


def test_client_that_makes_more_errors_than_it_reads_is_sent_away() -> None:
    """Unread answers are bounded: the call ends RESOURCE_EXHAUSTED, the session lives."""

    async def test(running: Running) -> None:
        async with running.converse() as talk:
            await talk.open()
            session = running.session
            (link_id,) = session.links
            for _ in range(300):
                session.links[link_id].tell(b'{"type":"error","text":"' + b"x" * 20_000 + b'"}')
            name, text, _ = await refused(_to_the_end(talk.call))
            assert (name, "unanswered" in text) == ("RESOURCE_EXHAUSTED", True)
            assert session.ended is None

    against(test)


def test_stop_does_not_wait_for_clients_that_do_not_read() -> None:
    """A stream that its client does not take is cut when the time is up; the server is gone then."""

    async def test(running: Running) -> None:
        opened = await running.create()
        session = running.session
        asked = pb.WatchRequest(session_id=opened.session_id, secret=opened.secret)
        call = running.stub.Watch(asked)
        await call.read()
        for _ in range(300):
            session.emit(BIG)
        await asyncio.sleep(0.05)
        await running.house.server.stop(0.1)
        await until(lambda: not session.links)
        call.cancel()

    against(test)


def test_stop_that_is_cancelled_ends_everything_now() -> None:
    """Who cannot wait (a second signal) leaves neither a call nor a port behind."""

    async def test(running: Running) -> None:
        opened = await running.create()
        session = running.session
        asked = pb.WatchRequest(session_id=opened.session_id, secret=opened.secret)
        call = running.stub.Watch(asked)
        await call.read()
        for _ in range(300):
            session.emit(BIG)
        stopping = asyncio.ensure_future(running.house.server.stop(3_600))
        await asyncio.sleep(0.05)
        assert not stopping.done()
        stopping.cancel()
        await asyncio.gather(stopping, return_exceptions=True)
        await until(lambda: not session.links)
        call.cancel()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", running.port)

    against(test)
