"""A WebSocket under pressure: slow, rude and vanishing clients, full and closing servers."""

import asyncio
import json
import socket

import pytest
from websockets.exceptions import InvalidStatus

from orchestrator.errors import WireError
from orchestrator.sessions.links import LoggedEvent
from orchestrator.transports import bounded_reading, server, websocket_link
from orchestrator.wire.client import CancelResponse, CreateItem
from tests.transports.running import (
    Running,
    against,
    build,
    closed,
    heard,
    item,
    open_session,
    refusal,
    say,
    until,
)


def test_full_server_refuses_before_the_upgrade() -> None:
    """No room for another session: 503 with the time to come back, and room again once one has ended."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            with pytest.raises(InvalidStatus) as caught:
                async with running.connect():
                    pass
            assert caught.value.response.status_code == 503
            assert caught.value.response.headers["Retry-After"] == "7"
        assert running.house.door.refused == 1
        running.house.directory.end(session, "done")
        async with running.connect():
            pass

    against(test, lambda: build(capacity=1))


def test_draining_server_takes_no_new_sessions_but_serves_its_own() -> None:
    """A closed entrance: 503 for what is new, running links go on until they are ended with 1001."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            running.house.entrance.close()
            status, error = await refusal(running)
            assert (status, error["code"]) == (503, "server_shutting_down")
            session.emit("response.done")
            assert (await heard(link))["type"] == "response.done"
            session.emit("last.words")
            running.house.door.close(1001, "The server is shutting down.")
            assert (await heard(link))["type"] == "last.words"
            assert await closed(link) == (1001, "The server is shutting down.")
        await until(lambda: not session.links)

    against(test)


def test_full_inbox_holds_its_client_back_and_nobody_else() -> None:
    """While one session takes nothing, its client's messages wait unread; other links are served, nothing is lost."""

    async def test(running: Running) -> None:
        async with running.connect() as slow, running.connect() as quick:
            for link in (slow, quick):
                await heard(link)
            held, free = running.house.directory.sessions
            held.room.clear()
            for number in range(50):
                await say(slow, "conversation.item.create", item=item(str(number)))
                await say(quick, "conversation.item.create", item=item(str(number)))
            await free.wait_for(50)
            assert held.submitted == []
            held.room.set()
            await held.wait_for(50)

    against(test)


def test_link_behind_retention_is_closed_and_its_session_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that stops reading is closed with 1013 once the log has dropped what it has yet to get; other links of
    the session miss nothing."""
    monkeypatch.setattr(websocket_link, "_STUCK_AFTER_S", 0.0)

    async def test(running: Running) -> None:
        async with running.connect() as good:
            session = await open_session(good, running)
            stuck = socket.create_connection(("127.0.0.1", running.port))
            stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stuck.sendall(
                f"GET /v1/realtime?session_id={session.id}&secret={session.secret} HTTP/1.1\r\nHost: localhost\r\n"
                "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
            )
            await until(lambda: len(session.links) == 2)
            count = 0
            while len(session.links) == 2:
                session.speak(bytes(9_600))
                count += 1
                session.drop_before(session.last - 200)
                assert (await heard(good))["event_id"] == session.event_id(session.last)
            assert count > 200
            assert session.ended is None
            assert len(session.links) == 1
            stuck.close()

    against(test)


def test_link_that_fills_up_between_two_writes_is_closed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that stops reading while more than one write waits for it is found at the next event: its link does not
    hang on behind the log until a ping gives it up."""
    monkeypatch.setattr(websocket_link, "_STUCK_AFTER_S", 0.0)

    async def test(running: Running) -> None:
        stuck = socket.create_connection(("127.0.0.1", running.port))
        stuck.sendall(
            b"GET /v1/realtime HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        sessions = running.house.directory.sessions
        await until(lambda: bool(sessions and sessions[0].links))
        (session,) = sessions
        links, session.links = session.links, {}  # nobody is woken until all of it is there
        for _ in range(3_000):
            session.speak(bytes(9_600))
        session.links = links
        session.emit("response.done")
        (connection,) = running.server.server_state.connections
        assert isinstance(connection, server.MeasuredProtocol)
        await until(lambda: not connection.takes_more)
        session.drop_before(session.last)

        def closes_at_an_event() -> bool:
            session.emit("response.done")
            session.drop_before(session.last)
            return not session.links

        await until(closes_at_an_event)
        stuck.close()

    against(test, options=server.ServerOptions(ping_s=3_000))


def test_client_that_says_much_is_read_as_fast_as_it_reads() -> None:
    """A client that restores a long conversation gets every echo, though the log holds a part of them only."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)

            async def echo(link_id: str, event: object, age_us: int = 0) -> None:
                assert isinstance(event, CreateItem)
                session.emit("conversation.item.added")
                session.emit("conversation.item.done")
                session.drop_before(session.last - 200)

            session.submit = echo  # type: ignore[method-assign]
            for _ in range(1_000):
                await say(link, "conversation.item.create", item=item("x"))
            found = [(await heard(link))["type"] for _ in range(2_000)]
            assert found == ["conversation.item.added", "conversation.item.done"] * 1_000

    against(test)


def test_sound_and_interruptions_do_not_wait_for_a_client_to_read() -> None:
    """Far behind with a long reply, a client is heard and can stop it all the same; a question waits for its turn."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            link.transport.pause_reading()
            for _ in range(2_000):
                session.speak(bytes(9_600))
            await say(link, "input_audio_buffer.append", audio="AAAA" * 100)
            await say(link, "response.cancel")
            await say(link, "conversation.item.create", item=item("x"))
            await session.wait_for(1)
            assert isinstance(session.submitted[0], CancelResponse)
            await asyncio.sleep(0.05)
            assert len(session.submitted) == 1
            link.transport.resume_reading()
            while len(session.submitted) < 2:
                await link.recv()

    against(test)


def test_stuck_peer_is_let_go_even_if_it_never_reads_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The socket of a peer that neither reads nor answers a close is torn down after the close timeout."""
    monkeypatch.setattr(bounded_reading, "CLOSE_TIMEOUT_S", 0.1)
    monkeypatch.setattr(websocket_link, "CLOSE_WITHIN_S", 0.05)

    async def test(running: Running) -> None:
        stuck = socket.create_connection(("127.0.0.1", running.port))
        stuck.sendall(
            b"GET /v1/realtime HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        await until(
            lambda: bool(running.house.directory.sessions and running.house.directory.sessions[0].links)
        )
        (session,) = running.house.directory.sessions
        for _ in range(3_000):
            session.speak(bytes(9_600))
        (link,) = session.links.values()
        link.close(1001, "bye")
        assert len(running.server.server_state.connections) == 1
        await until(lambda: not running.server.server_state.connections)
        stuck.close()

    against(test, options=server.ServerOptions(ping_s=3_000))


def test_peer_that_answers_no_ping_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that is gone without a word, with sound still unsent, costs its socket for two ping intervals only."""
    monkeypatch.setattr(bounded_reading, "CLOSE_TIMEOUT_S", 0.1)

    async def test(running: Running) -> None:
        stuck = socket.create_connection(("127.0.0.1", running.port))
        stuck.sendall(
            b"GET /v1/realtime HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        await until(
            lambda: bool(running.house.directory.sessions and running.house.directory.sessions[0].links)
        )
        (session,) = running.house.directory.sessions
        for _ in range(3_000):
            session.speak(bytes(9_600))
        await until(lambda: not running.server.server_state.connections and not session.links)
        assert session.ended is None
        stuck.close()

    against(test, options=server.ServerOptions(ping_s=0.2))


def test_close_of_a_slow_link_does_not_wait_for_its_backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that is to end gets a bounded time for what is before its end."""
    monkeypatch.setattr(websocket_link, "CLOSE_WITHIN_S", 0.05)

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            link.transport.pause_reading()
            for _ in range(3_000):
                session.speak(bytes(9_600))
            (one,) = session.links.values()
            one.close(1001, "bye")
            await until(lambda: not session.links)
            link.transport.resume_reading()
            assert (await closed(link))[0] == 1001

    against(test)


def test_events_over_a_megabyte_are_cut_or_replaced_by_an_error() -> None:
    """A client's library would drop the connection at 1 MiB: of a session, which clients wait for, words are left out;
    an event that cannot be cut is named instead."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            shown = {
                "id": "sess_1",
                "instructions": "x" * 600_000,
                "tools": [{"parameters": ["y" * 600_000]}],
            }
            event = {"event_id": "event_1", "type": "session.updated", "session": shown}
            session.emit(LoggedEvent(json.dumps(event).encode()))
            session.emit("x" * 2**20)
            session.emit("response.done")
            updated = await heard(link)
            assert (updated["type"], updated["session"]["id"]) == ("session.updated", "sess_1")
            error = await heard(link)
            assert (error["type"], error["error"]["code"]) == ("error", "event_too_big")
            assert error["event_id"] == session.event_id(2)
            assert (await heard(link))["type"] == "response.done"

    against(test)


def test_flood_of_unread_errors_ends_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that nobody reads are bounded: 1008, and the session lives."""
    monkeypatch.setattr(websocket_link, "CLOSE_WITHIN_S", 0.05)

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            link.transport.pause_reading()
            for _ in range(3_000):
                session.speak(bytes(9_600))
            (one,) = session.links.values()
            for _ in range(300):
                session.refuse(one.id, WireError("invalid_event", "no"), None)
            await until(lambda: not session.links)
            link.transport.resume_reading()
            assert (await closed(link))[0] == 1008
        assert session.ended is None
        await until(lambda: not running.house.door.links)
        assert running.house.door.told() == (0, 0, 1)

    against(test)


def test_event_for_an_ended_session_closes_its_link() -> None:
    """A client that talks to a session which is gone is told so with 1001."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            session.ended = "expired"
            await say(link, "response.create")
            assert (await closed(link))[0] == 1001

    against(test)


def test_fault_of_our_own_ends_only_its_link() -> None:
    """What nobody foresaw closes that link with 1011, is logged, and harms no other."""

    async def test(running: Running) -> None:
        async with running.connect() as broken, running.connect() as sound:
            for link in (broken, sound):
                await heard(link)
            first, second = running.house.directory.sessions

            async def fail(*_: object) -> None:
                raise RuntimeError("hunter2")

            first.submit = fail  # type: ignore[assignment,method-assign]
            await say(broken, "response.create")
            assert await closed(broken) == (1011, "Internal error.")
            await say(sound, "response.create")
            await second.wait_for(1)

    against(test)


def test_typed_text_is_dated_by_half_the_round_trip() -> None:
    """The server measures each connection soon after it opened; later events carry an age above zero."""

    async def test(running: Running) -> None:
        async with running.connect() as link:
            session = await open_session(link, running)
            while not session.ages_us or session.ages_us[-1] == 0:
                await say(link, "conversation.item.create", item=item("x"))
                await session.wait_for(1)
                await asyncio.sleep(0.01)
            assert 0 < session.ages_us[-1] <= 1_000_000

    against(test)


def test_sudden_leaves_leave_nothing_behind() -> None:
    """A hundred connections aborted at different points: every link is detached and every task is gone."""

    async def test(running: Running) -> None:
        before = len(asyncio.all_tasks())
        for number in range(100):
            sock = socket.create_connection(("127.0.0.1", running.port))
            request = (
                b"GET /v1/realtime HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
            )
            sock.sendall(request[: len(request) - number % 3 * 40])
            if number % 2:
                await asyncio.sleep(0)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            sock.close()
        await until(lambda: running.house.door.links == 0 and not running.server.server_state.connections)
        for session in running.house.directory.sessions:
            assert not session.links
        await until(lambda: len(asyncio.all_tasks()) <= before)

    against(test)
