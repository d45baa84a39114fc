"""When a session has nothing to do, and when its user has said nothing for too long (heart): ``idle_timeout_ms``."""

from orchestrator.buffers.timeline import SAMPLE_RATE_HZ
from orchestrator.clock import US_PER_MS, US_PER_S
from orchestrator.sessions.answering import Answering
from orchestrator.sessions.checking import Checker
from orchestrator.sessions.conversation import Conversation, Entry
from orchestrator.sessions.listening import Listener
from orchestrator.sessions.outbound import Outbound
from orchestrator.sessions.speaking import Speaker
from orchestrator.sessions.states import Ear
from orchestrator.sessions.turns import TurnWindow
from orchestrator.wire import server as wire
from orchestrator.wire.items import OBJECT, InputAudio, Message
from orchestrator.wire.session import ServerVad, Session

SAID_NOTHING = "(The user says nothing.)"
"""What the model is told of the silence."""


class Idling:
    """A silence that is too long becomes a turn, which is answered like any other.

    It is counted from when the user has heard the last response to its end (`Attendance.attended_us`), while somebody
    is there and nothing else goes on; whatever changes in the conversation begins it anew. One silence is told once:
    the next response that ends by itself makes the next one possible.
    """

    def __init__(
        self,
        out: Outbound,
        conversation: Conversation,
        turns: TurnWindow,
        parts: tuple[Listener, Speaker, Answering, Checker],
    ) -> None:
        self._out = out
        self._conversation = conversation
        self._turns = turns
        self._listener, self._speaker, self._answering, self._checker = parts
        self._since_us: int | None = None
        self._from = self._changes = self._timeout_us = 0

    def is_busy(self, is_attended: bool) -> bool:
        """Whether anything is said, heard, made or waited for."""
        return (
            self._speaker.busy
            or self._listener.waiting
            or self._listener.ear.state is Ear.HEARING
            or (self._answering.owes and is_attended)
            or self._checker.waiting
            or not self._speaker.playback.is_silent
        )

    def follow(self, view: Session, may_answer: bool) -> None:
        """Looks whether a silence goes on, begins or ends. `may_answer`: somebody who may speak is there."""
        detection, heard_by_us = view.audio.input.turn_detection, self._speaker.heard_by_us
        limit_ms = detection.idle_timeout_ms if isinstance(detection, ServerVad) else None
        is_told = may_answer and self._out.rules.idles
        if limit_ms is None or heard_by_us is None or not is_told or self.is_busy(True):
            self._since_us = None
            return
        if self._since_us is None or self._changes != self._conversation.changes:
            self._since_us = max(self._out.attended_us, heard_by_us)
            self._from = self._listener.heard_to
        self._changes = self._conversation.changes
        self._timeout_us = limit_ms * US_PER_MS

    @property
    def deadline(self) -> int | None:
        """When the silence is too long; None while there is none."""
        if self._since_us is None:
            return None
        return self._out.now + max(0, self._since_us + self._timeout_us - self._out.attended_us)

    def time_passed(self, view: Session) -> None:
        """Makes a turn of a silence that is too long."""
        if self._since_us is None or self._out.attended_us < self._since_us + self._timeout_us:
            return
        self._since_us = self._speaker.heard_by_us = None
        stop = self._listener.heard_to
        start = max(self._from, stop - self._timeout_us * SAMPLE_RATE_HZ // US_PER_S)
        turn = self._turns.sign(self._out.now)
        item_id = self._out.ids.take("item")
        item = Message("user", (InputAudio(""),), item_id, OBJECT, "completed")
        previous = self._conversation.add(Entry(item, began_us=self._out.now, reads=SAID_NOTHING))
        turn.items.append(item_id)
        self._out.emit(
            wire.BufferTimedOut(item_id, start * 1_000 // SAMPLE_RATE_HZ, stop * 1_000 // SAMPLE_RATE_HZ),
            wire.BufferCommitted(item_id, previous),
            wire.ItemAdded(item, previous),
            wire.ItemDone(item, previous),
        )
        if view.audio.input.transcription is not None:
            usage = wire.DurationUsage(round((stop - start) / SAMPLE_RATE_HZ, 3))
            self._out.emit(wire.TranscriptionCompleted(item_id, 0, "", usage))
        detection = view.audio.input.turn_detection
        if detection is not None and detection.create_response:
            self._answering.typed()
