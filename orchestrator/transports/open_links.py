"""The links that a door has open: counted, told of, ended together, and waited for."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar


class OpenLink(Protocol):
    """What a door needs of a link."""

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


LinkT = TypeVar("LinkT", bound=OpenLink)


class OpenLinks(Generic[LinkT]):
    """What every door is built on. Bounded by the door, which lets them in."""

    def __init__(self) -> None:
        self._links: dict[str, LinkT] = {}
        self._too_many_told = 0
        self._empty = asyncio.Event()
        self._empty.set()
        self.refused = 0
        """How many were not let in since the start that would be at another time: no room for links or sessions, of all
        or of a tenant, or it drains."""

    @property
    def links(self) -> int:
        """How many links are open or about to be."""
        return len(self._links)

    def count_refused(self) -> None:
        self.refused += 1

    def told(self) -> tuple[int, int, int]:
        """Returns the private messages that wait on all links: how many, and their bytes; and how many links have been
        closed since the start for more than that."""
        sizes = [link.told for link in self._links.values()]
        return sum(count for count, _ in sizes), sum(size for _, size in sizes), self._too_many_told

    @contextlib.contextmanager
    def holding(self, link: LinkT) -> Iterator[None]:
        """Counts a link for the time of the block."""
        self._links[link.id] = link
        self._empty.clear()
        try:
            yield
        finally:
            self._too_many_told += link.was_told_too_much
            del self._links[link.id]
            if not self._links:
                self._empty.set()

    def close(self, code: int, reason: str) -> None:
        """Ends every link, after what it has yet to send."""
        for link in tuple(self._links.values()):
            link.close(code, reason)

    async def wait_empty(self) -> None:
        """Returns once no link is open. Cancelling loses nothing."""
        await self._empty.wait()
