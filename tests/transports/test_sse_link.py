"""A stream sends all that is logged and told, in order, says that it is there, and grows by nobody's slowness."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

import msgspec

from orchestrator.sessions.links import LinkKind, LoggedEvent, SessionRequest
from orchestrator.transports.outbox import MAX_TOLD
from orchestrator.transports.sse import HEARTBEAT
from orchestrator.transports.sse_link import SseLink, StreamSettings
from tests.transports.fake_sessions import FakeSession
from tests.transports.reading_events import Parsed, parsed
from tests.virtual_time import run


class Reading:
    """A session and a stream of it that has begun."""

    def __init__(self, with_sound: bool = False, after: int | None = None, logged: int = 0) -> None:
        self.session = FakeSession(SessionRequest("t", 2), LinkKind.EVENTS)
        for _ in range(logged):
            self.session.emit("x")
        self.link = SseLink(self.session, with_sound, StreamSettings(heartbeat_s=15, retry_ms=1_000))
        self.link.start(self.session.attach(self.link, after))
        self.chunks: AsyncGenerator[bytes, None] = self.link.chunks()
        self.stream = b""

    async def next(self) -> bytes:
        chunk = await anext(self.chunks)
        self.stream += chunk
        return chunk

    async def rest(self) -> list[Parsed]:
        async for chunk in self.chunks:
            self.stream += chunk
        return parsed(self.stream)


def on_virtual_time(test: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(36_000):
            await test()

    run(main())


def test_stream_says_that_it_is_there_where_there_is_nothing_else_to_say() -> None:
    """After each 15 s of silence, and not while there are events."""

    async def test() -> None:
        reading = Reading()
        loop = asyncio.get_running_loop()
        assert (await reading.next()).startswith(b"retry: ")
        assert parsed(await reading.next())[0].kind == "session.created"
        for count in (1, 2):
            assert await reading.next() == HEARTBEAT
            assert loop.time() == 15 * count
        loop.call_later(14, reading.session.emit, "y")
        assert parsed(await reading.next())[0].kind == "y"
        assert loop.time() == 44
        assert await reading.next() == HEARTBEAT
        assert loop.time() == 59

    on_virtual_time(test)


def test_stream_says_that_it_is_there_while_all_that_comes_is_not_for_it() -> None:
    """Sound that this reader does not take wakes its stream and sends nothing: a proxy would take it for dead."""

    async def test() -> None:
        reading = Reading()
        loop = asyncio.get_running_loop()
        await reading.next()
        await reading.next()
        for second in range(60):
            loop.call_at(second + 0.5, reading.session.speak, bytes(480))
        assert [(await reading.next(), loop.time()) for _ in range(3)] == [
            (HEARTBEAT, 15), (HEARTBEAT, 30), (HEARTBEAT, 45),
        ]  # fmt: skip

    on_virtual_time(test)


def test_stream_shows_the_secret_where_its_event_has_one() -> None:
    """Whoever reads has shown the secret: what he gets is what a WebSocket gets, to the byte."""

    async def test() -> None:
        reading = Reading()
        names = {"event_id": reading.session.event_id(1), "type": "session.updated"}
        both = [msgspec.json.encode({**names, "secret": one}) for one in ("", "rs_x")]
        reading.session.emit(LoggedEvent(*both))
        reading.link.close(1000, "bye")
        await reading.rest()
        assert b"data: " + both[1] + b"\n" in reading.stream

    on_virtual_time(test)


def test_stream_sends_what_was_missed_once_and_in_order() -> None:
    """From the number that the reader has, with each number as id; then what comes."""

    async def test() -> None:
        reading = Reading(after=3, logged=200)
        reading.session.emit("y")
        reading.link.close(1000, "bye")
        events = await reading.rest()
        numbered = [one.last_id for one in events if one.kind in "xy"]
        assert numbered == [reading.session.event_id(number) for number in range(4, 202)]
        assert [one.kind for one in events][:1] == ["session.created"]

    on_virtual_time(test)


def test_stream_begins_with_the_number_after_which_it_reads() -> None:
    """So that a reader which is cut at once misses nothing when it comes back."""

    async def test() -> None:
        reading = Reading(logged=7)
        first = await reading.next()
        assert reading.session.event_id(7).encode() in first
        retry_ms = int(first.split(b"\n")[0].removeprefix(b"retry: "))
        assert 1_000 <= retry_ms <= 1_500

    on_virtual_time(test)


def test_stream_ends_after_what_was_to_be_sent() -> None:
    """What is logged and told before the end is there; what comes after it is not."""

    async def test() -> None:
        reading = Reading()
        reading.session.emit("x")
        reading.link.tell(msgspec.json.encode({"type": "error", "event_id": "event_1"}))
        reading.link.close(1000, "bye")
        reading.session.emit("z")
        assert [one.kind for one in await reading.rest()] == ["session.created", "x", "error"]

    on_virtual_time(test)


def test_stream_brings_sound_to_those_who_ask_for_it() -> None:
    """Deltas with their numbers; without sound the numbers are passed over, and what follows comes."""

    async def test() -> None:
        for with_sound, kinds in ((True, ["response.output_audio.delta", "x"]), (False, ["x"])):
            reading = Reading(with_sound)
            reading.session.speak(bytes(480))
            reading.session.emit("x")
            reading.link.close(1000, "bye")
            events = (await reading.rest())[1:]
            assert [one.kind for one in events] == kinds
            assert events[-1].last_id == reading.session.event_id(2)

    on_virtual_time(test)


def test_stream_whose_reader_is_slower_than_the_log_ends() -> None:
    """Its client comes back with its number, and is told of the gap."""

    async def test() -> None:
        reading = Reading()
        await reading.next()
        await reading.next()
        for _ in range(50):
            reading.session.emit("x")
        reading.session.drop_before(40)
        assert [one.kind for one in await reading.rest()] == ["session.created"]

    on_virtual_time(test)


def test_stream_that_is_to_end_does_not_go_on_for_one_who_reads_slowly() -> None:
    """Five seconds after its end was said nothing more comes: his key was withdrawn, or the server goes."""

    async def test() -> None:
        reading = Reading(after=0, logged=1_000)
        await reading.next()
        reading.link.close(1008, "gone")
        pieces = 0
        async for _ in reading.chunks:
            pieces += 1
            await asyncio.sleep(2)
        assert pieces == 3

    on_virtual_time(test)


def test_stream_of_one_who_reads_nothing_keeps_a_bounded_number_of_messages() -> None:
    """Then it ends."""

    async def test() -> None:
        reading = Reading()
        for number in range(3 * MAX_TOLD):
            reading.link.tell(msgspec.json.encode({"type": "error", "event_id": f"event_{number}"}))
        assert reading.link.told[0] <= MAX_TOLD + 1
        assert len(await reading.rest()) == MAX_TOLD

    on_virtual_time(test)


def test_stream_whose_reader_leaves_as_there_is_more_to_send_ends() -> None:
    """Whichever is told first: a stream that nobody reads must not stay, nor keep its place."""

    async def test() -> None:
        reading = Reading()
        parts = [await reading.next() for _ in range(2)]
        writing = asyncio.create_task(reading.rest())
        await asyncio.sleep(1)
        reading.session.emit("x")
        await asyncio.sleep(0)
        writing.cancel()
        await asyncio.wait({writing}, timeout=60)
        assert writing.cancelled()
        assert len(parts) == 2

    on_virtual_time(test)
