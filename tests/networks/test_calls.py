"""Calls over a bad network: a real client and the real door, with a relay between that loses, delays, swaps, doubles
and cuts off."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aioice import ice

from benchmarks.network_faults import CLEAR, CUT, Conditions
from benchmarks.network_relay import reroute
from orchestrator.clients.peer import offering_resends
from orchestrator.peers import ice_connections
from tests.networks.lines import connect, dial, dial_through
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

BAD = Conditions(loss=0.05, delay_s=0.01, jitter_s=0.06, swapped=0.03, doubled=0.03)
SECOND = [*frames_of(tone(0.2)), *[None] * 40]
"""A tone at its beginning, then silence."""


async def hears_on(caller: Caller) -> None:
    """Returns once half a second more has come from the server."""
    received = caller.earpiece.count
    await until(lambda: caller.earpiece.count > received + 25, "sound from the server")


def answer_only(query_consent: Callable[[ice.Connection], Awaitable[None]]) -> Any:
    """Lets the client answer questions for consent and ask none, so that nothing but its sound shows where it is."""

    async def asked_of_clients_only(connection: ice.Connection) -> None:
        if not connection.ice_controlling:
            await query_consent(connection)

    return asked_of_clients_only


async def heard_up_to(board: Switchboard, seconds: float) -> None:
    await until(lambda: board.session.intake.position >= seconds * 16_000, f"{seconds} s of sound")


def starts_of(board: Switchboard) -> list[float]:
    """Where each tone began; what was lost of one does not make two of it."""
    starts: list[float] = []
    for start, _ in loud_extents(board.session):
        if not starts or start - starts[-1] > 0.5:
            starts.append(start)
    return starts


def test_nothing_after_an_outage_of_3_s_is_shifted() -> None:
    """Tones at every second: 5 % loss, jitter of 60 ms, packets swapped and doubled for 3 s, then nothing for 3 s,
    then the bad line again. Each tone that arrived lies where it was spoken, to within 40 ms; events that were sent
    during the outage arrive, in order."""

    async def main() -> None:
        async with switchboard() as board:
            caller, line = await dial_through(board, Script(SECOND * 12))
            try:
                await heard_up_to(board, 0.5)
                line.set(BAD)
                await heard_up_to(board, 3.5)
                line.set(CUT)
                sent = caller.microphone.sent
                for number in range(3):
                    caller.send({"type": "conversation.item.delete", "item_id": f"item_{number}"})
                    board.session.emit(f"number.{number}")
                await until(lambda: caller.microphone.sent >= sent + 150, "the end of the outage")
                line.set(BAD)
                await heard_up_to(board, 9.8)
                # The bad line takes its share of any tone's first packets; three in a row are none of these.
                starts = starts_of(board)
                seconds = [round(start) for start in starts]
                assert starts == pytest.approx(seconds, abs=0.04), starts
                assert {0, 1, 2, 3, 7, 8, 9} <= set(seconds)
                assert not {4, 5, 6} & set(seconds[:-4]), "the outage was none"
                await until(lambda: len(board.session.submitted) == 3, "the client's events")
                await until(lambda: "number.2" in caller.types(), "the server's events")
                assert [event.item_id for event in board.session.submitted] == ["item_0", "item_1", "item_2"]  # type: ignore[union-attr]
                assert caller.types()[-3:] == ["number.0", "number.1", "number.2"]
            finally:
                line.close()

    asyncio.run(main())


def test_what_a_burst_took_is_sent_again_by_a_client_that_offers_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the packets is lost, four at a time: the client is asked, and most of them come. Of a client
    that offers nothing they are lost."""
    monkeypatch.setattr("orchestrator.transports.call.HOLD_MS", 2_000)  # however slow this machine is

    async def lost_of(client: Callable[[str], str]) -> tuple[int, int]:
        async with switchboard() as board:
            caller, offer = await board.offer(Script(SECOND * 5))
            caller.call_id, answer = await board.door.answer(client(offer), REQUEST)
            assert ("nack" in answer) == (client is offering_resends)
            caller.answer, line = await reroute(answer, 1)
            try:
                await connect(caller)
                line.set(Conditions(loss=0.1, burst=4, delay_s=0.01), CLEAR)
                await heard_up_to(board, 4)
                call = board.door.find(caller.call_id)
                assert call is not None
                line.set(CLEAR)
                await until(
                    lambda: call._sound._order.due_us is None, "the last hole to be filled or given up"
                )
                return call.statistics().order.lost, line.statistics()[0].lost
            finally:
                line.close()

    async def main() -> None:
        silent, asked = await lost_of(str), await lost_of(offering_resends)
        assert silent[0] > silent[1] / 3 > 3
        assert asked[0] < silent[0] / 2

    asyncio.run(main())


def test_doubled_and_very_late_packets_are_harmless() -> None:
    """Every packet comes twice, and every tenth a third of a second late: each tone is heard once, at its place; what
    was late is counted and not waited for."""

    async def main() -> None:
        async with switchboard() as board:
            caller, line = await dial_through(board, Script(SECOND * 3))
            try:
                line.set(Conditions(doubled=1.0, swapped=0.1, swap_s=0.35))
                await heard_up_to(board, 2.6)
                assert starts_of(board) == pytest.approx([0, 1, 2], abs=0.04)
                call = board.door.find(caller.call_id)
                assert call is not None
                order = call.statistics().order
                assert order.late > 3
                assert order.received < 1.1 * caller.microphone.sent, "doubles stop at SRTP"
            finally:
                line.close()

    asyncio.run(main())


def test_numbers_that_wrap_around_under_way_shift_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sequence number and time stamp pass their greatest values in the middle of a bad line."""

    async def main() -> None:
        async with switchboard() as board:
            caller, line = await dial(board, Script(SECOND * 3))
            try:
                with monkeypatch.context() as patch:
                    patch.setattr("aiortc.rtcrtpsender.random_sequence_number", lambda: (1 << 16) - 75)
                    patch.setattr("aiortc.rtcrtpsender.random32", lambda: (1 << 32) - 75 * 960)
                    await connect(caller)
                line.set(Conditions(loss=0.03, jitter_s=0.03, swapped=0.03))
                await heard_up_to(board, 2.6)
                assert starts_of(board) == pytest.approx([0, 1, 2], abs=0.04)
                call = board.door.find(caller.call_id)
                assert call is not None
                statistics = call.statistics()
                assert (statistics.order.restarts, statistics.misplaced) == (0, 0)
                assert statistics.order.received > 100
            finally:
                line.close()

    asyncio.run(main())


def test_a_call_that_is_dead_ends_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Consent (RFC 7675) is asked for until nobody has answered six times, 30 s in earnest; then the call is gone."""
    monkeypatch.setattr("aioice.ice.CONSENT_INTERVAL", 0.1)

    async def main() -> None:
        async with switchboard() as board:
            caller, line = await dial_through(board)
            try:
                await heard_up_to(board, 0.1)
                line.set(CUT)
                await until(lambda: board.door.calls == 0, "the call to be gone")
                await until(lambda: caller.peer.connectionState == "closed", "the client to notice")
                assert board.session.links == {}
                assert board.session.ended is None, "a session outlives its call"
            finally:
                line.close()

    asyncio.run(main())


def test_a_short_outage_ends_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to five answers may be missing; then it goes on as before."""
    monkeypatch.setattr("aioice.ice.CONSENT_INTERVAL", 0.3)

    async def main() -> None:
        async with switchboard() as board:
            caller, line = await dial_through(board, Script(SECOND * 30))
            try:
                await heard_up_to(board, 0.1)
                line.set(CUT)
                sent = caller.microphone.sent
                await until(lambda: caller.microphone.sent > sent + 25, "half a second")
                line.set(CLEAR)
                received = caller.earpiece.count
                await heard_up_to(board, 4)
                assert board.door.calls == 1
                assert caller.earpiece.count > received
                starts = starts_of(board)
                assert starts == pytest.approx([round(start) for start in starts], abs=0.02)
            finally:
                line.close()

    asyncio.run(main())


def test_a_client_that_names_its_new_address_to_ice_is_followed() -> None:
    """What browsers do when they change networks: a check that nominates, from the new address. Sound goes on both
    ways, each tone at its place."""

    async def main() -> None:
        async with switchboard() as board:
            caller, line = await dial_through(board, Script(SECOND * 30))
            try:
                await heard_up_to(board, 0.3)
                line.move()
                (connection,) = {one for one in ice_connections(caller.peer) if one._nominated}
                (pair,) = connection._nominated.values()
                key = connection.remote_password.encode()
                for _ in range(2):  # the first makes the address known, the second chooses it
                    request = connection.build_request(pair, nominate=True)
                    await pair.protocol.request(request, pair.remote_addr, integrity_key=key)
                await hears_on(caller)
                await heard_up_to(board, 2.6)
                starts = starts_of(board)
                assert starts == pytest.approx([round(start) for start in starts], abs=0.02)
                assert {1, 2} <= {round(start) for start in starts}
            finally:
                line.close()

    asyncio.run(main())


def test_a_client_whose_router_moves_it_unasked_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says nothing of it, since it does not know: no check, no nomination, only its sound comes from elsewhere.
    Three times in one call. Sound goes on both ways, each tone at its place, and the call outlives its consent."""
    monkeypatch.setattr("aioice.ice.CONSENT_INTERVAL", 0.3)
    monkeypatch.setattr("aioice.ice.Connection.query_consent", answer_only(ice.Connection.query_consent))

    async def main() -> None:
        async with switchboard() as board:
            caller, line = await dial_through(board, Script(SECOND * 30))
            try:
                await heard_up_to(board, 0.3)
                for _ in range(3):
                    line.move()
                    await hears_on(caller)
                    board.session.emit("moved")
                    await until(lambda: "moved" in caller.types(), "an event from the server")
                    caller.events.clear()
                sent = caller.microphone.sent
                await until(lambda: caller.microphone.sent > sent + 150, "more than consent lasts")
                assert board.door.calls == 1
                starts = starts_of(board)
                assert starts == pytest.approx([round(start) for start in starts], abs=0.02)
            finally:
                line.close()

    asyncio.run(main())


def test_a_client_that_only_listens_is_followed_by_its_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """No sound comes of it; its own questions for consent, without a nomination, show where it is now."""
    monkeypatch.setattr("aioice.ice.CONSENT_INTERVAL", 1.0)
    monkeypatch.setattr("orchestrator.transports.aiortc_moves.CHECK_ELSEWHERE_US", 300_000)

    async def main() -> None:
        async with switchboard() as board:
            caller, line = await dial_through(board, direction="recvonly")
            try:
                await until(lambda: caller.earpiece.count > 5, "sound from the server")
                line.move()
                await hears_on(caller)
                assert board.door.calls == 1
            finally:
                line.close()

    asyncio.run(main())
