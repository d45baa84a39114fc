"""The WebRTC door over real peers on this machine: connecting, and every way of ending."""

import asyncio
import random
import re
from dataclasses import replace

import pytest
from aiortc import RTCPeerConnection, RTCSessionDescription

from orchestrator.errors import ChoraleError, Overloaded, SessionClosed, WireError
from orchestrator.peers import close_peer
from orchestrator.sessions.links import LinkKind
from orchestrator.transports.call import CallSettings
from orchestrator.transports.rejoining import Back
from tests.transports.calling import (
    REQUEST,
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


def test_a_client_that_comes_back_reads_on_and_is_heard_where_the_stream_is() -> None:
    """Another call to the same session: `session.created`, then what it missed on its data channel; its sound lies
    behind that of the call before, which is gone."""

    async def main() -> None:
        async with switchboard() as board:
            first = await board.dial(Script(frames_of(tone(0.4))))
            await until(lambda: board.session.intake.position >= 0.4 * 16_000, "the sound")
            await close_peer(first.peer)
            await until(lambda: board.door.calls == 0, "the call to be gone")
            for number in range(1, 6):
                board.session.emit(f"number.{number}")
            heard = board.session.intake.position
            back = await board.dial(Script(frames_of(tone(0.4))), back=Back(board.session, 2))
            await until(lambda: len(back.events) == 4, "what it missed")
            assert back.types() == ["session.created", "number.3", "number.4", "number.5"]
            await until(lambda: board.session.intake.position >= heard + 0.4 * 16_000, "its sound")
            starts = [start for start, _ in loud_extents(board.session)]
            assert starts[-1] * 16_000 >= heard
            assert board.directory.calls[back.call_id] is board.session

    asyncio.run(main())


def test_a_call_that_came_back_by_a_withdrawn_key_ends() -> None:
    """The session is another key's of the tenant, and waits for its next client; a call by that key would go on."""

    async def main() -> None:
        async with switchboard(CallSettings(ice_timeout_s=3_600)) as board:
            await board.dial()
            other = replace(REQUEST, key_id="0123456789ab")
            _, sdp = await board.offer()
            call_id, _ = await board.door.answer(sdp, other, Back(board.session, None))
            board.door.withdraw(frozenset({"ba9876543210"}))
            assert board.door.find(call_id) is not None
            board.door.withdraw(frozenset({"0123456789ab"}))
            await until(lambda: board.door.find(call_id) is None, "the call to end")
            assert board.session.ended is None

    asyncio.run(main())


def test_calls_that_come_back_to_one_session_are_answered_one_at_a_time() -> None:
    """However many offers name it, one is being answered, and it takes the place of the one before: no number of them
    opens more sockets."""

    async def main() -> None:
        async with switchboard() as board:
            await board.dial()
            offers = [await board.offer() for _ in range(4)]
            answers = await asyncio.gather(
                *(board.door.answer(sdp, REQUEST, Back(board.session, None)) for _, sdp in offers),
                return_exceptions=True,
            )
            assert [type(answer) for answer in answers] == [tuple, Overloaded, Overloaded, Overloaded]
            back = await board.dial(back=Back(board.session, None))
            assert back.call_id in board.directory.calls

    asyncio.run(main())


def test_a_call_that_fails_to_come_back_leaves_its_session() -> None:
    """The session is not the new call's: an offer that leads nowhere, or cannot be answered, ends nothing."""

    async def main() -> None:
        async with switchboard(CallSettings(ice_timeout_s=0.5)) as board:
            await board.dial()
            _, sdp = await board.offer()
            await board.door.answer(sdp, REQUEST, Back(board.session, None))
            await until(lambda: board.door.calls == 1, "the offer to expire")
            with pytest.raises(WireError):
                await board.door.answer("v=0", REQUEST, Back(board.session, None))
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


def test_calls_that_are_being_connected_are_bounded() -> None:
    """Of one tenant a quarter, of all together the bound; a refused one opens no session and no socket, a connected one
    takes no place, and one that ends gives its own back. Without keys everybody is one tenant."""

    async def main() -> None:
        mine, other = replace(REQUEST, key_id="key1"), replace(REQUEST, tenant="other", key_id="key2")
        async with switchboard(CallSettings(max_connecting=4), capacity=100) as board:
            _, sdp = await board.offer()
            await board.dial(request=mine)
            call_id, _ = await board.door.answer(sdp, mine)
            with pytest.raises(Overloaded) as caught:
                await board.door.answer(sdp, mine)
            assert caught.value.is_tenant
            await board.door.answer(sdp, other)
            for _ in range(2):
                await board.door.answer(sdp, REQUEST)
            with pytest.raises(Overloaded) as caught:
                await board.door.answer(sdp, replace(REQUEST, tenant="third", key_id="key3"))
            assert not caught.value.is_tenant
            assert len(board.directory.sessions) == 5
            await board.door.hang_up(call_id, REQUEST.tenant)
            await board.door.answer(sdp, replace(REQUEST, tenant="third", key_id="key3"))

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


def test_two_hundred_callers_that_give_up_anywhere_leave_nothing_behind() -> None:
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
            call_id, answer = await answering
        if step >= 2:
            await caller.peer.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        if step == 2:
            await asyncio.sleep(chance.random() * 0.05)
        if (
            step == 3
        ):  # where this machine takes more than the second that a call has to connect, it has ended
            await until(
                lambda: "session.created" in caller.types() or board.door.find(call_id) is None,
                "the call or its end",
            )
        await close_peer(caller.peer)

    async def main() -> None:
        # Those that were connected live on: the stand-in knows no grace time, so it needs room for all of them.
        async with switchboard(CallSettings(ice_timeout_s=1.0), capacity=200) as board:
            for batch in range(20):
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


def test_an_offer_says_as_little_as_it_may() -> None:
    """No direction, half a name of a stream: legal, and answered."""

    async def main() -> None:
        async with switchboard() as board:
            _, sdp = await board.offer()
            for less in (
                sdp.replace("a=sendrecv\r\n", ""),
                re.sub("a=msid:([^ ]+) .*", r"a=msid:\1 ", sdp),
            ):
                assert less != sdp
                call_id, answer = await board.door.answer(less, REQUEST)
                assert "a=sendrecv" in answer
                await board.door.hang_up(call_id, REQUEST.tenant)

    asyncio.run(main())


def test_an_offer_that_aiortc_trips_over_is_the_clients_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it raises on a description that does not fit together is told as a bad offer, and nothing is left."""

    async def main() -> None:
        async with switchboard() as board:
            _, sdp = await board.offer()
            for method in ("setRemoteDescription", "createAnswer", "setLocalDescription"):
                with monkeypatch.context() as patch:

                    async def trip(*_: object) -> None:
                        raise AttributeError("'NoneType' object has no attribute 'stop'")

                    patch.setattr(RTCPeerConnection, method, trip)
                    with pytest.raises(WireError) as caught:
                        await board.door.answer(sdp, REQUEST)
                assert caught.value.param == "sdp"
                assert "NoneType" not in str(caught.value)
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


def test_a_session_that_fails_ends_its_call_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """A fault of ours in taking an event, and an inbox at its backstop, wherever it shows."""

    async def main() -> None:
        async with switchboard() as board:
            callers = [await board.dial() for _ in range(4)]
            broken, full, drained, _ = board.directory.sessions

            def overloaded(*_: object) -> None:
                raise Overloaded("the session's inbox is full", 1.0)

            broken.room = None  # type: ignore[assignment]
            full.refuse = full.detach = overloaded  # type: ignore[assignment]
            drained.playout_drained = overloaded  # type: ignore[assignment]
            callers[0].send({"type": "response.create"})
            callers[1].send("{")
            playout = next(iter(drained.links.values())).playout
            assert playout is not None
            playout.finish("resp_1")
            await until(lambda: board.door.calls == 1, "three calls to end")
            assert callers[3].peer.connectionState == "connected"

    asyncio.run(main())
    assert "could not be taken" in caplog.text


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
