"""Which sessions are recorded, and the tap that hands what happens in them to the writer. Never waits, never raises."""

import logging
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import UNSET

from orchestrator.clock import US_PER_S
from orchestrator.recording.backlog import BacklogStatistics
from orchestrator.recording.journal import Redaction, standing_of
from orchestrator.recording.scribe import Opening
from orchestrator.recording.sound import Mark
from orchestrator.recording.writer import (
    CLOSED,
    Ended,
    Entry,
    Recording,
    Room,
    Sounded,
    Stepped,
    Withdrawn,
    Writer,
)
from orchestrator.sessions import events as on
from orchestrator.sessions.effects import Effect
from orchestrator.sessions.rules import SessionRules
from orchestrator.sessions.session import Session as Heart
from orchestrator.wire.client import UpdateSession
from orchestrator.wire.session import Session as SessionView

log = logging.getLogger("chorale.recording")

MOST_HELD = 256
MOST_HELD_BYTES = 524_288
"""What is held of a session of which nobody has said yet whether it may be recorded: some 10 s of a call."""

_STEP_BYTES = 1_024
_SOUND_AT_ONCE_US = US_PER_S
_SOUND_AT_ONCE_BYTES = 65_536
_TOO_FULL = "more came than could be written"


@dataclass(frozen=True, slots=True)
class RecordingSettings:
    """`everyone`: sessions are recorded unless their client declines; else only those whose client agrees."""

    folder: Path
    everyone: bool = False
    room: Room = Room(268_435_456, 10_737_418_240, 30.0)  # noqa: RUF009  # frozen
    redact: tuple[Redaction, ...] = ()


class SessionRecorder:
    """Implements `Recorder` with files. `start` and `close` frame its life."""

    def __init__(self, settings: RecordingSettings, writer: Writer | None = None) -> None:
        self._settings = settings
        self._writer = writer or Writer(settings.folder, settings.room)

    def start(self) -> None:
        """Raises `OSError` where the folder cannot be made."""
        self._writer.start()

    def close(self, within_s: float = 5.0) -> None:
        """Writes what waits, for as long as there is time. Waits for the disk: call it in a thread."""
        if not self._writer.close(within_s):
            log.warning("recordings are incomplete: the disk was too slow")

    def statistics(self) -> BacklogStatistics:
        return self._writer.backlog.statistics()

    def open(self, view: SessionView, rules: SessionRules, tag: str, secret: str) -> "SessionTap | None":
        wish = wish_of(view)
        if wish is False:
            return None
        began = time.time()
        opening = Opening(view, rules, tag, secret, began, self._settings.redact, secrets.token_bytes(16))
        name = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(began))}-{view.id}"
        recording = Recording(self._settings.folder / name, view.id, opening)
        return SessionTap(self._writer, recording, agreed=self._settings.everyone or wish is True)


def wish_of(view: SessionView) -> bool | None:
    """Returns whether a session's client agrees to be recorded; None where it does not say."""
    if view.chorale is UNSET or view.chorale.record is UNSET:
        return None
    return view.chorale.record


class SessionTap:
    """Implements `Tap`. A recording has the whole session or nothing: until the client has agreed, what happens is
    held, within bounds; beyond them the session is not recorded any more, whatever is said later."""

    def __init__(self, writer: Writer, recording: Recording, agreed: bool) -> None:
        self._writer = writer
        self._recording = recording
        self._agreed = agreed
        self._over = False
        self._held: list[tuple[Entry, int]] = []
        self._held_bytes = 0
        self._marks: list[Mark] = []
        self._sound: list[bytes] = []
        self._sound_bytes = 0

    def heard(self, at_us: int, position: int, pcm: bytes, live: bool) -> None:
        if self._is_over:
            return
        self._marks.append(Mark(at_us, position, len(pcm) // 2, live))
        self._sound.append(pcm)
        self._sound_bytes += len(pcm)
        if at_us - self._marks[0].at_us >= _SOUND_AT_ONCE_US or self._sound_bytes >= _SOUND_AT_ONCE_BYTES:
            self._flush_sound()

    def clip(self, name: str, pcm: bytes) -> None:
        if not self._is_over:
            self._put(Sounded((), pcm, name), len(pcm))

    def stepped(self, event: on.Event, now: int, effects: tuple[Effect, ...] | None, heart: Heart) -> None:
        is_update = isinstance(event, on.ClientSaid) and isinstance(event.event, UpdateSession)
        if self._is_over:
            if is_update and not self._agreed and wish_of(heart.view):
                self._agreed = True
                log.warning("asked too late to be recorded", extra={"session": self._recording.session_id})
            return
        if self._marks and now - self._marks[0].at_us >= _SOUND_AT_ONCE_US:
            self._flush_sound()
        self._put(Stepped(event, now, effects, standing_of(heart)), _weight(event))
        if is_update or not self._agreed:
            self._follow(wish_of(heart.view))

    def close(self) -> None:
        if self._is_over:
            return
        if self._agreed:
            self._flush_sound()
            self._end(Ended(CLOSED))
        self._let_go()

    @property
    def _is_over(self) -> bool:
        if self._recording.is_over and not self._over:
            self._let_go()
        return self._over

    def _follow(self, wish: bool | None) -> None:
        """Does what the client wants now."""
        if wish and not self._agreed:
            self._agreed = True
            held, self._held = self._held, []
            for entry, size in held:
                self._put(entry, size)
        elif wish is False:
            if self._agreed:
                self._end(Withdrawn())
            self._let_go()

    def _flush_sound(self) -> None:
        marks, self._marks = tuple(self._marks), []
        pcm, self._sound, self._sound_bytes = b"".join(self._sound), [], 0
        if marks:
            self._put(Sounded(marks, pcm), len(pcm))

    def _put(self, entry: Entry, size: int) -> None:
        if self._over:
            return
        if self._agreed:
            if not self._writer.put(self._recording, entry, size):
                self._end(Ended(_TOO_FULL))
                self._let_go()
                log.warning(
                    "recording stopped, the session goes on",
                    extra={"session": self._recording.session_id, "reason": _TOO_FULL},
                )
            return
        self._held.append((entry, size))
        self._held_bytes += size
        if len(self._held) > MOST_HELD or self._held_bytes > MOST_HELD_BYTES:
            self._let_go()

    def _end(self, entry: Ended | Withdrawn) -> None:
        self._writer.put(self._recording, entry, 0)

    def _let_go(self) -> None:
        self._over = True
        self._held, self._marks, self._sound = [], [], []


def _weight(event: on.Event) -> int:
    """Returns about how many bytes an event and what follows from it take while they wait: what a client brings is
    there once as it came and once as it is told to everyone."""
    if isinstance(event, on.ClientSaid):
        return _STEP_BYTES + 2 * len(msgspec.json.encode(event.event))
    return _STEP_BYTES
