"""Calls by way of a TURN server: where a client, or the server, can reach the other by relay only."""

import asyncio
from pathlib import Path

import pytest
from aiortc import RTCConfiguration, RTCIceServer, RTCPeerConnection, RTCSessionDescription
from aiortc.rtcconfiguration import RTCIceTransportPolicy

from orchestrator.transports.call import CallSettings, IceServer
from tests.networks.turn import PASSWORD, USER, turn_server
from tests.transports import calling
from tests.transports.calling import REQUEST, Script, frames_of, loud_extents, switchboard, tone, until

pytestmark = pytest.mark.needs("turnserver")


def candidate_types(sdp: str) -> set[str]:
    """Returns the kinds of addresses that a description names."""
    return {line.split()[7] for line in sdp.splitlines() if line.startswith("a=candidate:")}


def pairs_of(peer: RTCPeerConnection) -> set[tuple[str, str]]:
    """Returns the kinds of addresses, ours and theirs, between which a peer's packets go."""
    transports = peer._RTCPeerConnection__iceTransports  # type: ignore[attr-defined]
    return {
        (pair.local_candidate.type, pair.remote_candidate.type)
        for transport in transports
        for pair in transport._connection._nominated.values()
    }


def test_a_client_that_only_has_a_turn_server_is_heard_and_hears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its policy is `relay`: it names no address of its own. Sound and events go both ways, all of it by the relay."""

    async def main() -> None:
        async with (
            turn_server(tmp_path) as url,
            switchboard(CallSettings(host_addresses=("127.0.0.1",))) as board,
        ):
            turn = RTCIceServer(url, USER, PASSWORD)
            configuration = RTCConfiguration([turn], iceTransportPolicy=RTCIceTransportPolicy.RELAY)
            monkeypatch.setattr(calling, "new_peer", lambda: RTCPeerConnection(configuration))
            caller, _ = await board.offer(Script(frames_of(tone(0.5))))
            offer = caller.peer.localDescription.sdp
            assert candidate_types(offer) == {"relay"}
            caller.call_id, caller.answer = await board.door.answer(offer, REQUEST)
            await caller.peer.setRemoteDescription(RTCSessionDescription(caller.answer, "answer"))
            await caller.connected()
            assert pairs_of(caller.peer) == {("relay", "host")}
            await until(lambda: loud_extents(board.session), "the caller's sound")
            playout = board.session.link.playout
            assert playout is not None
            playout.play("resp_1", tone(0.2).tobytes())
            playout.finish("resp_1")
            await until(lambda: board.session.drained, "the reply's end")
            await until(lambda: caller.earpiece.sound().first_above(4_000), "the reply's sound")
            caller.send({"type": "conversation.item.delete", "item_id": "item_1"})
            await until(lambda: board.session.submitted, "the client's event")

    asyncio.run(main())


def test_a_server_that_is_reached_by_its_turn_server_only_answers_calls(tmp_path: Path) -> None:
    """`calls.ice_servers` names one, and no address of the machine itself is of use: the call connects by the server's
    relay. The offer must name the client's addresses, or the relay lets nobody in."""

    async def main() -> None:
        async with turn_server(tmp_path) as url:
            servers = (IceServer((url,), USER, PASSWORD),)
            async with switchboard(CallSettings(ice_servers=servers, host_addresses=())) as board:
                caller, _ = await board.offer(Script(frames_of(tone(0.5))))
                offer = caller.peer.localDescription.sdp
                assert candidate_types(offer) == {"host"}
                caller.call_id, caller.answer = await board.door.answer(offer, REQUEST)
                assert candidate_types(caller.answer) == {"relay"}
                await caller.peer.setRemoteDescription(RTCSessionDescription(caller.answer, "answer"))
                await caller.connected()
                assert pairs_of(caller.peer) == {("host", "relay")}
                await until(lambda: loud_extents(board.session), "the caller's sound")

    asyncio.run(main())
