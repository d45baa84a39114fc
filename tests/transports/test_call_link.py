"""Events of calls over real data channels: in order, bounded, nothing lost before the channel opens."""

import asyncio
import json

import pytest
from aiortc import RTCSessionDescription

from orchestrator.sessions.links import LoggedEvent
from orchestrator.transports import call, call_link
from orchestrator.transports.call import MAX_UNREAD, CallSettings
from orchestrator.transports.pace import Rate
from orchestrator.wire.client import CreateResponse
from tests.transports.calling import (
    REQUEST,
    Script,
    frames_of,
    loud_extents,
    switchboard,
    tone,
    until,
)


def test_events_go_both_ways_in_order() -> None:
    """What the session logs arrives as it was encoded; sound in the log is not sent as an event."""

    async def main() -> None:
        async with switchboard() as board:
            caller = await board.dial()
            caller.send({"type": "response.create", "event_id": "mine"})
            await board.session.wait_for(1)
            (event,) = board.session.submitted
            assert isinstance(event, CreateResponse)
            assert event.event_id == "mine"
            assert board.session.ages_us[0] >= 0
            board.session.emit("response.created")
            board.session.speak(bytes(960))
            board.session.emit("response.done")
            await until(lambda: "response.done" in caller.types(), "the response")
            assert caller.types() == ["session.created", "response.created", "response.done"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("message", "code", "word"),
    [
        ("{", "invalid_json", "JSON"),
        (json.dumps({"type": "nonsense", "event_id": "x"}), "invalid_event", "nonsense"),
        (json.dumps({"type": "input_audio_buffer.append", "audio": "AAAA"}), "invalid_event", "audio track"),
        (b"\xff\xfe", "invalid_json", "JSON"),
    ],
)
def test_a_message_that_cannot_be_taken_is_refused_and_the_call_lives(
    message: str | bytes, code: str, word: str
) -> None:
    """Each is answered by `error` on the same channel; the next event is taken as usual."""

    async def main() -> None:
        async with switchboard() as board:
            caller = await board.dial()
            caller.send(message)
            await until(lambda: "error" in caller.types(), "the refusal")
            error = caller.events[-1]["error"]
            assert error["code"] == code
            assert word in error["message"]
            caller.send({"type": "response.create"})
            await board.session.wait_for(1)

    asyncio.run(main())


def test_a_call_without_a_data_channel_hears_and_is_heard() -> None:
    """Events have nowhere to go; they neither pile up nor end the call."""

    async def main() -> None:
        async with switchboard() as board:
            await board.dial(Script(frames_of(tone(1))), channel=False)
            for _ in range(600):
                board.session.link.tell(b'{"type":"error"}')
                board.session.emit("response.created")
            await until(lambda: loud_extents(board.session), "the caller's sound")
            assert board.door.calls == 1

    asyncio.run(main())


def test_what_happens_before_the_channel_opens_is_not_lost() -> None:
    """Numbered events and private messages wait, in order."""

    async def main() -> None:
        async with switchboard() as board:
            caller, sdp = await board.offer()
            _, answer = await board.door.answer(sdp, REQUEST)
            for number in range(50):
                board.session.emit(f"event.{number}")
                board.session.link.tell(json.dumps({"type": f"told.{number}"}).encode())
            await caller.peer.setRemoteDescription(RTCSessionDescription(answer, "answer"))
            await until(lambda: len(caller.events) == 101, "all events")
            expected = [kind for number in range(50) for kind in (f"event.{number}", f"told.{number}")]
            assert caller.types() == ["session.created", *expected]

    asyncio.run(main())


def test_more_than_the_channel_holds_arrives_whole_and_in_order() -> None:
    """2 MB at once: reading the log stops at the high mark and goes on at the low one."""

    async def main() -> None:
        async with switchboard() as board:
            caller = await board.dial()
            for number in range(100):
                text = json.dumps({"type": "big", "number": number, "text": "x" * 20_000})
                board.session.emit(LoggedEvent(text.encode()))
            await until(lambda: len(caller.events) == 101, "all events")
            assert [event["number"] for event in caller.events[1:]] == list(range(100))

    asyncio.run(main())


def test_an_event_longer_than_the_client_takes_is_cut_or_said_to_be_left_out() -> None:
    """The channel survives both. A session keeps its place, since clients wait for it (the one in JavaScript inside of
    connect), with fewer words; what a cut would break is replaced by an `error`; what follows arrives."""

    async def main() -> None:
        async with switchboard() as board:
            caller, sdp = await board.offer()
            sdp = sdp.replace("a=max-message-size:262144", "a=max-message-size:2000")
            _, answer = await board.door.answer(sdp, REQUEST)
            await caller.peer.setRemoteDescription(RTCSessionDescription(answer, "answer"))
            await caller.connected()
            instructions = {"id": "sess_1", "instructions": "Be kind. " * 900, "tools": [{"name": "f"}]}
            updated = {"type": "session.updated", "session": instructions}
            board.session.emit(LoggedEvent(json.dumps(updated).encode()))
            big = {"event_id": "event_2", "type": "big", "delta": "x" * 3_000}
            board.session.emit(LoggedEvent(json.dumps(big).encode()))
            board.session.emit("small")
            await until(lambda: "small" in caller.types(), "the event after it")
            assert caller.types()[-3:] == ["session.updated", "error", "small"]
            shown = caller.events[-3]["session"]
            assert (shown["id"], shown["tools"]) == ("sess_1", [{"name": "f"}])
            assert shown["instructions"].startswith("Be kind. " * 100)
            assert caller.events[-2]["error"]["code"] == "event_too_big"
            assert caller.events[-2]["event_id"] == "event_2"

    asyncio.run(main())


def test_a_caller_that_fell_behind_the_log_is_cut_off() -> None:
    """What it missed is gone; the session lives on for other links."""

    async def main() -> None:
        async with switchboard() as board:
            caller = await board.dial()
            for number in range(10):
                board.session.emit(f"event.{number}")
            board.session.drop_before(8)
            await until(lambda: board.door.calls == 0, "the call to end")
            assert board.session.ended is None
            assert board.session.links == {}
            await until(lambda: caller.peer.connectionState == "closed", "the caller to notice")

    asyncio.run(main())


def test_a_channel_that_nobody_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that acknowledges nothing keeps the channel above its mark: the call ends in bounded time."""
    monkeypatch.setattr(call_link, "STUCK_AFTER_S", 0.2)

    async def main() -> None:
        async with switchboard() as board:
            caller = await board.dial()

            async def deaf(data: bytes) -> None:
                """Takes nothing in."""

            sctp = caller.peer.sctp
            assert sctp is not None
            sctp._handle_data = deaf  # type: ignore[method-assign]
            for _ in range(100):
                board.session.emit(LoggedEvent(json.dumps({"type": "big", "text": "x" * 20_000}).encode()))
            await until(lambda: board.door.calls == 0, "the call to end")

    asyncio.run(main())


def test_a_flood_of_events_ends_the_call_and_not_the_server() -> None:
    """While the session's inbox is full a bounded number waits; more is answered by the end."""

    async def main() -> None:
        async with switchboard() as board:
            caller = await board.dial()
            board.session.room.clear()
            for _ in range(MAX_UNREAD + 50):
                caller.send({"type": "response.create"})
            await until(lambda: board.door.calls == 0, "the call to end")
            board.session.room.set()

    asyncio.run(main())


def test_a_client_that_says_too_much_is_read_more_slowly_until_its_call_ends() -> None:
    """A data channel cannot be told to wait: what comes too fast waits unread, and that is bounded."""

    async def main() -> None:
        settings = CallSettings(rate=Rate(events_per_s=20, bytes_per_s=1e9, burst_bytes=10**9, excess_s=1))
        async with switchboard(settings) as board:
            caller = await board.dial()
            for _ in range(MAX_UNREAD + 100):
                caller.send({"type": "response.create"})
            await until(lambda: board.door.calls == 0, "the call to end")
            assert 20 <= len(board.session.submitted) < MAX_UNREAD

    asyncio.run(main())


def test_bytes_are_bounded_too_and_only_while_they_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times the bound passes through as long as it is read; more than the bound at once ends the call."""
    monkeypatch.setattr(call, "MAX_UNREAD_BYTES", 3_000)

    async def main() -> None:
        async with switchboard() as board:
            caller = await board.dial()
            event = {"type": "response.create", "event_id": "x" * 400}
            for number in range(1, 61):
                caller.send(event)
                await board.session.wait_for(number)
            assert board.door.calls == 1
            board.session.room.clear()
            for _ in range(20):
                caller.send(event)
            await until(lambda: board.door.calls == 0, "the call to end")
            board.session.room.set()

    asyncio.run(main())


def test_the_last_words_of_a_session_arrive_before_its_channel_closes() -> None:
    """What was logged and told before the end is received; then the channel closes and the call is gone."""

    async def main() -> None:
        async with switchboard() as board:
            caller = await board.dial()
            board.session.emit("response.done")
            board.session.link.tell(b'{"type":"error","error":{"code":"session_expired"}}')
            board.session.link.close(1001, "Your session hit the maximum duration.")
            assert caller.channel is not None
            channel = caller.channel
            await until(lambda: channel.readyState == "closed", "the channel to close")
            assert caller.types() == ["session.created", "response.done", "error"]
            await until(lambda: board.door.calls == 0, "the call to be gone")

    asyncio.run(main())
