"""Callers with bad intentions: they have a call and its keys, and send what no client sends."""

import contextlib
import logging
import random
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pylibsrtp
from aioice import Candidate
from aiortc.rtp import RtpPacket

from tests.transports.calling import Caller, Switchboard, until


def dtls_of(caller: Caller) -> Any:
    """The caller's end of the encrypted line."""
    return caller.peer.getTransceivers()[0].sender.transport


def ice_of(caller: Caller) -> Any:
    """The caller's `aioice.Connection`."""
    return dtls_of(caller).transport._connection


def servers_address(caller: Caller) -> Candidate:
    """Where the caller's packets go."""
    found: Candidate = ice_of(caller)._nominated[1].remote_candidate
    return found


def servers_peer(board: Switchboard, caller: Caller) -> Any:
    """The server's end of a call."""
    call: Any = board.door.find(caller.call_id)
    return call._peer


def servers_dtls(board: Switchboard, caller: Caller) -> Any:
    """The server's end of the encrypted line."""
    return servers_peer(board, caller).getTransceivers()[0].sender.transport


@contextlib.contextmanager
def a_stranger(caller: Caller) -> Iterator[socket.socket]:
    """A socket of somebody who found the call's port, and has none of its keys."""
    there = servers_address(caller)
    with socket.socket(
        socket.AF_INET6 if ":" in there.host else socket.AF_INET, socket.SOCK_DGRAM
    ) as stranger:
        stranger.connect((there.host, there.port))
        yield stranger


async def send_rtp(caller: Caller, plain: bytes) -> None:
    """Encrypts what looks like RTP or RTCP, however broken it is, and sends it; as it is, where that cannot be
    encrypted."""
    try:
        await dtls_of(caller)._send_rtp(plain)
    except pylibsrtp.Error:
        await dtls_of(caller).transport._send(plain)


def sound_packet(sequence: int, timestamp: int, source: int, payload: bytes, kind: int = 96) -> bytes:
    """An RTP packet that is in order."""
    return RtpPacket(kind, 0, sequence % 2**16, timestamp % 2**32, source, payload).serialize()


def noise(seed: int, sizes: tuple[int, ...], first: tuple[int, ...] = (), count: int = 1) -> list[bytes]:
    """Random datagrams; `first`: what their first bytes are."""
    rng = random.Random(seed)
    return [bytes(first) + rng.randbytes(max(0, rng.choice(sizes) - len(first))) for _ in range(count)]


async def still_works(board: Switchboard, caller: Caller) -> None:
    """An event goes from the client to its session, one comes back, and the sound goes on."""
    session = board.directory.sessions[board.callers.index(caller)]
    before, heard = len(session.submitted), session.intake.position
    caller.send({"type": "response.cancel"})
    await until(lambda: len(session.submitted) > before, "an event")
    session.emit("still.here")
    await until(lambda: "still.here" in caller.types(), "an event from the server")
    caller.events.clear()
    await until(lambda: session.intake.position >= heard + 8_000, "half a second of sound")


@contextlib.asynccontextmanager
async def undisturbed(board: Switchboard) -> AsyncIterator[Caller]:
    """Makes a call beside the one that is attacked. Afterwards it goes on, with all of its sound."""
    bystander = await board.dial()
    yield bystander
    await still_works(board, bystander)
    call = board.door.find(bystander.call_id)
    assert call is not None
    assert call.statistics().order.lost == 0
    assert call.statistics().misplaced == 0


def complaints(records: list[logging.LogRecord]) -> list[str]:
    """Log lines from warnings on, and whatever has a trace."""
    return [r.getMessage() for r in records if r.levelno >= logging.WARNING or r.exc_info is not None]
