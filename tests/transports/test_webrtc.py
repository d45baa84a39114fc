"""Calls over real peers on this machine: connecting, events, sound in and out, and every way of ending."""

import asyncio
import json
import random

import numpy as np
import pytest
from aiortc import RTCSessionDescription

from orchestrator.clients.peer import close_peer
from orchestrator.errors import ChoraleError, Overloaded, SessionClosed, WireError
from orchestrator.sessions.links import LinkKind, LoggedEvent
from orchestrator.transports import call_link
from orchestrator.transports.call import MAX_UNREAD, CallSettings
from orchestrator.transports.rtp_order import SoundCodec
from orchestrator.wire.client import CreateResponse
from tests.transports.calling import (
    REQUEST,
    Caller,
    Script,
    Switchboard,
    frames_of,
    loud_extents,
    switchboard,
    tone,
    until,
)


def test_an_offer_without_candidates_connects_and_begins_with_the_session() -> None:
    """What browsers post is answered with every candidate of ours, bundled, and `session.created` comes first."""

    async def main() -> None:
        async with switchboard() as board:
            caller = await board.dial()
            assert caller.call_id.startswith("rtc_")
            assert caller.types() == ["session.created"]
            assert "a=candidate:" in caller.answer
            assert "a=group:BUNDLE 0 1" in caller.answer
            assert "a=sendrecv" in caller.answer
            assert board.session.link.kind is LinkKind.CALL

    asyncio.run(main())


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


def test_sound_lies_where_it_was_spoken() -> None:
    """A tone of 0.2 s that begins 1 s after the first packet is heard there, to within 20 ms; so is one after a pause
    in which nothing was sent at all."""
    burst: list[bytes | str | None] = [*frames_of(tone(0.2))]
    story = [None] * 50 + burst + [None] * 15 + ["skip"] * 25 + burst + [None] * 25

    async def main() -> None:
        async with switchboard() as board:
            await board.dial(Script(story))
            await until(lambda: board.session.intake.position >= 2.4 * 16_000, "the sound")
            first, second = loud_extents(board.session)
            assert first == pytest.approx((1.0, 1.2), abs=0.02)
            assert second == pytest.approx((2.0, 2.2), abs=0.02)
            ((start, stop),) = board.session.ring.buffer.gaps
            assert (start / 16_000, stop / 16_000) == pytest.approx((1.5, 2.0), abs=0.021)

    asyncio.run(main())


def test_sound_of_a_client_without_opus_is_heard_and_answered() -> None:
    """PCMU both ways."""

    async def main() -> None:
        async with switchboard() as board:
            caller = await board.dial(
                Script([None] * 10 + frames_of(tone(0.2)) + [None] * 10, SoundCodec.PCMU), codecs=("PCMU",)
            )
            assert "PCMU/8000" in caller.answer
            assert "opus" not in caller.answer
            await until(lambda: board.session.intake.position >= 0.6 * 16_000, "the sound")
            (extent,) = loud_extents(board.session)
            assert extent == pytest.approx((0.2, 0.4), abs=0.02)

    asyncio.run(main())


def test_a_response_is_heard_counted_and_drained() -> None:
    """Half a second is played in full, once; the session learns of its end."""

    async def main() -> None:
        async with switchboard() as board:
            caller = await board.dial()
            playout = board.session.link.playout
            assert playout is not None
            playout.play("resp_1", tone(0.5).tobytes())
            playout.finish("resp_1")
            await until(lambda: board.session.drained, "the drain")
            assert board.session.drained == ["resp_1"]
            assert playout.played_samples("resp_1") == 12_000
            await until(lambda: audible_s(caller) >= 0.49, "the sound")
            assert audible_s(caller) == pytest.approx(0.5, abs=0.02)

    asyncio.run(main())


def test_after_a_flush_at_most_40_ms_more_are_heard_than_were_played() -> None:
    """Ten seconds are queued and cut off: what leaves the track afterwards is silence, and time stamps go on."""

    async def main() -> None:
        async with switchboard() as board:
            caller = await board.dial()
            playout = board.session.link.playout
            assert playout is not None
            playout.play("resp_1", tone(10).tobytes())
            await until(lambda: playout.played_samples("resp_1") >= 4_800, "some sound")
            playout.flush()
            played_s = playout.played_samples("resp_1") / 24_000
            received = caller.earpiece.count
            await until(lambda: caller.earpiece.count >= received + 25, "half a second more")
            assert played_s - 0.02 <= audible_s(caller) <= played_s + 0.04
            sound = caller.earpiece.sound()
            assert set(np.diff(sound.positions)) == {960}
            assert board.session.drained == []

    asyncio.run(main())


@pytest.mark.parametrize(("direction", "answered"), [("recvonly", "a=sendonly"), ("sendonly", "a=recvonly")])
def test_one_sided_offers_are_answered_accordingly(direction: str, answered: str) -> None:
    """Who only listens hears, who only speaks is heard; a response ends although nobody hears it."""

    async def main() -> None:
        async with switchboard() as board:
            caller = await board.dial(Script(frames_of(tone(1))), direction=direction)
            assert answered in caller.answer
            playout = board.session.link.playout
            assert playout is not None
            playout.play("resp_1", tone(0.2).tobytes())
            playout.finish("resp_1")
            await until(lambda: board.session.drained, "the drain")
            if direction == "recvonly":
                await until(lambda: audible_s(caller) > 0.15, "the reply's sound")
                assert board.session.intake.position == 0
            else:
                await until(lambda: loud_extents(board.session), "the caller's sound")
                assert caller.earpiece.count == 0

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


def test_an_event_longer_than_the_client_takes_is_left_out_and_said_so() -> None:
    """The channel survives it: an `error` stands in its place, and what follows arrives."""

    async def main() -> None:
        async with switchboard() as board:
            caller, sdp = await board.offer()
            sdp = sdp.replace("a=max-message-size:262144", "a=max-message-size:2000")
            _, answer = await board.door.answer(sdp, REQUEST)
            await caller.peer.setRemoteDescription(RTCSessionDescription(answer, "answer"))
            await caller.connected()
            board.session.emit(LoggedEvent(json.dumps({"type": "big", "text": "x" * 3_000}).encode()))
            board.session.emit("small")
            await until(lambda: "small" in caller.types(), "the event after it")
            assert caller.types()[-2:] == ["error", "small"]
            assert caller.events[-2]["error"]["code"] == "event_too_big"

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


def test_a_session_that_ended_gets_no_more_sound() -> None:
    """From `close` on nothing is handed to its intake, although packets still come."""

    async def main() -> None:
        async with switchboard() as board:
            await board.dial(Script(frames_of(tone(5))))
            await until(lambda: board.session.intake.position > 3_000, "some sound")
            board.session.link.close(1000, "over")
            position = board.session.intake.position
            await until(lambda: board.door.calls == 0, "the call to be gone")
            assert board.session.intake.position == position

    asyncio.run(main())


def test_hanging_up_ends_call_and_session() -> None:
    """Only its own tenant can; a second time there is no such call."""

    async def main() -> None:
        async with switchboard() as board:
            caller = await board.dial()
            with pytest.raises(SessionClosed):
                await board.door.hang_up(caller.call_id, "somebody else")
            with pytest.raises(SessionClosed):
                await board.door.hang_up("rtc_unknown", "tenant")
            await board.door.hang_up(caller.call_id, "tenant")
            assert board.door.calls == 0
            assert board.session.ended is not None
            await until(lambda: caller.peer.connectionState == "closed", "the caller to notice")

    asyncio.run(main())


def test_a_client_that_hangs_up_leaves_its_session_its_grace() -> None:
    """The link is detached and everything of the call released; what the session does is not the door's business."""

    async def main() -> None:
        async with switchboard() as board:
            caller = await board.dial()
            await close_peer(caller.peer)
            await until(lambda: board.door.calls == 0, "the call to be gone")
            assert board.session.links == {}
            assert board.session.ended is None

    asyncio.run(main())


def test_an_offer_that_never_connects_gives_its_place_back() -> None:
    """After `ice_timeout_s` the session ends and the sockets close (F-C4): two places, ten rounds of real calls and
    offers that lead nowhere."""

    async def main() -> None:
        async with switchboard(CallSettings(ice_timeout_s=0.5), capacity=2) as board:
            for _ in range(10):
                _, sdp = await board.offer()
                await board.door.answer(sdp, REQUEST)
                caller = await board.dial()
                with pytest.raises(Overloaded):
                    await board.door.answer(sdp, REQUEST)
                await board.door.hang_up(caller.call_id, "tenant")
                await until(lambda: not board.directory.living, "both places")
            assert board.door.calls == 0

    asyncio.run(main())


def test_a_peer_that_never_finishes_dtls_expires_too() -> None:
    """ICE alone is not a connection."""

    async def main() -> None:
        async with switchboard(CallSettings(ice_timeout_s=1.0)) as board:
            caller, sdp = await board.offer()
            _, answer = await board.door.answer(sdp, REQUEST)

            async def silent(_: object) -> None:
                """Does not shake hands."""

            caller.peer.getReceivers()[0].transport.start = silent  # type: ignore[assignment]
            await caller.peer.setRemoteDescription(RTCSessionDescription(answer, "answer"))
            await until(lambda: caller.peer.iceConnectionState == "completed", "ICE")
            await until(lambda: not board.directory.living, "the place")

    asyncio.run(main())


def test_fifty_callers_that_give_up_anywhere_leave_nothing_behind() -> None:
    """While the answer is made, before connecting, while connecting, connected and talking: tasks, sockets and places
    come back (F-C3; the switchboard looks for them)."""
    chance = random.Random(11)

    async def give_up(board: Switchboard, step: int) -> None:
        caller, sdp = await board.offer()
        answering = asyncio.create_task(board.door.answer(sdp, REQUEST))
        if step == 0:
            for _ in range(chance.randrange(6)):
                await asyncio.sleep(0)
            answering.cancel()
            await asyncio.wait([answering])
        else:
            _, answer = await answering
        if step >= 2:
            await caller.peer.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        if step == 2:
            await asyncio.sleep(chance.random() * 0.05)
        if step == 3:
            await caller.connected()
        await close_peer(caller.peer)

    async def main() -> None:
        async with switchboard(CallSettings(ice_timeout_s=1.0)) as board:
            for batch in range(5):
                await asyncio.gather(*(give_up(board, (batch + number) % 4) for number in range(10)))
            await until(lambda: board.door.calls == 0, "every call to be gone")
            for session in board.directory.sessions:
                assert session.links == {}

    asyncio.run(main())


def test_an_offer_that_fails_late_leaves_nothing_behind() -> None:
    """A session that refuses to be attached to, a machine without addresses: the error comes out, the place back."""

    async def main() -> None:
        async with switchboard() as board:
            _, sdp = await board.offer()
            board.directory.refuse_links = True
            with pytest.raises(SessionClosed):
                await board.door.answer(sdp, REQUEST)
            assert (board.door.calls, board.directory.living) == (0, [])
        async with switchboard(CallSettings(host_addresses=())) as board:
            _, sdp = await board.offer()
            with pytest.raises(ChoraleError, match="no address"):
                await board.door.answer(sdp, REQUEST)
            assert (board.door.calls, board.directory.living) == (0, [])

    asyncio.run(main())


def test_a_bad_offer_opens_no_session() -> None:
    """It is read before anything is reserved."""

    async def main() -> None:
        async with switchboard() as board:
            with pytest.raises(WireError) as caught:
                await board.door.answer("v=0\r\n", REQUEST)
            assert caught.value.param == "sdp"
            assert board.directory.sessions == []

    asyncio.run(main())


def test_the_offered_addresses_can_be_chosen() -> None:
    """Only loopback inside, and the address by which a router knows this machine outside."""
    settings = CallSettings(host_addresses=("127.0.0.1",), public_addresses=("203.0.113.9",))

    async def main() -> None:
        async with switchboard(settings) as board:
            _, sdp = await board.offer()
            _, answer = await board.door.answer(sdp, REQUEST)
            fields = [line.split() for line in answer.splitlines() if line.startswith("a=candidate:")]
            assert {field[4] for field in fields} == {"127.0.0.1", "203.0.113.9"}

    asyncio.run(main())


def test_two_calls_do_not_hear_each_other() -> None:
    """Each session gets its own caller's sound and events."""

    async def main() -> None:
        async with switchboard() as board:
            loud = await board.dial(Script(frames_of(tone(2))))
            quiet = await board.dial(Script())
            talking, silent = board.directory.sessions
            await until(lambda: talking.intake.position > 16_000 < silent.intake.position, "a second of each")
            assert loud_extents(talking)
            assert not loud_extents(silent)
            talking.emit("only.here")
            await until(lambda: "only.here" in loud.types(), "the event")
            assert "only.here" not in quiet.types()

    asyncio.run(main())


def test_closing_the_door_ends_every_call() -> None:
    """After `close` nothing is left, whatever the calls were doing."""

    async def main() -> None:
        async with switchboard() as board:
            callers = [await board.dial() for _ in range(3)]
            await board.offer()
            await board.door.close()
            assert board.door.calls == 0
            await until(
                lambda: {caller.peer.connectionState for caller in callers} == {"closed"}, "the callers"
            )

    asyncio.run(main())


def audible_s(caller: Caller) -> float:
    """How much sound over the noise floor a caller has received."""
    samples = caller.earpiece.sound().samples.astype(int)
    blocks = samples[: len(samples) // 240 * 240].reshape(-1, 240)  # 5 ms
    return float((np.abs(blocks).max(axis=1) > 500).sum() * 0.005)
