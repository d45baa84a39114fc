"""Callers of the real door, with a relay between that does what a test says."""

from aiortc import RTCSessionDescription

from benchmarks.network_relay import Relay, reroute
from tests.transports.calling import REQUEST, Caller, Script, Switchboard


async def dial(
    board: Switchboard, microphone: Script | None = None, seed: int = 1, direction: str = "sendrecv"
) -> tuple[Caller, Relay]:
    """Has an offer answered; returns the caller, not connected yet, and its line. Close the line in the end."""
    caller, offer = await board.offer(microphone, direction)
    caller.call_id, answer = await board.door.answer(offer, REQUEST)
    caller.answer, line = await reroute(answer, seed)
    return caller, line


async def connect(caller: Caller) -> None:
    """Takes the answer and waits until the line stands."""
    await caller.peer.setRemoteDescription(RTCSessionDescription(caller.answer, "answer"))
    await caller.connected()


async def dial_through(
    board: Switchboard, microphone: Script | None = None, seed: int = 1, direction: str = "sendrecv"
) -> tuple[Caller, Relay]:
    """Calls over a clear line; returns the caller, connected, and its line. Close the line in the end."""
    caller, line = await dial(board, microphone, seed, direction)
    await connect(caller)
    return caller, line
