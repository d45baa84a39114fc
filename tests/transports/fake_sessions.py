"""A directory of sessions that only remember: what doors are tested against."""

import asyncio

import msgspec

from modalities.ports import Pcm
from orchestrator.errors import Overloaded, SessionClosed, WireError
from orchestrator.ids import event_tag, random_id, session_secret
from orchestrator.sessions.links import (
    Link,
    LinkKind,
    LogEntry,
    LoggedAudio,
    LoggedEvent,
    SessionPort,
    SessionRequest,
)
from orchestrator.transports import partial
from orchestrator.wire import codec, update
from orchestrator.wire.client import AnyClientEvent, UpdateSession
from orchestrator.wire.server import Gap, SessionCreated
from orchestrator.wire.session import Session

DEFAULTS = Session(id="", model="default-model", expires_at=0)


class FakeIntake:
    """Keeps all sound; refuses beyond `bound` samples."""

    def __init__(self) -> None:
        self.sound: list[int] = []
        self.bound = 10_000_000
        self.is_behind = False

    @property
    def position(self) -> int:
        return len(self.sound)

    def append(self, pcm: Pcm) -> None:
        if len(self.sound) + len(pcm) > self.bound:
            raise Overloaded("the audio buffer is full; commit or clear it", 1.0)
        self.sound += pcm.tolist()

    def append_at(self, position: int, pcm: Pcm) -> None:
        raise NotImplementedError


class FakeSession:
    """Logs what the test logs, remembers what the door submits."""

    def __init__(self, request: SessionRequest, kind: LinkKind) -> None:
        self.id = request.session_id or random_id("sess")
        self.secret = session_secret()
        self.request = request
        self.kind = kind
        self.view = update.initial(self.id, request.model, 0, DEFAULTS, request.initial)
        self.intake = FakeIntake()
        self.links: dict[str, Link] = {}
        self.submitted: list[AnyClientEvent] = []
        self.ages_us: list[int] = []
        self.answers: tuple[bytes, ...] = ()
        self.refused: list[tuple[Exception, str | None]] = []
        self.room = asyncio.Event()
        self.room.set()
        self.came = asyncio.Condition()
        self.log: dict[int, LogEntry] = {}
        self.last = 0
        self.first = 1
        self.spoken: dict[str, int] = {}
        self.ended: str | None = None

    def attach(self, link: Link, after: int | None = None) -> int:
        if self.ended:
            raise SessionClosed("The session has ended.")
        if after is not None and not 0 <= after <= self.last:
            raise WireError("invalid_value", "There is no such event in this session yet.", "after")
        self.links[link.id] = link
        link.tell(codec.encode(SessionCreated(self.view), random_id("event")))
        if after is None:
            return self.last
        if after < self.first - 1:
            link.tell(codec.encode(Gap(after, self.first), random_id("event")))
        return max(after, self.first - 1)

    def detach(self, link_id: str) -> None:
        self.links.pop(link_id, None)

    async def submit(self, link_id: str, event: AnyClientEvent, age_us: int = 0) -> None:
        if self.ended:
            raise SessionClosed("The session has ended.")
        await self.room.wait()
        if isinstance(event, UpdateSession):
            self.view = update.merge(self.view, event.session, audio_started=False)
        self.ages_us.append(age_us)
        self.submitted.append(event)
        async with self.came:
            self.came.notify_all()

    async def perform(self, event: AnyClientEvent, age_us: int = 0) -> tuple[bytes, ...]:
        """Remembers the event; answers what `answers` says."""
        await self.submit("", event, age_us)
        return self.answers

    def refuse(self, link_id: str, error: Exception, event_id: str | None) -> None:
        self.refused.append((error, event_id))
        self.links[link_id].tell(codec.encode(codec.error_event(error, event_id), random_id("event")))

    def playout_drained(self, response_id: str) -> None:
        raise NotImplementedError

    def read(self, cursor: int, limit: int) -> list[tuple[int, LogEntry]]:
        if cursor + 1 < self.first:
            raise LookupError(cursor)
        return [
            (number, self.log[number]) for number in range(cursor + 1, min(self.last, cursor + limit) + 1)
        ]

    def emit(self, entry: LogEntry | str) -> None:
        """Logs an entry (a string becomes an event of that type) and wakes every link."""
        self.last += 1
        if isinstance(entry, str):
            entry = LoggedEvent(msgspec.json.encode({"event_id": self.event_id(self.last), "type": entry}))
        self.log[self.last] = entry
        for link in self.links.values():
            link.wake()

    def event_id(self, number: int) -> str:
        return f"event_{event_tag(self.id)}_{number}"

    def speak(self, pcm: bytes, item_id: str = "item_1", last: bool = False) -> None:
        """Logs a piece of sound."""
        start = self.spoken.get(item_id, 0)
        self.spoken[item_id] = start + len(pcm) // 2
        audio_format = self.view.audio.output.format
        self.emit(
            LoggedAudio(self.event_id(self.last + 1), "resp_1", item_id, 0, 0, pcm, audio_format, start, last)
        )

    def drop_before(self, first: int) -> None:
        """Lets go what is numbered below `first`."""
        for number in range(self.first, first):
            self.log.pop(number, None)
        self.first = max(self.first, first)

    async def wait_for(self, count: int) -> None:
        """Returns once so many events were submitted."""
        async with self.came:
            await self.came.wait_for(lambda: len(self.submitted) >= count)


class FakeDirectory:
    """Opens fake sessions, at most `capacity`."""

    def __init__(self, capacity: int = 100) -> None:
        self.capacity = capacity
        self.sessions: list[FakeSession] = []
        self.calls: dict[str, FakeSession] = {}

    @property
    def living(self) -> list[FakeSession]:
        return [session for session in self.sessions if session.ended is None]

    def open(self, request: SessionRequest, kind: LinkKind) -> FakeSession:
        if len(self.living) >= self.capacity:
            raise Overloaded("the server has no room for another session", 7.0)
        partial.check(request.initial)
        session = FakeSession(request, kind)
        self.sessions.append(session)
        return session

    def open_call(
        self, request: SessionRequest, session: SessionPort | None = None
    ) -> tuple[str, FakeSession]:
        session = self.open(request, LinkKind.CALL) if session is None else session
        assert isinstance(session, FakeSession)
        call_id = random_id(session.id.replace("sess_", "rtc_") if session.request.session_id else "rtc")
        self.calls[call_id] = session
        return call_id, session

    def by_call(self, call_id: str, tenant: str) -> FakeSession:
        session = self.calls.get(call_id)
        if session is None or session.request.tenant != tenant:
            raise SessionClosed("There is no such call.")
        return session

    def by_id(self, session_id: str, secret: str, tenant: str | None) -> FakeSession:
        for session in self.living:
            mine = tenant in (None, session.request.tenant)
            if session.id == session_id and session.secret == secret and mine:
                return session
        raise SessionClosed("There is no such session.")

    def key_of(self, session: SessionPort) -> str:
        assert isinstance(session, FakeSession)
        return session.request.key_id

    def end(self, session: object, reason: str) -> None:
        assert isinstance(session, FakeSession)
        session.ended = session.ended or reason
        for link in list(session.links.values()):
            link.close(1000, reason)
