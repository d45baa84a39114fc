"""The links of gRPC, gRPC-Web and Connect: how many there are, and how all of them end."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from orchestrator.errors import Overloaded
from orchestrator.observability.instrument import Call
from orchestrator.transports.auth import Principal
from orchestrator.transports.outbox import Closing
from orchestrator.transports.pace import Paces, Rate

SHUTTING_DOWN = Closing(1012, "The server is shutting down; connect again in a moment.")

principal: ContextVar[Principal] = ContextVar("principal")
"""Who calls; set for every call whose key was good."""


@dataclass(frozen=True, slots=True)
class Named:
    """A route as requests are counted by it (`border`)."""

    path: str


calls: ContextVar[Call] = ContextVar("call")
"""The call that a request over HTTP is; how it ends is noted in it."""

_RETRY_AFTER_S = 5.0


@dataclass(frozen=True, slots=True)
class GrpcOptions:
    """Where and how gRPC is spoken. `ping_s`: how often a silent connection is pinged, and how long it may take to
    answer. With a certificate it is spoken over TLS."""

    host: str = "127.0.0.1"
    port: int = 0
    ping_s: float = 20.0
    certificate: Path | None = None
    certificate_key: Path | None = None


class OpenLink(Protocol):
    """A link, as far as its door has to know it."""

    @property
    def id(self) -> str: ...

    @property
    def told(self) -> tuple[int, int]:
        """Private messages that wait: how many, and their bytes."""
        ...

    @property
    def was_told_too_much(self) -> bool:
        """Whether it is ended for more of them than may wait."""
        ...

    def close(self, code: int, reason: str) -> None: ...


class RpcDoor:
    """Knows every link: at most `max_links` at one time. Cheap to make: nothing of gRPC is imported for it."""

    def __init__(self, max_links: int, rate: Rate | None = None) -> None:
        """`rate`: what one stream may send, and requests to one session."""
        self._max_links = max_links
        self.rate = rate or Rate()
        self.paces = Paces(self.rate)
        self._refused = 0
        self._links: dict[str, OpenLink] = {}
        self._coming = 0
        self._too_many_told = 0
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def max_links(self) -> int:
        return self._max_links

    @property
    def links(self) -> int:
        """How many links are open."""
        return len(self._links)

    @property
    def refused(self) -> int:
        """How many streams, sessions and other calls did not come about since the start, for want of room or since the
        server drains."""
        return self._refused

    def count_refused(self) -> None:
        self._refused += 1

    def told(self) -> tuple[int, int, int]:
        """Returns the private messages that wait on all links: how many, and their bytes; and how many links have been
        closed since the start for more than that."""
        sizes = [link.told for link in self._links.values()]
        return sum(count for count, _ in sizes), sum(size for _, size in sizes), self._too_many_told

    def check_room(self) -> None:
        """Raises `Overloaded` where no further link may come."""
        if len(self._links) + self._coming >= self._max_links:
            raise Overloaded("too many connections are open", _RETRY_AFTER_S)

    @contextmanager
    def coming(self) -> Iterator[None]:
        """Keeps a place for a link that has yet to say which session is its: who says nothing has no more places than
        who speaks, and leaves the calls that are no links theirs. Raises `Overloaded`."""
        self.check_room()
        self._coming += 1
        try:
            yield
        finally:
            self._coming -= 1

    @contextmanager
    def holding(self, link: OpenLink) -> Iterator[None]:
        """Counts a link for the time of the block. Raises `Overloaded`."""
        self.check_room()
        self._links[link.id] = link
        self._empty.clear()
        try:
            yield
        finally:
            self._too_many_told += link.was_told_too_much
            del self._links[link.id]
            if not self._links:
                self._empty.set()

    def close(self) -> None:
        """Ends every link, after what it has yet to send: the server is going."""
        for link in tuple(self._links.values()):
            link.close(SHUTTING_DOWN.code, SHUTTING_DOWN.reason)

    async def wait_empty(self) -> None:
        """Returns once no link is open. Cancelling loses nothing."""
        await self._empty.wait()
