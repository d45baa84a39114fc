"""The links of gRPC, gRPC-Web and Connect: how many there are, and how all of them end."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from orchestrator.errors import Overloaded
from orchestrator.transports.outbox import Closing

_RETRY_AFTER_S = 5.0


class OpenLink(Protocol):
    """A link, as far as its door has to know it."""

    @property
    def id(self) -> str: ...

    @property
    def told(self) -> tuple[int, int]:
        """Private messages that wait: how many, and their bytes."""
        ...

    def close(self, code: int, reason: str) -> None: ...


class RpcDoor:
    """Knows every link: at most `max_links` at one time. Cheap to make: nothing of gRPC is imported for it."""

    def __init__(self, max_links: int) -> None:
        self._max_links = max_links
        self._links: dict[str, OpenLink] = {}
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def max_links(self) -> int:
        return self._max_links

    @property
    def links(self) -> int:
        """How many links are open."""
        return len(self._links)

    def told(self) -> tuple[int, int, int]:
        """Returns the private messages that wait on all links: how many, and their bytes; none is ever dropped."""
        sizes = [link.told for link in self._links.values()]
        return sum(count for count, _ in sizes), sum(size for _, size in sizes), 0

    def check_room(self) -> None:
        """Raises `Overloaded` where no further link may come."""
        if len(self._links) >= self._max_links:
            raise Overloaded("too many connections are open", _RETRY_AFTER_S)

    @contextmanager
    def holding(self, link: OpenLink) -> Iterator[None]:
        """Counts a link for the time of the block. Raises `Overloaded`."""
        self.check_room()
        self._links[link.id] = link
        self._empty.clear()
        try:
            yield
        finally:
            del self._links[link.id]
            if not self._links:
                self._empty.set()

    def close(self, closing: Closing) -> None:
        """Ends every link, after what it has yet to send."""
        for link in tuple(self._links.values()):
            link.close(closing.code, closing.reason)

    async def wait_empty(self) -> None:
        """Returns once no link is open. Cancelling loses nothing."""
        await self._empty.wait()
