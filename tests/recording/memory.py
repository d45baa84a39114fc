"""A recording in memory: what a session's heart does is written down, read and replayed, as files would be."""

from modalities.ports import Pcm
from orchestrator.recording.journal import Journal, read, standing_of
from orchestrator.recording.scribe import Opening, Scribe
from orchestrator.recording.sound import Mark
from orchestrator.sessions.effects import Effect
from orchestrator.sessions.events import Event
from orchestrator.sessions.rules import SessionRules
from orchestrator.sessions.session import Session
from orchestrator.wire.session import Session as SessionView


class MemoryTap:
    """Writes one session down into memory."""

    def __init__(
        self,
        view: SessionView,
        rules: SessionRules,
        tag: str = "T",
        secret: str = "secret",
        began: float = 0.0,
    ) -> None:
        self._scribe = Scribe(Opening(view, rules, tag, secret, began))
        self.data = bytearray(self._scribe.header())
        self.sound = bytearray()

    def stepped(self, event: Event, now: int, effects: tuple[Effect, ...] | None, heart: Session) -> None:
        self.data += self._scribe.step(event, now, effects, standing_of(heart))

    def heard(self, marks: tuple[Mark, ...], pcm: Pcm) -> None:
        line, block = self._scribe.sound(marks, pcm)
        self.data += line
        self.sound += block

    def journal(self) -> Journal:
        return read(bytes(self.data), bytes(self.sound))
