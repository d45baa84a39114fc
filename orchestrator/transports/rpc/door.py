"""The links of gRPC, gRPC-Web and Connect: how many there are, and how all of them end."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import Overloaded
from orchestrator.observability.instrument import Call
from orchestrator.transports.auth import Principal
from orchestrator.transports.open_links import OpenLink, OpenLinks
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


class RpcDoor(OpenLinks[OpenLink]):
    """Knows every link: at most `max_links` at one time. Cheap to make: nothing of gRPC is imported for it."""

    def __init__(self, max_links: int, rate: Rate | None = None) -> None:
        """`rate`: what one stream may send, and requests to one session."""
        super().__init__()
        self._max_links = max_links
        self.rate = rate or Rate()
        self.paces = Paces(self.rate)
        self._coming = 0

    @property
    def max_links(self) -> int:
        return self._max_links

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
        with super().holding(link):
            yield

    def shut(self) -> None:
        """Ends every link, after what it has yet to send: the server is going."""
        self.close(SHUTTING_DOWN.code, SHUTTING_DOWN.reason)
