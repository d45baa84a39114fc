"""Streams of server-sent events over real connections: what is missed, who may read, and how they end."""

import asyncio
import logging
import socket

import httpx
import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from orchestrator.flow.tenants import Allowance
from orchestrator.scheduling.job import Tier
from orchestrator.sessions.links import LoggedEvent
from orchestrator.transports import bounded_requests, sse_link
from orchestrator.transports.auth import Key, KeyRing, Principal, digest_of
from orchestrator.transports.entrance import KEY_WITHDRAWN
from orchestrator.transports.sessions_http import MOST_OF_A_SESSION, SESSIONS
from tests.transports.fake_sessions import FakeSession
from tests.transports.reading_events import Parsed, parsed
from tests.transports.running import House, Running, against, build, until
from tests.transports.test_http import error_of, with_client
from tests.transports.test_sessions_http import keyed, opened


class Reader:
    """One who reads a stream, over a real connection."""

    def __init__(self, running: Running, session: FakeSession, query: str = "", **headers: str) -> None:
        self._client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}", timeout=60)
        self._path = f"{SESSIONS}/{session.id}/events{query}"
        self._headers = headers
        self.raw = b""

    async def __aenter__(self) -> "Reader":
        request = self._client.build_request("GET", self._path, headers=self._headers)
        self.answer = await self._client.send(request, stream=True)
        self._chunks = self.answer.aiter_raw()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.answer.aclose()
        await self._client.aclose()

    @property
    def events(self) -> list[Parsed]:
        return parsed(self.raw)

    async def until(self, kind: str) -> Parsed:
        """Reads until an event of this kind is there."""
        while not (found := [one for one in self.events if one.kind == kind]):
            self.raw += await anext(self._chunks)
        return found[-1]

    async def to_the_end(self) -> list[Parsed]:
        async for chunk in self._chunks:
            self.raw += chunk
        return self.events


def test_reader_gets_live_events_and_comes_back_to_what_it_missed() -> None:
    """`Last-Event-ID` wins over `after`; what was missed comes once and in order, then what is live; a range that is
    gone is told."""

    async def test(running: Running) -> None:
        house = running.house
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}") as client:
            session, good = await opened(house, client)
        async with Reader(running, session, **good) as reader:
            assert reader.answer.status_code == 200
            assert reader.answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
            assert reader.answer.headers["X-Accel-Buffering"] == "no"
            assert "no-transform" in reader.answer.headers["Cache-Control"]
            await reader.until("session.created")
            session.emit("one")
            came_to = (await reader.until("one")).last_id
            assert came_to == session.event_id(1)
            while b": here" not in reader.raw:
                reader.raw += await anext(reader._chunks)
        await until(lambda: not session.links)
        session.emit("two")
        session.emit("three")
        async with Reader(running, session, "?after=0", **good, **{"Last-Event-ID": came_to}) as back:
            await back.until("three")
            session.emit("four")
            await back.until("four")
            assert [one.kind for one in back.events] == ["session.created", "two", "three", "four"]
        async with Reader(running, session, f"?after={session.event_id(2)}", **good) as back:
            await back.until("four")
            assert [one.kind for one in back.events] == ["session.created", "three", "four"]
        session.drop_before(4)
        async with Reader(running, session, "?after=1", **good) as back:
            await back.until("four")
            assert [one.kind for one in back.events] == ["session.created", "chorale.gap", "four"]

    against(test, keyed)


@pytest.mark.parametrize("after", ["event_another_1", "-1", "9", "²", "1" * 400, "event_{tag}_p1", "x\x00"])
def test_reader_that_names_no_event_of_this_session_is_refused(after: str) -> None:
    """400 with the field; the stream does not begin and nothing stays behind."""

    async def test(house: House, client: httpx.AsyncClient) -> None:
        session, good = await opened(house, client)
        session.emit("x")
        text = after.format(tag=session.event_id(0).split("_")[1])
        answer = await client.get(f"{SESSIONS}/{session.id}/events", params={"after": text}, headers=good)
        assert (answer.status_code, error_of(answer)["param"]) == (400, "after")
        assert house.events.links == 0
        assert session.links == {}

    with_client(test, keyed)


def test_reader_of_a_session_that_has_ended_is_told_to_come_no_more() -> None:
    """Its stream ends; who comes back with a number gets 204, who never was there 404."""

    async def test(running: Running) -> None:
        house = running.house
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}") as client:
            session, good = await opened(house, client)
            async with Reader(running, session, **good) as reader:
                await reader.until("session.created")
                session.emit("one")
                house.directory.end(session, "bye")
                assert [one.kind for one in await reader.to_the_end()] == ["session.created", "one"]
            address = f"{SESSIONS}/{session.id}/events"
            back = await client.get(address, headers={**good, "Last-Event-ID": session.event_id(1)})
            assert (back.status_code, back.content) == (204, b"")
            assert (await client.get(address, headers=good)).status_code == 404

    against(test, keyed)


def test_reader_without_headers_shows_the_secret_in_the_address() -> None:
    """As browsers' own readers must: no key is asked for, a wrong one is refused all the same, and sound comes to those
    who ask for it."""

    async def test(running: Running) -> None:
        house = running.house
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}") as client:
            session, _ = await opened(house, client)
            address = f"{SESSIONS}/{session.id}/events"
            for query, status in ((f"?secret={session.secret}x", 404), ("", 401)):
                assert (await client.get(address + query)).status_code == status
            wrong = {"Authorization": "Bearer sk-nobody"}
            assert (await client.get(f"{address}?secret={session.secret}", headers=wrong)).status_code == 401
        async with (
            Reader(running, session, f"?secret={session.secret}&sound=true") as hears,
            Reader(running, session, f"?secret={session.secret}") as reads,
        ):
            await hears.until("session.created")
            await reads.until("session.created")
            session.speak(bytes(480))
            session.emit("x")
            await hears.until("x")
            await reads.until("x")
            assert "response.output_audio.delta" in [one.kind for one in hears.events]
            assert "response.output_audio.delta" not in [one.kind for one in reads.events]

    against(test, keyed)


def test_streams_are_bounded_by_tenant_and_by_session() -> None:
    """The tenant's third is 429, also by the secret alone; so is the ninth of a session; places come free."""

    async def test(running: Running) -> None:
        house = running.house
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}") as client:
            session, good = await opened(house, client)
            async with Reader(running, session, **good) as one, Reader(running, session, **good) as two:
                await one.until("session.created")
                await two.until("session.created")
                address = f"{SESSIONS}/{session.id}/events"
                for refused in (
                    await client.get(address, headers=good),
                    await client.get(f"{address}?secret={session.secret}"),
                ):
                    assert (refused.status_code, "Retry-After" in refused.headers) == (429, True)
            await until(lambda: house.events.links == 0)
            session, good = await opened(house, client, "sk-lab")
            readers = [
                Reader(running, session, f"?secret={session.secret}") for _ in range(MOST_OF_A_SESSION)
            ]
            try:
                for reader in readers:
                    await reader.__aenter__()
                    await reader.until("session.created")
                over = await client.get(f"{SESSIONS}/{session.id}/events?secret={session.secret}")
                assert over.status_code == 429
            finally:
                for reader in readers:
                    await reader.__aexit__()
            await until(lambda: house.events.links == 0)
            async with Reader(running, session, **good) as again:
                await again.until("session.created")

    against(test, keyed)


def test_streams_end_with_their_key_and_with_the_server() -> None:
    """What is to be sent comes first, then the end."""

    async def test(running: Running) -> None:
        house = running.house
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}") as client:
            session, good = await opened(house, client)
            other, lab = await opened(house, client, "sk-lab")
        async with Reader(running, session, **good) as gone, Reader(running, other, **lab) as stays:
            await gone.until("session.created")
            await stays.until("session.created")
            house.entrance.withdraw(frozenset({session.request.key_id}))
            assert len(await gone.to_the_end()) == 1
            other.emit("x")
            await stays.until("x")
            house.events.close(1001, KEY_WITHDRAWN)
            assert len(await stays.to_the_end()) == 2
        async with asyncio.timeout(120):
            await house.events.wait_empty()

    against(test, keyed)


def test_stream_whose_reader_does_not_take_what_was_sent_ends_in_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its key was withdrawn, and it still reads, but hardly: the connection is cut, its place is free, and the log
    shows no fault of ours."""
    monkeypatch.setattr(sse_link, "CLOSE_WITHIN_S", 0.2)
    monkeypatch.setattr(bounded_requests, "REQUEST_WITHIN_S", 3_600.0)

    async def test(running: Running) -> None:
        house = running.house
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}") as client:
            session, good = await opened(house, client)
        for number in range(16):
            session.emit(LoggedEvent(b'{"event_id":"%d","type":"x","x":"%s"}' % (number, b"x" * 900_000)))
        with socket.create_connection(("127.0.0.1", running.port)) as reader:
            head = "".join(f"{name}: {value}\r\n" for name, value in good.items())
            reader.sendall(
                f"GET {SESSIONS}/{session.id}/events?after=0 HTTP/1.1\r\nHost: localhost\r\n{head}\r\n".encode()
            )
            await until(lambda: house.events.links == 1)
            connections = running.server.server_state.connections
            await until(
                lambda: any(
                    one.flow.write_paused for one in connections if isinstance(one, HttpToolsProtocol)
                )
            )
            house.entrance.withdraw(frozenset({session.request.key_id}))
            await until(lambda: not house.events.links)
            await until(lambda: not connections)

    with caplog.at_level(logging.ERROR):
        against(test, keyed)
    assert not caplog.records


def test_stream_that_shows_the_secret_alone_is_bound_by_the_key_of_its_session() -> None:
    """No page but that key's own reads it, and it is one of the links that the key's tenant may have."""
    own = "https://app.example.com"
    ring = KeyRing(
        [
            Key(
                digest_of("sk-acme"),
                Principal("acme", Tier.GOLD, origins=(own,), allowance=Allowance(links=0)),
            ),
            Key(digest_of("sk-lab"), Principal("lab", Tier.SILVER, origins=("https://lab.example",))),
        ]
    )

    async def test(house: House, client: httpx.AsyncClient) -> None:
        session, _ = await opened(house, client)
        address = f"{SESSIONS}/{session.id}/events?secret={session.secret}"
        other = await client.get(address, headers={"Origin": "https://lab.example"})
        assert (other.status_code, error_of(other)["code"]) == (403, "origin_not_allowed")
        full = await client.get(address, headers={"Origin": own})
        assert (full.status_code, error_of(full)["code"]) == (429, "rate_limit_exceeded")
        assert session.links == {}

    with_client(test, lambda: build(ring))
