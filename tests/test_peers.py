"""What is taken from inside aiortc and aioice by calls and clients alike, pinned."""

import asyncio
from typing import Any

import aioice
import pytest

from orchestrator.clients.peer import new_peer
from orchestrator.peers import choose_addresses, close_peer
from tests.transports.calling import open_files, until


def test_addresses_can_be_chosen_and_loopback_is_the_last_resort(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given ones are used; without a network there is loopback, which aioice would leave out."""

    async def gathered(addresses: tuple[str, ...] | None) -> set[str]:
        peer = new_peer()
        peer.createDataChannel("x")
        choose_addresses(peer, addresses)
        await peer.setLocalDescription(await peer.createOffer())
        lines = peer.localDescription.sdp.splitlines()
        await close_peer(peer)
        return {line.split()[4] for line in lines if line.startswith("a=candidate:")}

    assert asyncio.run(gathered(("127.0.0.1",))) == {"127.0.0.1"}
    monkeypatch.setattr(aioice.ice, "get_host_addresses", lambda use_ipv4, use_ipv6: [])
    assert asyncio.run(gathered(None)) == {"127.0.0.1"}
    assert asyncio.run(gathered(())) == set()


def test_a_peer_that_is_closed_while_it_connects_leaves_nothing() -> None:
    """At any moment of the connection, on both sides: no task, no socket, no exception that nobody awaited."""
    unawaited: list[dict[str, Any]] = []

    async def attempt(wait_ms: int) -> None:
        one, other = new_peer(), new_peer()
        for peer in (one, other):
            peer.addTransceiver("audio")
            choose_addresses(peer, ("127.0.0.1",))
        one.createDataChannel("x")
        await one.setLocalDescription(await one.createOffer())
        await other.setRemoteDescription(one.localDescription)
        await other.setLocalDescription(await other.createAnswer())
        await one.setRemoteDescription(other.localDescription)
        await asyncio.sleep(wait_ms / 1_000)
        await close_peer(one)
        await close_peer(other)

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unawaited.append(context))
        before = open_files()
        await asyncio.gather(*(attempt(wait_ms) for wait_ms in range(0, 80, 2)))
        await until(lambda: asyncio.all_tasks() == {asyncio.current_task()}, "every task to end")
        assert open_files() <= before

    asyncio.run(main())
    assert unawaited == []


def test_what_a_closed_peer_could_go_on_with_does_nothing() -> None:
    """Whenever a connection attempt that was under way gets so far: sender, receiver, data channel, consent."""

    async def main() -> None:
        peer: Any = new_peer()
        transceiver = peer.addTransceiver("audio")
        peer.createDataChannel("x")
        connections = [part._connection for part in peer._RTCPeerConnection__iceTransports]
        await close_peer(peer)
        async with asyncio.timeout(10):
            await transceiver.sender.send(None)
            await transceiver.receiver.receive(None)
            await peer.sctp.start(None, 5_000)
            for connection in connections:
                await connection.query_consent()
        await until(lambda: asyncio.all_tasks() == {asyncio.current_task()}, "every task to end")

    asyncio.run(main())
