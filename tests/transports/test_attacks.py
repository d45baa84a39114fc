"""What arrives at a call's port that no client sends: by strangers, who have no key, and by callers, who have one.

Whatever it is, the loop goes on, nothing is left behind, the log has no trace of a program in it, and the call of
somebody else beside it loses nothing. Data channels are attacked in `test_attacked_channels`.
"""

import asyncio
import contextlib
import itertools
import logging
import random
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aioice import stun
from aiortc import rtp
from aiortc.rtp import RtcpPacket, RtcpPsfbPacket, RtcpRtpfbPacket

from orchestrator.transports import aiortc_guard
from tests.transports.attacking import (
    a_stranger,
    complaints,
    ice_of,
    noise,
    send_rtp,
    servers_dtls,
    servers_peer,
    sound_packet,
    still_works,
    undisturbed,
)
from tests.transports.calling import Caller, Switchboard, switchboard, until

SIZES = (1, 2, 3, 11, 12, 13, 20, 60, 400, 1_400, 1_500, 1_501, 2_000, 9_000, 60_000)
KINDS: dict[str, tuple[int, ...]] = {
    "STUN": (0, 1),
    "STUN answers": (1, 1),
    "DTLS": (22, 0xFE, 0xFD),
    "DTLS data": (23, 0xFE, 0xFD),
    "DTLS alerts": (21, 0xFE, 0xFD),
    "TURN": (0x40, 0x01),
    "RTP": (0x80, 96),
    "RTP with everything": (0xBF, 96),
    "RTCP": (0x81, 200),
    "feedback": (0x8F, 206),
    "nothing known": (255,),
}


def attacked(
    attack: Callable[[Switchboard, Caller], Awaitable[None]], caplog: pytest.LogCaptureFixture
) -> None:
    """Calls twice, attacks by one, and sees to the other. Nothing is to be complained about."""

    async def main() -> None:
        unawaited: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unawaited.append(context))
        async with switchboard() as board:
            caller = await board.dial()
            async with undisturbed(board):
                await attack(board, caller)
        assert unawaited == []

    with caplog.at_level(logging.INFO):
        asyncio.run(main())
    assert complaints(caplog.records) == []


def test_nothing_that_a_stranger_sends_is_noticed(caplog: pytest.LogCaptureFixture) -> None:
    """Noise of every size behind the first bytes of every protocol, also longer than any packet of a call."""

    async def attack(board: Switchboard, caller: Caller) -> None:
        with a_stranger(caller) as stranger:
            for first in KINDS.values():
                for datagram in noise(1, SIZES, first, 60):
                    stranger.send(datagram)
                    await asyncio.sleep(0)
        await still_works(board, caller)

    attacked(attack, caplog)


def test_reports_that_make_no_sense_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    """Encrypted with the call's key: noise of every kind of report, cut off and overlong; and feedback that names more
    sources than it holds."""

    async def attack(board: Switchboard, caller: Caller) -> None:
        sender = servers_peer(board, caller).getSenders()[0]
        remb = b"REMB" + bytes([200, 0, 0, 1]) + struct.pack("!L", sender._ssrc)
        await send_rtp(caller, bytes(RtcpPsfbPacket(rtp.RTCP_PSFB_APP, 1, sender._ssrc, remb)))
        await send_rtp(caller, bytes(RtcpPsfbPacket(rtp.RTCP_PSFB_APP, 1, 0, remb)))
        for kind in range(192, 224):
            for number, body in enumerate(noise(kind, (0, 4, 8, 24, 28, 400), count=8)):
                head = struct.pack("!BBHL", 0x80 + 7 * number % 64, kind, len(body) // 4 + 1, 1)
                await send_rtp(caller, head + body[: len(body) // 4 * 4])
                await send_rtp(caller, head + body)
                await asyncio.sleep(0)
        await still_works(board, caller)

    attacked(attack, caplog)


def test_packets_are_not_sent_again_without_end(caplog: pytest.LogCaptureFixture) -> None:
    """A packet of a kilobyte can name thousands of packets to be sent again: those of some seconds are."""

    async def attack(board: Switchboard, caller: Caller) -> None:
        dtls = servers_dtls(board, caller)
        sender: Any = servers_peer(board, caller).getSenders()[0]
        await until(lambda: caller.earpiece.count > 20, "sound from the server")
        history = sender._RTCRtpSender__rtp_history
        again = RtcpRtpfbPacket(
            rtp.RTCP_RTPFB_NACK, 1, sender._ssrc, [packet.sequence_number for packet in history.values()]
        )
        before = dtls._get_stats()[dtls._stats_id].packetsSent
        for _ in range(300):
            for packet in RtcpPacket.parse(bytes(again)):
                await sender._handle_rtcp_packet(packet)
        sent = dtls._get_stats()[dtls._stats_id].packetsSent - before
        assert 0 < sent <= 2 * aiortc_guard.MAX_SENT_AGAIN_PER_S + 100
        await still_works(board, caller)

    attacked(attack, caplog)


def test_sources_without_end_are_not_remembered(caplog: pytest.LogCaptureFixture) -> None:
    """Each packet under another source: the keys' state has room for a few, few are begun in a second, and the caller
    is heard afterwards."""

    async def attack(board: Switchboard, caller: Caller) -> None:
        began_s = asyncio.get_running_loop().time()
        for number in range(400):
            await send_rtp(caller, sound_packet(number, 960 * number, 10_000 + number, b"\xf8\xff\xfe"))
            await asyncio.sleep(0)
        await still_works(board, caller)
        assert servers_dtls(board, caller)._rx_srtp.sources <= aiortc_guard.MAX_SOURCES
        call = board.door.find(caller.call_id)
        assert call is not None
        seconds = asyncio.get_running_loop().time() - began_s
        assert call.statistics().order.restarts <= 2 * aiortc_guard.MAX_NEW_SOURCES_PER_S * (seconds + 2)

    attacked(attack, caplog)


def test_a_client_that_insists_on_the_other_role_is_not_asked_for_ever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each check is answered by "role conflict": aioice would ask again at once, deeper and deeper."""

    async def attack(board: Switchboard, caller: Caller) -> None:
        theirs: Any = servers_dtls(board, caller).transport._connection
        asked = 0

        async def request(*_: object, **__: object) -> None:
            nonlocal asked
            asked += 1
            answer = stun.Message(stun.Method.BINDING, stun.Class.ERROR, attributes={"ERROR-CODE": (487, "")})
            raise stun.TransactionFailed(answer)

        pair = theirs._nominated[1]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pair.protocol, "request", request)
            await theirs.check_start(pair)
        assert asked < 20
        await still_works(board, caller)

    attacked(attack, caplog)


def test_a_check_without_a_priority_is_none(caplog: pytest.LogCaptureFixture) -> None:
    """Signed with the right key, from another port."""

    async def attack(board: Switchboard, caller: Caller) -> None:
        ours = ice_of(caller)
        request = ours.build_request(ours._nominated[1], nominate=False)
        del request.attributes["PRIORITY"]
        request.add_message_integrity(ours.remote_password.encode())
        with a_stranger(caller) as stranger:
            stranger.send(bytes(request))
            await still_works(board, caller)

    attacked(attack, caplog)


async def speak(
    caller: Caller, payloads: list[bytes], kind: int = 96, ticks: int = 960, source: int = 7
) -> None:
    """Sends packets of another source, in order, as fast as they can be encrypted."""
    for number, payload in enumerate(payloads):
        await send_rtp(caller, sound_packet(number, number * ticks, source, payload, kind))
        await asyncio.sleep(0)


def test_noise_for_sound_is_silence_or_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """As Opus, as G.711, and as what was not agreed on; under one source and under two at once."""

    async def attack(board: Switchboard, caller: Caller) -> None:
        for kind, length in itertools.product((96, 0, 8, 111, 127), (1, 2, 3, 10, 100, 1_300)):
            await speak(caller, noise(kind, (length,), count=10), kind)
            for number in range(10):
                (payload,) = noise(number, (length,))
                await send_rtp(caller, sound_packet(number, 0, 7 + number % 2, payload, kind))
        await still_works(board, caller)

    attacked(attack, caplog)


def test_stamps_and_numbers_that_leap_cost_nothing_but_their_sound(caplog: pytest.LogCaptureFixture) -> None:
    """Every packet of another time and another place in the order; afterwards the caller is heard again."""

    async def attack(board: Switchboard, caller: Caller) -> None:
        rng = random.Random(3)
        for _ in range(400):
            packet = sound_packet(rng.randrange(1 << 16), rng.randrange(1 << 32), 7, b"\xf8\xff\xfe")
            await send_rtp(caller, packet)
            await asyncio.sleep(0)
        await still_works(board, caller)

    attacked(attack, caplog)


def test_a_flood_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Ten thousand datagrams as fast as this machine sends them, half by the caller and half by a stranger: each
    turn of the loop takes one of each socket, so another call waits for one of them at most."""

    async def attack(board: Switchboard, caller: Caller) -> None:
        with a_stranger(caller) as stranger:
            stranger.setblocking(False)
            for number in range(5_000):
                await send_rtp(caller, sound_packet(number, 960 * number, 7, b"\xf8\xff\xfe"))
                with contextlib.suppress(BlockingIOError):
                    stranger.send(b"\x80\x60" + number.to_bytes(2, "big") + bytes(60))
                if number % 50 == 0:
                    await asyncio.sleep(0)
        await still_works(board, caller)

    attacked(attack, caplog)


HEADS = {
    "no head": b"\x80",
    "half a head": b"\x80\x60\x00\x01\x00\x00",
    "another version": b"\x20\x60" + bytes(10) + b"sound",
    "sources that are not there": b"\x8f\x60" + bytes(10) + b"sound",
    "an extension that is not there": b"\x90\x60" + bytes(10),
    "an extension without an end": b"\x90\x60" + bytes(10) + b"\xbe\xde\xff\xff" + bytes(40),
    "nothing but an extension": b"\x90\x60" + bytes(10) + b"\xbe\xde\x01\x00" + b"\x1f" * 1_024,
    "extensions cut off": b"\x90\x60" + bytes(10) + b"\xbe\xde\x00\x01" + b"\xff\xff\xff\xff" + b"sound",
    "more padding than packet": b"\xa0\x60" + bytes(10) + b"sound\xff",
    "nothing but padding": b"\xa0\x60" + bytes(10) + b"\0\0\0\4",
    "no padding": b"\xa0\x60" + bytes(10) + b"\0",
}


def test_broken_packets_with_the_right_key_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    """As the caller's next packets, under its own source and another."""

    async def attack(board: Switchboard, caller: Caller) -> None:
        source = caller.peer.getSenders()[0]._ssrc
        for head, place, kind in itertools.product(HEADS.values(), (source, 7), (96, 0, 8, 13, 127)):
            broken = head[:8] + struct.pack("!L", place) + head[12:] if len(head) >= 12 else head
            await send_rtp(caller, bytes([broken[0], kind]) + broken[2:] if len(broken) > 1 else broken)
            await asyncio.sleep(0)
        await still_works(board, caller)

    attacked(attack, caplog)
