"""What aiortc would take from anybody, and what becomes of it here."""

import asyncio
import json
import logging
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aioice import Candidate, stun
from aiortc import rtcsctptransport
from aiortc.rtcsctptransport import DataChunk
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.transports import aiortc_guard
from orchestrator.transports.aiortc_guard import MAX_FRAGMENTS, MAX_MISORDERED, is_bearable, parse_stun
from orchestrator.transports.call import MAX_FURTHER_CHANNELS
from tests.transports.calling import Caller, Switchboard, switchboard, until

SACK, HEARTBEAT, INIT, RECONFIGURE, FORWARD, DATA = 3, 4, 1, 130, 192, 0
SHORT_STUN = bytes.fromhex("1e3900072112a4422d99bf358c2e0718822ce47c80280001410000")

crc32c: Callable[[bytes], int] = vars(rtcsctptransport)["crc32c"]


def chunk(kind: int, body: bytes, flags: int = 0) -> bytes:
    return struct.pack("!BBH", kind, flags, len(body) + 4) + body + bytes(-len(body) % 4)


def packet(*chunks: bytes, tag: int = 1) -> bytes:
    head = struct.pack("!HHL", 5000, 5000, tag)
    body = b"".join(chunks)
    return head + struct.pack("<L", crc32c(head + bytes(4) + body)) + body


def parameter(length: int, value: bytes = b"") -> bytes:
    return struct.pack("!HH", 1, length) + value


def sack(*gaps: tuple[int, int], count: int | None = None) -> bytes:
    blocks = b"".join(struct.pack("!HH", *gap) for gap in gaps)
    return chunk(SACK, struct.pack("!LLHH", 1, 100_000, len(gaps) if count is None else count, 0) + blocks)


@pytest.mark.parametrize(
    "chunks",
    [
        (chunk(HEARTBEAT, parameter(8, b"abcd")),),
        (chunk(RECONFIGURE, parameter(5, b"a") + bytes(3) + parameter(4)),),
        (chunk(INIT, bytes(16)), chunk(INIT, bytes(16) + parameter(4))),
        (sack((2, 30), (40, 50)),),
        (chunk(DATA, bytes(12) + b"\0" * 1_100), sack()),
        (chunk(FORWARD, bytes(8)),),
    ],
)
def test_usual_packets_are_bearable(chunks: tuple[bytes, ...]) -> None:
    """What honest peers send passes, several chunks to a packet."""
    assert is_bearable(packet(*chunks))


@pytest.mark.parametrize("length", [0, 1, 3])
@pytest.mark.parametrize(("kind", "before"), [(1, 16), (2, 16), (4, 0), (5, 0), (6, 0), (9, 0), (130, 0)])
def test_parameters_without_an_end_are_not_bearable(kind: int, before: int, length: int) -> None:
    """A parameter shorter than its own head: aiortc would read it for ever. It may stand behind good ones."""
    for good in (b"", parameter(8, b"abcd")):
        body = bytes(before) + good + parameter(length)
        assert not is_bearable(packet(sack((2, 3)), chunk(kind, body)))


def test_endless_acknowledgements_are_not_bearable() -> None:
    """One SACK names at most as many chunks as can be under way, however it is written."""
    assert not is_bearable(packet(sack((1, 65_535))))
    assert not is_bearable(packet(sack(*[(1, 100)] * 200)))
    assert not is_bearable(packet(sack((1, 65_535), count=60_000)))
    assert is_bearable(packet(sack((9, 3), count=60_000)))


@given(st.binary(max_size=200))
def test_is_bearable_of_noise_comes_to_an_end(noise: bytes) -> None:
    """Any bytes are judged."""
    is_bearable(bytes(12) + noise)


def test_stun_that_is_too_short_is_no_stun() -> None:
    """aioice expects `ValueError` of what is none."""
    with pytest.raises(struct.error):
        aiortc_guard._parse_stun(SHORT_STUN)
    with pytest.raises(ValueError, match="buffer"):
        parse_stun(SHORT_STUN)


def on_a_call(test: Callable[[Switchboard, Caller], Awaitable[None]]) -> None:
    async def main() -> None:
        async with switchboard() as board:
            caller = await board.dial()
            await test(board, caller)

    asyncio.run(main())


async def still_works(board: Switchboard, caller: Caller) -> None:
    """An event goes from the client to its session."""
    before = len(board.session.submitted)
    caller.send({"type": "response.cancel"})
    await until(lambda: len(board.session.submitted) > before, "an event")


def servers_address(caller: Caller) -> Candidate:
    transport: Any = caller.peer.getTransceivers()[0].sender.transport.transport
    found: Candidate = transport._connection._nominated[1].remote_candidate
    return found


async def put(caller: Caller, data: bytes) -> None:
    """Sends an SCTP packet as it is."""
    assert caller.channel is not None
    sctp: Any = caller.channel.transport
    tagged = packet(data, tag=sctp._remote_verification_tag)
    await sctp.transport._send_data(tagged)


def servers_sctp(board: Switchboard, caller: Caller) -> Any:
    call: Any = board.door.find(caller.call_id)
    return call._peer.sctp


def test_datagrams_of_strangers_do_not_end_a_call(caplog: pytest.LogCaptureFixture) -> None:
    """Empty ones, broken STUN, noise that looks like DTLS: the call goes on, and nothing of it is in the log."""

    async def test(board: Switchboard, caller: Caller) -> None:
        there = servers_address(caller)
        family = socket.AF_INET6 if ":" in there.host else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as stranger:
            for data in (
                b"",
                SHORT_STUN,
                b"\x16",
                b"\x15\xfe\xfd" + bytes(8) + b"\0\2\2\x28",
                b"\x80",
                b"\xff" * 9,
            ):
                for _ in range(3):
                    stranger.sendto(data, (there.host, there.port))
            await asyncio.sleep(0)
        await still_works(board, caller)

    with caplog.at_level(logging.WARNING):
        on_a_call(test)
    assert not caplog.records
    assert stun.parse_message is parse_stun


def test_packets_that_would_stop_the_server_are_dropped() -> None:
    """A caller's endless parameter and endless SACK harm nobody, not even the call."""

    async def test(board: Switchboard, caller: Caller) -> None:
        seen = servers_sctp(board, caller)._last_received_tsn
        await put(caller, chunk(HEARTBEAT, parameter(0)))
        await put(
            caller, chunk(SACK, struct.pack("!LLHH", seen, 9, 250, 0) + struct.pack("!HH", 1, 65_535) * 250)
        )
        await still_works(board, caller)

    on_a_call(test)


def test_packets_that_make_no_sense_end_their_call_without_a_trace(caplog: pytest.LogCaptureFixture) -> None:
    """It is the caller's fault: one line says so, without what it sent."""

    async def test(board: Switchboard, caller: Caller) -> None:
        await put(caller, chunk(SACK, struct.pack("!LLHH", 1, 9, 50_000, 0)))
        await until(lambda: board.door.calls == 0, "the end of the call")

    with caplog.at_level(logging.WARNING):
        on_a_call(test)
    (record,) = [one for one in caplog.records if one.name.startswith("orchestrator")]
    assert record.exc_info is None
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("ordered", [True, False])
def test_message_without_an_end_is_not_kept(ordered: bool) -> None:
    """However much a caller sends of one message, a window's worth of it is held, and then nothing more."""

    async def test(board: Switchboard, caller: Caller) -> None:
        theirs = servers_sctp(board, caller)
        assert caller.channel is not None
        ours: Any = caller.channel.transport

        def fragment(number: int, size: int) -> Any:
            one = DataChunk(flags=2 * (number == 0) + 4 * (not ordered))
            one.tsn = (ours._local_tsn + number) % 2**32
            one.stream_id, one.stream_seq, one.protocol = caller.channel.id, 0, 51  # type: ignore[union-attr]
            one.user_data = bytes(size)
            return one

        for number in range(3_000):
            await theirs._receive_data_chunk(fragment(number, 1_000))
        held = theirs._inbound_streams[caller.channel.id].reassembly
        assert sum(len(one.user_data) for one in held) <= 2**20 + aiortc_guard.WINDOW_SLACK_BYTES
        assert len(held) <= MAX_FRAGMENTS

    on_a_call(test)


def test_chunks_behind_a_hole_are_counted() -> None:
    """aiortc sorts them at each chunk: a thousand wait, further ones are sent again once the hole is filled."""

    async def test(board: Switchboard, caller: Caller) -> None:
        theirs = servers_sctp(board, caller)
        assert caller.channel is not None
        first = theirs._last_received_tsn + 1

        def piece(number: int) -> Any:
            one = DataChunk(flags=3 + 4)
            one.tsn = (first + number) % 2**32
            one.stream_id, one.stream_seq, one.protocol = caller.channel.id, 0, 51  # type: ignore[union-attr]
            one.user_data = json.dumps({"type": "response.cancel"}).encode()
            return one

        for number in range(1, 3_000):
            await theirs._receive_data_chunk(piece(number))
        assert len(theirs._sack_misordered) == MAX_MISORDERED
        await theirs._receive_data_chunk(piece(0))
        assert not theirs._sack_misordered

    on_a_call(test)


def test_channel_after_channel_ends_the_call() -> None:
    """Channels that nobody needs are closed; a client that goes on opening them is not listened to."""

    async def test(board: Switchboard, caller: Caller) -> None:
        for number in range(MAX_FURTHER_CHANNELS):
            caller.peer.createDataChannel(str(number))
        await still_works(board, caller)
        for number in range(MAX_FURTHER_CHANNELS):
            caller.peer.createDataChannel(f"more {number}")
        await until(lambda: board.door.calls == 0, "the end of the call")

    on_a_call(test)
