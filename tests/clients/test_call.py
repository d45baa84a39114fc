"""A client's call against a real server: what it sends, hears and says when it fails."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.clients.address import CallFailed, ServerAway, ServerRefused
from orchestrator.clients.call import RealtimeCall
from orchestrator.clients.peer import new_peer
from orchestrator.clients.recording import write_wav
from orchestrator.clients.text_socket import RealtimeSocket
from orchestrator.peers import close_peer
from orchestrator.transports.auth import KeyRing
from orchestrator.wire.client import UpdateSession
from tests.clients.answering import Answering, answering
from tests.transports.calling import loud_extents, open_files, tone, until


def play(story: Callable[[Answering], Coroutine[Any, Any, None]], mood: str = "willing") -> None:
    """Runs a story against a server; afterwards the client has no task and no socket left."""

    async def main(server: Answering) -> None:
        before = open_files()
        await story(server)
        await until(lambda: asyncio.all_tasks() == {asyncio.current_task()}, "every task to end")
        await until(lambda: open_files() <= before, "every socket to close")

    with answering(mood) as server:
        asyncio.run(main(server))


def test_a_recording_is_heard_at_its_time_and_the_reply_at_its_own(tmp_path: Path) -> None:
    """`send_wav` says it in real time with silence around; `received_pcm` has the reply with its times of arrival."""
    write_wav(tmp_path / "a.wav", tone(0.5, rate_hz=16_000), 16_000)

    async def story(server: Answering) -> None:
        async with RealtimeCall.connect(server.url) as call:
            assert call.call_id.startswith("rtc_")
            said_s = await call.send_wav(tmp_path / "a.wav", lead_s=0.3, tail_s=0.7)
            async for event in call.events():
                if event["type"] == "output_audio_buffer.stopped":
                    break
            ((start, stop),) = loud_extents(server.session)
            assert stop - start == pytest.approx(0.5, abs=0.03)
            sound = call.received_pcm()
            assert np.count_nonzero(np.abs(sound.samples.astype(int)) > 500) > 0.4 * 48_000
            assert len(sound.positions) == len(sound.arrived_s) == call.received_packets
            first, last = sound.first_above(500), sound.last_above(500)
            assert first is not None
            assert last is not None
            assert said_s < first < last
            assert sound.first_above(500, after_s=last) is None

    play(story)


def test_a_session_is_given_with_the_call() -> None:
    """Its part of the form reaches the server; events can be sent as soon as the call is there."""

    async def story(server: Answering) -> None:
        session = {"type": "realtime", "instructions": "Be brief."}
        async with RealtimeCall.connect(server.url, session=session) as call:
            assert server.session.view.instructions == "Be brief."
            update = {"type": "session.update", "session": {"type": "realtime", "instructions": "Be long."}}
            await call.send(update)
            events = call.events()
            assert [(await anext(events))["type"] for _ in range(2)] == ["session.created", "session.updated"]
            assert isinstance(server.session.submitted[0], UpdateSession)

    play(story)


def test_a_muted_microphone_sends_nothing_and_time_passes() -> None:
    """The server sees a gap of that length."""

    async def story(server: Answering) -> None:
        async with RealtimeCall.connect(server.url) as call:
            await until(lambda: server.session.intake.position > 3_200, "some silence")
            call.microphone.muted, began_s = True, time.monotonic()
            await asyncio.sleep(0.3)
            call.microphone.muted, muted_s = False, time.monotonic() - began_s
            await until(lambda: server.session.ring.buffer.gaps, "the gap")
            ((start, stop),) = server.session.ring.buffer.gaps
            assert (stop - start) / 16_000 == pytest.approx(muted_s, abs=0.1)

    play(story)


def test_a_call_that_the_server_ends_says_so() -> None:
    """`events` ends, `failure` has the reason, and sending raises it."""

    async def story(server: Answering) -> None:
        async with RealtimeCall.connect(server.url) as call:
            link = server.session.link
            server.loop.call_soon_threadsafe(link.close, 1000, "over")
            kinds = [event["type"] async for event in call.events()]
            assert kinds == ["session.created"]
            assert call.failure is not None
            with pytest.raises(CallFailed, match=call.failure):
                await call.send({"type": "response.create"})

    play(story)


def test_a_server_that_is_away_or_refuses_is_told_apart() -> None:
    """Nobody there; no key; an offer that is not wanted."""

    async def away() -> None:
        with pytest.raises(ServerAway):
            async with RealtimeCall.connect("http://127.0.0.1:9"):
                pass
        with pytest.raises(ServerAway):
            async with RealtimeSocket.connect("http://127.0.0.1:9"):
                pass

    asyncio.run(away())

    async def without_key(server: Answering) -> None:
        for connect in (RealtimeCall.connect, RealtimeSocket.connect):
            with pytest.raises(ServerRefused) as caught:
                async with connect(server.url):
                    pass
            assert caught.value.status == 401

    with answering(ring=KeyRing([])) as server:
        asyncio.run(without_key(server))


def test_a_call_that_does_not_connect_is_given_up() -> None:
    """The server answers, but no check of its candidates succeeds."""

    async def story(server: Answering) -> None:
        with pytest.raises(CallFailed, match="did not connect within"):
            async with RealtimeCall.connect(server.url, connect_within_s=0.5):
                pass

    play(story, mood="lost")


def test_a_socket_speaks_text() -> None:
    """Events both ways, and the end in words."""

    async def story(server: Answering) -> None:
        async with RealtimeSocket.connect(server.url, model="m") as socket:
            assert (await socket.receive())["type"] == "session.created"
            await socket.send({"type": "response.create"})
            kinds = []
            async for event in socket.events():
                kinds.append(event["type"])
                if event["type"] == "response.done":
                    server.loop.call_soon_threadsafe(server.session.link.close, 1001, "Bye.")
            assert kinds[0] == "response.created"
            with pytest.raises(CallFailed, match="1001 Bye"):
                await socket.receive()
            with pytest.raises(CallFailed):
                await socket.send({"type": "response.create"})

    play(story)


def test_a_socket_joins_a_call() -> None:
    """A sideband sees the call's events."""

    async def story(server: Answering) -> None:
        async with (
            RealtimeCall.connect(server.url) as call,
            RealtimeSocket.connect(server.url, call_id=call.call_id) as side,
        ):
            assert (await side.receive())["type"] == "session.created"
            assert len(server.session.links) == 2

    play(story)


def test_what_is_not_public_of_a_peer_is_where_it_is_looked_for() -> None:
    """The parts that `clients.peer` and `Earpiece` reach into."""

    async def main() -> None:
        peer: Any = new_peer()
        transceiver = peer.addTransceiver("audio")
        assert isinstance(peer._RTCPeerConnection__iceTransports, set)
        assert isinstance(peer._RTCPeerConnection__remoteIce, dict)
        connection: Any = transceiver.receiver.transport.transport._connection
        assert callable(connection.get_component_candidates)
        assert callable(connection.query_consent)
        assert callable(transceiver.receiver._handle_rtp_packet)
        await close_peer(peer)

    asyncio.run(main())
