"""Sessions for calls: as those of the WebSocket tests, with a real ring, and a note of what was played out."""

from modalities.ports import SPEECH_RATE_HZ, Pcm
from orchestrator.buffers.audio import SpeechBuffer
from orchestrator.errors import Overloaded, SessionClosed
from orchestrator.sessions.links import Link, LinkKind, SessionRequest
from orchestrator.transports import partial
from tests.transports.fake_sessions import FakeDirectory, FakeIntake, FakeSession


class RingIntake(FakeIntake):
    """Ten minutes of sound, with gaps as the real session has them."""

    def __init__(self) -> None:
        super().__init__()
        self.buffer = SpeechBuffer(600 * SPEECH_RATE_HZ)
        self.pieces: list[tuple[int, int]] = []
        self.full = False

    @property
    def position(self) -> int:
        return self.buffer.position

    def append(self, pcm: Pcm) -> None:
        self.buffer.append(pcm)

    def append_at(self, position: int, pcm: Pcm) -> None:
        if self.full:
            raise Overloaded("the audio buffer is full", 1.0)
        self.pieces.append((position, len(pcm)))
        self.buffer.append_at(position, pcm)


class CallSession(FakeSession):
    """Notes which responses were played out."""

    def __init__(self, request: SessionRequest, kind: LinkKind) -> None:
        super().__init__(request, kind)
        self.ring = RingIntake()
        self.intake = self.ring
        self.drained: list[str] = []
        self.refuses_links = False

    def attach(self, link: Link, after: int | None = None) -> int:
        if self.refuses_links:
            raise SessionClosed("The session has ended.")
        return super().attach(link, after)

    @property
    def link(self) -> Link:
        """The one link that is attached."""
        (link,) = self.links.values()
        return link

    def playout_drained(self, response_id: str) -> None:
        self.drained.append(response_id)


class CallDirectory(FakeDirectory):
    """Opens `CallSession`s."""

    refuse_links = False

    def open(self, request: SessionRequest, kind: LinkKind) -> CallSession:
        if len(self.living) >= self.capacity:
            raise Overloaded("the server has no room for another session", 7.0)
        partial.check(request.initial)
        session = CallSession(request, kind)
        session.refuses_links = self.refuse_links
        self.sessions.append(session)
        return session

    @property
    def session(self) -> CallSession:
        """The one session that was opened."""
        (session,) = self.sessions
        assert isinstance(session, CallSession)
        return session
