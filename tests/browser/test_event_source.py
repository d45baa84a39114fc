"""A browser's own reader of server-sent events comes back by itself, with what it missed, and stops at the end."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestrator.scheduling.job import Tier
from orchestrator.sessions.links import LinkKind, SessionRequest
from orchestrator.transports.auth import Key, KeyRing, Principal, digest_of
from orchestrator.transports.page import FOLDER
from orchestrator.transports.sessions_http import SESSIONS
from orchestrator.transports.sse_link import StreamSettings
from tests.browser.chromium import Page, chromium
from tests.transports.fake_sessions import FakeSession
from tests.transports.running import Running, build, serving

pytestmark = pytest.mark.browser

RING = KeyRing([Key(digest_of("sk-acme"), Principal("acme", Tier.GOLD))])

READ = """
window.got = [];
window.source = new EventSource(arguments[0]);
for (const kind of ["session.created", "one", "two", "three"])
  source.addEventListener(kind, ({ type, lastEventId, data }) => got.push([type, lastEventId, JSON.parse(data).type]));
"""


class Served:
    """A server with one session, in a thread of its own."""

    def __init__(self) -> None:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="served")

    def __enter__(self) -> "Served":
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(60)

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        house = build(RING, page=FOLDER, streams=StreamSettings(heartbeat_s=0.2, retry_ms=50))
        self.session: FakeSession = house.directory.open(SessionRequest("acme", 2), LinkKind.EVENTS)
        async with serving(house) as self.running:
            self._ready.set()
            await self._end.wait()
            house.events.close(1001, "the test is over")
            await house.events.wait_empty()

    def do(self, what: Callable[[Running, FakeSession], object]) -> None:
        """Runs `what` in the server's thread."""

        async def run() -> None:
            what(self.running, self.session)

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(60)


def cut(running: Running, session: FakeSession) -> None:
    """Breaks every connection, and logs what their clients miss."""
    for connection in list(running.server.server_state.connections):
        transport: Any = connection.transport
        transport.abort()
    session.emit("two")


@pytest.fixture
def page() -> Iterator[Page]:
    with chromium() as opened:
        yield opened


def test_event_source_comes_back_by_itself_and_misses_nothing(page: Page) -> None:
    """With a secret in its address and no key: each numbered event once, in order, over two cuts; then the session
    ends, and the browser does not come any more."""
    with Served() as served:
        session = served.session
        page.open(f"http://127.0.0.1:{served.running.port}/")
        page.script(READ, f"{SESSIONS}/{session.id}/events?secret={session.secret}")

        def got() -> list[list[str]]:
            found: list[list[str]] = page.script("return window.got")
            return [one for one in found if one[0] != "session.created"]

        page.wait_for(lambda: page.script("return window.got.length"), "the stream to begin")
        wanted = []
        for kind in ("one", "three"):
            served.do(lambda _, session, kind=kind: session.emit(kind))  # type: ignore[misc]
            wanted.append([kind, session.event_id(session.last), kind])
            page.wait_for(lambda: got() == wanted, f"{kind} to come")
            served.do(cut)
            wanted.append(["two", session.event_id(session.last), "two"])
            page.wait_for(lambda: got() == wanted, "what was missed to come")
        served.do(lambda running, session: running.house.directory.end(session, "bye"))
        page.wait_for(lambda: page.script("return window.source.readyState") == 2, "the browser to stop")
        assert got() == wanted
