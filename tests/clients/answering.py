"""A server that listens and answers by rote: what clients are tested against, over real HTTP, WebSocket and WebRTC.

It runs on a loop in a thread of its own, since the commands under test bring their own loop.
"""

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from modalities.ports import Pcm
from orchestrator.clock import MonotonicClock
from orchestrator.sessions.links import LinkKind, LoggedEvent, SessionRequest
from orchestrator.transports.auth import Gate, KeyRing, SecretBook
from orchestrator.transports.call import CallSettings
from orchestrator.transports.entrance import Entrance
from orchestrator.transports.http import make_app
from orchestrator.transports.rejoining import Back
from orchestrator.transports.routes import Doors
from orchestrator.transports.server import Server, ServerOptions, listen, make_server
from orchestrator.transports.webrtc import CallDoor
from orchestrator.transports.websocket import WebSocketDoor
from orchestrator.wire import codec
from orchestrator.wire.client import AnyClientEvent, CreateItem, CreateResponse, UpdateSession
from orchestrator.wire.server import SessionUpdated
from tests.fakes.session_port import CallDirectory, CallSession, RingIntake
from tests.transports.calling import tone
from tests.transports.fake_sessions import DEFAULTS
from tests.transports.running import FakeReadiness

QUIET_SAMPLES = 8_000
WORDS = "what time is it"
REPLY = ("It is ", "twelve o'clock.")


class Ear(RingIntake):
    """Calls `heard` when half a second of silence follows speech."""

    def __init__(self, session: "AnsweringSession") -> None:
        super().__init__()
        self._session = session
        self._quiet: int | None = None

    def append_at(self, position: int, pcm: Pcm) -> None:
        super().append_at(position, pcm)
        if np.abs(pcm.astype(int)).max(initial=0) > 1_000:
            if self._quiet is None:
                self._session.speech_started()
            self._quiet = 0
        elif self._quiet is not None:
            self._quiet += len(pcm)
            if self._quiet > QUIET_SAMPLES:
                self._quiet = None
                self._session.speech_stopped()


class AnsweringSession(CallSession):
    """Understands everything as `WORDS` and answers everything with `REPLY`; `mood` says how it fails."""

    def __init__(self, request: SessionRequest, kind: LinkKind, mood: str) -> None:
        super().__init__(request, kind)
        self.ring = Ear(self)
        self.intake = self.ring
        self.mood = mood
        self._responses = 0

    async def submit(self, link_id: str, event: AnyClientEvent, age_us: int = 0) -> None:
        await super().submit(link_id, event, age_us)
        if isinstance(event, UpdateSession):
            self.log_event(json.loads(codec.encode(SessionUpdated(self.view), self.event_id(self.last + 1))))
        elif isinstance(event, CreateResponse) or (isinstance(event, CreateItem) and self._typed_turns()):
            if self.mood == "refuses":
                self.links[link_id].tell(b'{"type":"error","error":{"message":"no more today"}}')
            else:
                self.answer()

    def _typed_turns(self) -> bool:
        return bool(getattr(self.view.chorale, "typed_turns", False))

    def speech_started(self) -> None:
        self._say("input_audio_buffer.speech_started", item_id="item_1", audio_start_ms=0)

    def speech_stopped(self) -> None:
        if self.mood == "deaf":
            return
        self._say("input_audio_buffer.speech_stopped", item_id="item_1", audio_end_ms=0)
        self._say("input_audio_buffer.committed", item_id="item_1", previous_item_id=None)
        transcription = "conversation.item.input_audio_transcription"
        for delta in WORDS.partition(" "):
            self._say(f"{transcription}.delta", item_id="item_1", content_index=0, delta=delta)
        self._say(f"{transcription}.completed", item_id="item_1", content_index=0, transcript=WORDS)
        self.answer()

    def answer(self) -> None:
        self._responses += 1
        ids = {
            "response_id": f"resp_{self._responses}",
            "item_id": "item_2",
            "output_index": 0,
            "content_index": 0,
        }
        self._say("response.created", response={"id": ids["response_id"], "status": "in_progress"})
        playout = next(iter(self.links.values())).playout
        shown = "text" if playout is None else "audio"
        self._say("response.content_part.added", **ids, part={"type": shown})
        kind = "response.output_text.delta" if playout is None else "response.output_audio_transcript.delta"
        for delta in REPLY:
            self._say(kind, **ids, delta=delta)
        if playout is not None:
            playout.play(f"resp_{self._responses}", tone(0.5).tobytes())
            playout.finish(f"resp_{self._responses}")
            self._say("output_audio_buffer.started", response_id=ids["response_id"])
        self._say("response.done", response={"id": ids["response_id"], **self._outcome()})

    def playout_drained(self, response_id: str) -> None:
        super().playout_drained(response_id)
        self._say("output_audio_buffer.stopped", response_id=response_id)

    def _outcome(self) -> dict[str, Any]:
        if self.mood == "fails":
            error = {"type": "server_error", "message": "the model is gone"}
            return {"status": "failed", "status_details": {"type": "failed", "error": error}}
        return {"status": "completed"}

    def _say(self, kind: str, **fields: object) -> None:
        self.log_event({"type": kind, "event_id": self.event_id(self.last + 1), **fields})

    def log_event(self, event: dict[str, Any]) -> None:
        self.emit(LoggedEvent(json.dumps(event).encode()))


class AnsweringDirectory(CallDirectory):
    """Opens answering sessions."""

    def __init__(self, mood: str) -> None:
        super().__init__()
        self._mood = mood

    def open(self, request: SessionRequest, kind: LinkKind) -> AnsweringSession:
        session = AnsweringSession(request, kind, self._mood)
        self.sessions.append(session)
        return session


class LostCalls(CallDoor):
    """Answers with a password that is not its own, so that nobody ever gets through."""

    async def answer(
        self, offer_sdp: str, request: SessionRequest, back: Back | None = None
    ) -> tuple[str, str]:
        call_id, answer = await super().answer(offer_sdp, request, back)
        return call_id, answer.replace("a=ice-pwd:", "a=ice-pwd:not")


@dataclass(frozen=True, slots=True)
class Answering:
    """Where the server is, and what it opened."""

    url: str
    directory: AnsweringDirectory
    loop: asyncio.AbstractEventLoop

    @property
    def session(self) -> AnsweringSession:
        """The one session that was opened."""
        (session,) = self.directory.sessions
        assert isinstance(session, AnsweringSession)
        return session


@contextlib.contextmanager
def answering(mood: str = "willing", ring: KeyRing | None = None) -> Iterator[Answering]:
    """Serves in a thread."""
    directory = AnsweringDirectory(mood)
    sockets = listen("127.0.0.1", 0)
    started = threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []
    servers: list[Server] = []

    async def serve() -> None:
        clock = MonotonicClock()
        entrance = Entrance(Gate(ring, SecretBook(10)), ("loopback",), (), clock)
        calls = LostCalls(directory, CallSettings(ice_timeout_s=1)) if mood == "lost" else CallDoor(directory)
        door = WebSocketDoor(directory, entrance, 100)
        app = make_app(
            Doors(entrance, door, calls, FakeReadiness(), DEFAULTS, 3_600, clock, directory=directory), {}
        )
        server = make_server(app, ServerOptions())
        loops.append(asyncio.get_running_loop())
        servers.append(server)
        started.set()
        try:
            await server.serve(sockets)
        finally:
            await calls.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="answering server")
    thread.start()
    try:
        started.wait()
        while not servers[0].started:
            time.sleep(0.001)
        yield Answering(f"http://127.0.0.1:{sockets[0].getsockname()[1]}", directory, loops[0])
    finally:
        servers[0].should_exit = True
        thread.join()
