"""Sessions with nothing behind them, for benchmarks of doors: a session that only has an intake, and who opens it."""

from collections.abc import Callable
from typing import Generic, TypeVar

from modalities.ports import Pcm
from orchestrator.ids import random_id
from orchestrator.sessions.links import AudioIntake, Link, LinkKind, LogEntry, SessionPort, SessionRequest
from orchestrator.wire.session import Session


class QuietSession:
    """A `SessionPort` that greets its links, takes sound into `intake`, and answers nothing. `link`: who is there."""

    def __init__(self, intake: AudioIntake) -> None:
        self.id = random_id("sess")
        self.secret = ""
        self.view = Session(id=self.id, model="none", expires_at=0)
        self.intake = intake
        self.last = 0
        self.link: Link | None = None

    def attach(self, link: Link, after: int | None = None) -> int:
        self.link = link
        link.tell(b'{"type":"session.created","event_id":"event_0"}')
        return 0

    def detach(self, link_id: str) -> None:
        self.link = None

    async def submit(self, link_id: str, event: object, age_us: int = 0) -> None:
        """Listens to nothing but sound."""

    async def perform(self, event: object, age_us: int = 0) -> tuple[bytes, ...]:
        return ()

    def refuse(self, link_id: str, error: Exception, event_id: str | None) -> None:
        """As above."""

    def playout_drained(self, response_id: str) -> None:
        """Nobody waits for that."""

    def read(self, cursor: int, limit: int) -> list[tuple[int, LogEntry]]:
        return []


class HeardBy:
    """An `AudioIntake` that hands each new piece of a call's sound, and where it begins, to `hear`."""

    is_behind = False

    def __init__(self, hear: Callable[[int, Pcm], None]) -> None:
        self.position = 0
        self._hear = hear

    def append(self, pcm: Pcm) -> None:
        """Not used by calls."""

    def append_at(self, position: int, pcm: Pcm) -> None:
        cut = max(0, self.position - position)
        if cut < len(pcm):
            self.position = position + len(pcm)
            self._hear(position + cut, pcm[cut:])


S = TypeVar("S", bound=QuietSession)


class QuietDirectory(Generic[S]):
    """Opens sessions made by `make`, keeps them in `sessions`, and ends none."""

    def __init__(self, make: Callable[[], S]) -> None:
        self.sessions: list[S] = []
        self._make = make

    def open(self, request: SessionRequest, kind: LinkKind) -> S:
        self.sessions.append(self._make())
        return self.sessions[-1]

    def open_call(self, request: SessionRequest, session: SessionPort | None = None) -> tuple[str, S]:
        return random_id("rtc"), self.open(request, LinkKind.CALL)

    def by_call(self, call_id: str, tenant: str) -> S:
        raise NotImplementedError

    def by_id(self, session_id: str, secret: str, tenant: str | None) -> S:
        raise NotImplementedError

    def key_of(self, session: SessionPort) -> str:
        return ""

    def end(self, session: object, reason: str) -> None:
        """There is nothing to end."""
