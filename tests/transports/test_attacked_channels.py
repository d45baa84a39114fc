"""What a caller may do to its data channel, on a real line: no call but its own is any the worse for it."""

import asyncio
import gc
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiortc import RTCDataChannel, RTCSessionDescription

from orchestrator.transports import aiortc_guard, call_link
from orchestrator.transports.call import MAX_UNREAD
from tests.transports.attacking import complaints, servers_peer, still_works, undisturbed
from tests.transports.calling import REQUEST, Caller, Switchboard, switchboard, until


def attacked(
    attack: Callable[[Switchboard, Caller], Awaitable[None]],
    caplog: pytest.LogCaptureFixture,
    allowed: int = 0,
) -> None:
    """Calls twice, attacks by one, and sees to the other. So many lines of complaint are allowed, none with a trace."""

    async def main() -> None:
        unawaited: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unawaited.append(context))
        async with switchboard() as board:
            caller = await board.dial()
            async with undisturbed(board):
                await attack(board, caller)
        gc.collect()
        await asyncio.sleep(0)
        assert unawaited == []

    with caplog.at_level(logging.INFO):
        asyncio.run(main())
    assert len(complaints(caplog.records)) <= allowed
    assert [record for record in caplog.records if record.exc_info] == []


async def call_is_over(board: Switchboard) -> None:
    await until(lambda: board.door.calls == 1, "the end of the attacker's call")


MESSAGES: dict[str, str | bytes] = {
    "nothing": "",
    "no JSON": "{",
    "bytes": b"\x00\xff\xfe",
    "bytes that are JSON": b'{"type":"response.create',
    "half a letter": b'{"type":"\xc3"}',
    "a number": "1e999",
    "deep": "[" * 100_000,
    "long": json.dumps({"type": "conversation.item.create", "item": {"text": "x" * 300_000}}),
    "long and no JSON": "x" * 300_000,
    "longer than the server takes": bytes(300_000),
    "sound": json.dumps({"type": "input_audio_buffer.append", "audio": "AAAA"}),
}


@pytest.mark.parametrize("what", MESSAGES)
def test_a_message_that_is_no_event_is_refused(what: str, caplog: pytest.LogCaptureFixture) -> None:
    """In an event of its own, over the channel; the call goes on."""

    async def attack(board: Switchboard, caller: Caller) -> None:
        ours: Any = caller.peer.sctp
        ours._remote_max_message_size = 0  # longer than the server says it takes
        caller.send(MESSAGES[what])
        await until(lambda: "error" in caller.types(), "an error")
        await still_works(board, caller)

    attacked(attack, caplog)


@pytest.mark.parametrize("message", ["{", '{"type":"response.cancel"}', b"\xff"])
def test_more_messages_at_once_than_may_wait(message: str | bytes, caplog: pytest.LogCaptureFixture) -> None:
    """They are taken, or the call ends: whatever it is, the other call goes on, and what waits is bounded."""

    async def attack(board: Switchboard, caller: Caller) -> None:
        theirs: Any = board.door.find(caller.call_id)
        most = 0
        for number in range(600):
            if caller.channel is None or caller.channel.readyState != "open":
                break
            caller.send(message)
            if number % 50 == 0:
                await asyncio.sleep(0)
                most = max(most, theirs._inbox.qsize())
        assert most <= MAX_UNREAD
        session = board.directory.sessions[0]
        await until(
            lambda: board.door.calls == 1 or len(session.submitted) + len(session.refused) >= 600,
            "the end of the flood",
        )

    attacked(attack, caplog)


def test_a_channel_twice_late_or_by_another_name(caplog: pytest.LogCaptureFixture) -> None:
    """The first of the right name is the one for events; others are closed again, and the call goes on."""

    async def attack(board: Switchboard, caller: Caller) -> None:
        others = [
            caller.peer.createDataChannel("oai-events"),
            caller.peer.createDataChannel(""),
            caller.peer.createDataChannel("x" * 1_000),
            caller.peer.createDataChannel("unordered", ordered=False, maxRetransmits=0),
        ]
        await until(lambda: all(one.readyState == "closed" for one in others), "the others to be closed")
        await still_works(board, caller)

    attacked(attack, caplog)


def test_a_channel_that_opens_long_after_the_call_is_used(caplog: pytest.LogCaptureFixture) -> None:
    """Until then it has another name, and what is logged waits."""

    async def main() -> None:
        async with switchboard() as board:
            caller, offer = await board.offer(label="not yet")
            caller.call_id, caller.answer = await board.door.answer(offer, REQUEST)
            await caller.peer.setRemoteDescription(RTCSessionDescription(caller.answer, "answer"))
            early = caller.channel
            assert early is not None
            await until(lambda: early.readyState == "closed", "the first channel to be closed")
            board.session.emit("logged.before")
            late: RTCDataChannel = caller.peer.createDataChannel("oai-events")
            late.on("message", lambda message: caller.events.append(json.loads(message)))
            await until(lambda: "logged.before" in caller.types(), "what was logged before")
            assert caller.types() == ["session.created", "logged.before"]

    asyncio.run(main())


def test_streams_without_end_end_the_call(caplog: pytest.LogCaptureFixture) -> None:
    """A message on each of thousands of streams that nobody opened: state of some is kept."""

    async def attack(board: Switchboard, caller: Caller) -> None:
        ours: Any = caller.peer.sctp
        theirs = servers_peer(board, caller).sctp
        for stream in range(100, 100 + 2 * aiortc_guard.MAX_STREAMS):
            await ours._send(stream, 51, b"hello")
        await call_is_over(board)
        assert len(theirs._inbound_streams) <= aiortc_guard.MAX_STREAMS

    attacked(attack, caplog, allowed=1)


def test_a_client_that_never_reads_is_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It acknowledges nothing: what waits for it stays under the channel's mark, and then its call ends. What timers
    still try to send for it is no fault."""
    monkeypatch.setattr(call_link, "STUCK_AFTER_S", 0.5)

    async def attack(board: Switchboard, caller: Caller) -> None:
        async def nothing(data: bytes) -> None:
            """It does not read."""

        ours: Any = caller.peer.sctp
        ours._handle_data = nothing
        channel = servers_peer(board, caller).sctp._data_channels[caller.channel.id]  # type: ignore[union-attr]
        session = board.directory.sessions[0]
        most = 0
        for _ in range(400):
            session.emit("x" * 4_000)
            await asyncio.sleep(0)
            most = max(most, channel.bufferedAmount)
        await call_is_over(board)
        assert most < call_link.HIGH_BYTES + 100_000

    attacked(attack, caplog)


def test_a_line_that_is_dead_while_much_is_to_be_sent_leaves_no_trace(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The encrypted line ends under a full channel: what SCTP's timers cannot send any more, nobody hears of."""
    monkeypatch.setattr("aiortc.rtcsctptransport.SCTP_RTO_INITIAL", 0.01)

    async def attack(board: Switchboard, caller: Caller) -> None:
        session = board.directory.sessions[0]
        sctp = servers_peer(board, caller).sctp
        for _ in range(100):
            session.emit("x" * 4_000)
        await asyncio.sleep(0)
        sctp.transport._set_state(type(sctp.transport._state).CLOSED)
        sctp._t3_expired()
        await call_is_over(board)

    attacked(attack, caplog)
