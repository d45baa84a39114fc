"""What a session's turns were for who measures them (heart): a record of each, once it has its answer.

It sees what a session's heart has decided and changes nothing. Turns are numbered here, one for each record: jobs carry
the number of the turn that they are part of. A turn begins with the first sign of it and ends with ``response.done``;
one that nobody answers ends with its transcript, or when the next begins.
"""

from collections.abc import Callable, Iterable

from msgspec import UNSET

from orchestrator.observability import traceparent
from orchestrator.observability.instrument import Ending, TurnRecord
from orchestrator.observability.traceparent import TraceParent
from orchestrator.scheduling.work import REFUSED
from orchestrator.sessions.effects import Effect, Emit, EmitAudio, NoteTurn
from orchestrator.sessions.figures import TurnTimes
from orchestrator.wire import server as wire
from orchestrator.wire.items import Message


class TurnWatch:
    """One session's turns. `tell` takes their records; `origin` is the server's time at the session's beginning,
    `remote` the client's span that all of them belong to."""

    def __init__(
        self,
        session_id: str,
        tier: int,
        origin: int,
        tell: Callable[[TurnRecord], None],
        remote: TraceParent | None = None,
    ) -> None:
        self.number = 1
        """The turn that is under way or begins next."""
        self._session_id = session_id
        self._tier = tier
        self._origin = origin
        self._tell = tell
        self._remote = remote
        self._speech_us: int | None = None
        """Since when the user has been speaking."""
        self._clear()

    def _clear(self) -> None:
        self._began_us: int | None = None
        self._seen_us = 0
        self._asked_us: int | None = None
        self._item_us: int | None = None
        self._sound_us: int | None = None
        self._is_spoken = False
        self._unit: int | None = None
        self._running: set[str] = set()
        self._next: tuple[int, bool, int] | None = None
        """The first sign of the next turn, whether it is spoken, and the user's turn that it belongs to."""
        self._conversation_id = ""
        self._own: TraceParent | None = None
        self._times: TurnTimes | None = None
        self._stages: dict[str, tuple[int, int]] = {}

    def saw(self, effects: Iterable[Effect], now: int, unit: int, answers: bool) -> bool:
        """Looks at the effects of one step at session time `now`. `unit` is the user's turn that is open there,
        `answers` whether the session makes responses. Returns whether the user gave a sign."""
        sign = False
        for effect in effects:
            if isinstance(effect, Emit):
                sign = self._saw(effect.event, now, unit, answers) or sign
            elif isinstance(effect, EmitAudio):
                if self._sound_us is None:
                    self._sound_us = now
            elif isinstance(effect, NoteTurn):
                self._times = effect.times
        return sign

    def _saw(self, event: wire.ServerEvent, now: int, unit: int, answers: bool) -> bool:
        match event:
            case wire.SpeechStarted():
                if self._unit not in (None, unit) and not self._running:
                    self._end(self._seen_us, Ending.COMPLETED)  # nobody wanted an answer
                self._speech_us = now
                self._sign(now, unit, is_spoken=True)
            case wire.SpeechStopped():
                self._speech_us = None
                self._sign(now, unit, is_spoken=True)
                if not self._running:
                    self._stages["listen"] = (now if self._began_us is None else self._began_us, now)
            case wire.BufferCommitted():
                self._sign(now, unit, is_spoken=True)
            case wire.ItemAdded(item=Message(role="user")):
                self._sign(now, unit)
            case wire.ResponseCreated():
                self._asked(event.response, now, unit)
            case wire.OutputItemAdded():
                self._item_us = now if self._item_us is None else self._item_us
                return False
            case wire.ResponseDone():
                self._answered(event.response, now)
                return False
            case wire.TranscriptionCompleted() | wire.TranscriptionFailed():
                self._transcribed(event, now, answers)
                return False
            case _:
                return False
        return True

    def close(self, now: int) -> None:
        """The session has ended; a turn that was under way ends with it."""
        if self._began_us is not None:
            self._end(now, Ending.CANCELLED if self._running else Ending.COMPLETED)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _sign(self, now: int, unit: int, is_spoken: bool = False) -> None:
        if self._running:  # what comes while a turn is answered is of the next one
            first, was_spoken, _ = self._next or (now, False, unit)
            self._next = (first, was_spoken or is_spoken, unit)
            return
        if self._began_us is None:
            self._began_us = now
        self._seen_us, self._unit = now, unit
        self._is_spoken = self._is_spoken or is_spoken

    def _asked(self, response: wire.Response, now: int, unit: int) -> None:
        if not self._running:
            self._sign(now, unit)
            self._asked_us = now
        self._running.add(response.id)
        self._conversation_id = response.conversation_id or self._conversation_id
        self._own = traceparent.parse((response.metadata or {}).get("traceparent")) or self._own

    def _answered(self, response: wire.Response, now: int) -> None:
        self._running.discard(response.id)
        if self._running or self._began_us is None:
            return
        details = response.status_details
        error = "" if details is None or details.error is UNSET else str(details.error.code)
        match response.status:
            case "failed":
                ending = Ending.REFUSED if error == REFUSED else Ending.FAILED
            case "cancelled":
                ending = Ending.CANCELLED
            case _:
                ending = Ending.COMPLETED
        self._end(now, ending, error)

    def _transcribed(
        self, event: wire.TranscriptionCompleted | wire.TranscriptionFailed, now: int, answers: bool
    ) -> None:
        if self._began_us is None:
            return
        self._seen_us = now
        if answers:
            return
        if isinstance(event, wire.TranscriptionCompleted):
            self._end(now, Ending.COMPLETED)
        else:
            error = str(event.error.code)
            self._end(now, Ending.REFUSED if error == REFUSED else Ending.FAILED, error)

    def _end(self, now: int, ending: Ending, error: str = "") -> None:
        began, following = self._began_us, self._next
        assert began is not None
        if following is None and self._speech_us is not None and self._unit is not None:
            following = (self._speech_us, True, self._unit)
        self._tell(
            TurnRecord(
                session_id=self._session_id,
                conversation_id=self._conversation_id,
                turn=self.number,
                tier=self._tier,
                modality="audio" if self._is_spoken else "text",
                began_us=began + self._origin,
                ended_us=max(began, now) + self._origin,
                outcome=ending,
                error=error,
                stages={
                    name: (start + self._origin, max(start, stop) + self._origin)
                    for name, (start, stop) in self._reached(now).items()
                },
                remote=self._own or self._remote,
            )
        )
        self.number += 1
        self._clear()
        if following is not None:
            first, is_spoken, unit = following
            self._sign(first, unit, is_spoken)
            self._seen_us = max(first, now)  # it ends no sooner than the one that was answered meanwhile

    def _reached(self, now: int) -> dict[str, tuple[int, int]]:
        """Returns the stages that were reached, by name."""
        stages, times, asked = self._stages, self._times, self._asked_us
        if times is not None:
            began = times.spoken_us if self._began_us is None else self._began_us
            stages["listen"] = (began, times.ended_us)
            if times.transcript_us is not None:
                stages["transcribe"] = (times.ended_us, times.transcript_us)
                if asked is not None:
                    stages["agree"] = (times.transcript_us, asked)
            if times.sentence_us is not None and times.sound_us is not None:
                stages["voice"] = (times.sentence_us, times.sound_us)
        first = self._item_us if times is None or times.token_us is None else times.token_us
        if asked is not None and first is not None:
            stages["think"] = (asked, first)
        if self._sound_us is not None:
            stages["speak"] = (self._sound_us, now)
        return stages
