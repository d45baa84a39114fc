"""A real server on simulated accelerators, its figures, and clients that talk, drop, or vanish."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx
import yaml
from websockets.asyncio.client import ClientConnection, connect

from tests.real.serving import ROOT, Served, served

LONG_S = 120.0
"""What a machine may take that has other things to do; nothing here takes a tenth of it by itself."""

Event = dict[str, Any]


def key_of(tenant: str) -> str:
    return f"sk-load-faults-{tenant}"


@contextmanager
def loaded(
    folder: Path, tree: Mapping[str, Any], tenants: Mapping[str, Mapping[str, Any]]
) -> Iterator[Served]:
    """Yields a server with this configuration; each tenant has `key_of` its name and what else a key file says."""
    keys = [{"key": key_of(name), "tenant": name, **about} for name, about in tenants.items()]
    (folder / "keys.yaml").write_text(yaml.safe_dump({"keys": keys}))
    server = {**tree.get("server", {}), "key_file": "keys.yaml", "drain_s": 0}
    (folder / "server.yaml").write_text(yaml.safe_dump({**tree, "server": server}))
    command = [sys.executable, "-m", "tests.real.loaded_server", str(folder / "server.yaml")]
    with served(folder / "log", {"PYTHONPATH": str(ROOT)}, command=command) as running:
        yield running


class Figures:
    """One scrape."""

    def __init__(self, text: str) -> None:
        self._lines = [line for line in text.splitlines() if line and not line.startswith("#")]

    def of(self, name: str, **labels: str) -> float:
        """Returns the sum of a metric's series that have all these labels; 0 where there is none yet."""
        wanted = [f'chorale_{label}="{value}"' for label, value in labels.items()]
        found = (line for line in self._lines if re.match(rf"{name}[{{ ]", line))
        return sum(float(line.rpartition(" ")[2]) for line in found if all(one in line for one in wanted))

    @property
    def running(self) -> float:
        return self.of("chorale_jobs_running", kind="llm")

    @property
    def waiting(self) -> float:
        return self.of("chorale_jobs_queued", kind="llm")

    def ended(self, outcome: str, **labels: str) -> float:
        """How many replies have ended so."""
        return self.of("chorale_jobs_total", kind="llm", outcome=outcome, **labels)

    @property
    def held(self) -> dict[str, float]:
        """Everything that somebody who is gone may have left behind."""
        buffers = ("jobs_waiting", "jobs_inside", "jobs_in_transit", "links", "sessions", "clips", "told")
        held = {name: self.of("chorale_buffer_items", buffer=name) for name in buffers}
        in_flight = self.of("chorale_limit_in_flight")
        return {**held, "running": self.of("chorale_jobs_running"), "in_flight": in_flight}


async def figures(server: Served, tenant: str) -> Figures:
    """Asks with a tenant's key."""
    header = {"Authorization": f"Bearer {key_of(tenant)}"}
    async with httpx.AsyncClient(base_url=server.url, headers=header, trust_env=False) as client:
        answer = await client.get("/metrics", timeout=LONG_S)
    assert answer.status_code == 200, answer.text
    return Figures(answer.text)


async def figures_when(server: Served, tenant: str, wanted: Callable[[Figures], bool]) -> Figures:
    """Asks until they are as wanted."""
    async with asyncio.timeout(LONG_S):
        while not wanted(found := await figures(server, tenant)):  # noqa: ASYNC110 - a scrape is asked, it does not tell
            await asyncio.sleep(0.1)
    return found


async def at_rest(server: Served, tenant: str) -> Figures:
    """Waits until nothing is held for anybody."""
    try:
        return await figures_when(server, tenant, lambda seen: not any(seen.held.values()))
    except TimeoutError:
        left = (await figures(server, tenant)).held
        raise AssertionError(f"left behind: {left}") from None


class Talker:
    """A client of plain text; an `error` event is a failure."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.deltas: list[str] = []
        """Of the response that came last."""

    async def send(self, **event: Any) -> None:
        await self.socket.send(json.dumps(event))

    async def next(self) -> Event:
        """Returns the next event."""
        event: Event = json.loads(await self.socket.recv())
        assert event["type"] != "error", event
        if event["type"] == "response.created":
            self.deltas = []
        if event["type"] == "response.output_text.delta":
            self.deltas.append(event["delta"])
        return event

    async def until(self, wanted: str) -> Event:
        """Returns the next event of this type."""
        while (event := await self.next())["type"] != wanted:
            pass
        return event

    async def ask(self, text: str, tokens: int | None = None) -> None:
        """Says something and asks for an answer of so many tokens; None: it never ends."""
        part = {"type": "input_text", "text": text}
        item = {"type": "message", "role": "user", "content": [part]}
        await self.send(type="conversation.item.create", item=item)
        most = {} if tokens is None else {"max_output_tokens": tokens}
        await self.send(type="response.create", response=most)

    async def answer(self) -> Event:
        """Returns the response as it ended."""
        response: Event = (await self.until("response.done"))["response"]
        return response

    def drop(self) -> None:
        """The connection breaks: nobody says goodbye."""
        self.socket.transport.abort()

    def vanish(self) -> None:
        """The connection stays and nobody is there: nothing is read, no ping is answered."""
        self.socket.transport.pause_reading()

    @classmethod
    @asynccontextmanager
    async def at(cls, server: Served, tenant: str) -> AsyncIterator[Self]:
        """Connects; whatever becomes of it, the connection is gone afterwards."""
        url = f"{server.url.replace('http', 'ws')}/v1/realtime"
        header = {"Authorization": f"Bearer {key_of(tenant)}"}
        socket = await connect(
            url, additional_headers=header, compression=None, proxy=None, open_timeout=LONG_S
        )
        try:
            yield cls(socket)
        finally:
            socket.transport.abort()
            await socket.wait_closed()


T = TypeVar("T", bound=Talker)


@asynccontextmanager
async def crowd(kind: type[T], server: Served, *tenants: str) -> AsyncIterator[list[T]]:
    """Connects one client of this kind for each tenant."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(kind.at(server, tenant)) for tenant in tenants]


def talkers(server: Served, *tenants: str) -> AbstractAsyncContextManager[list[Talker]]:
    """As `crowd`, of those that just talk."""
    return crowd(Talker, server, *tenants)


def error_of(response: Event) -> Event:
    """Returns why a response failed; it is a failure of the test that it did not."""
    assert response["status"] == "failed", response
    error: Event = response["status_details"]["error"]
    return error


def all_of(responses: Sequence[Event]) -> set[str]:
    """Returns how responses ended."""
    return {response["status"] for response in responses}
