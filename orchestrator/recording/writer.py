"""The thread that writes recordings: encodes, appends, syncs. A fault of one recording ends that recording only.

What it has taken is handed to the operating system at once, in whole lines, and is safe from then on however this
process ends. `SYNC_S` later at most it is on the disk, and safe from a power cut too.
"""

import errno
import fcntl
import logging
import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from orchestrator.observability.faults import FAULTS
from orchestrator.recording import retention
from orchestrator.recording.backlog import Backlog
from orchestrator.recording.journal import JOURNAL_SUFFIX, SOUND_SUFFIX, Standing
from orchestrator.recording.scribe import Opening, Scribe
from orchestrator.recording.sound import Mark
from orchestrator.sessions.effects import Effect
from orchestrator.sessions.events import Event

log = logging.getLogger("chorale.recording")

SYNC_S = 1.0
CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Stepped:
    event: Event
    now: int
    effects: tuple[Effect, ...] | None
    standing: Standing


@dataclass(frozen=True, slots=True)
class Sounded:
    """Sound that came in, 16 kHz int16; a clip has a name instead of marks."""

    marks: tuple[Mark, ...]
    pcm: bytes
    clip: str | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    reason: str


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Nobody agrees any more: nothing of it stays."""


Entry = Stepped | Sounded | Ended | Withdrawn


@dataclass(slots=True, eq=False)
class Recording:
    """One session's files. Only the thread touches it, but for `is_over`, which others may read."""

    stem: Path
    session_id: str
    opening: Opening
    is_over: bool = False
    scribe: Scribe | None = None
    files: dict[str, int] = field(default_factory=dict)
    whole: int = 0
    lines: int = 0
    written: int = 0
    is_dirty: bool = False


@dataclass(frozen=True, slots=True)
class Room:
    """How much may be kept: bytes of one recording, of all of them, and for how many days."""

    recording_bytes: int
    folder_bytes: int
    days: float | None


class Writer:
    """Owns the thread. `start` and `close` once each; a closed writer takes nothing more."""

    def __init__(
        self, folder: Path, room: Room, backlog: Backlog[tuple[Recording, Entry]] | None = None
    ) -> None:
        self.backlog: Backlog[tuple[Recording, Entry]] = backlog or Backlog()
        self._folder = folder
        self._room = room
        self._open: dict[Path, Recording] = {}
        self._synced_s = 0.0
        self._guard = FAULTS.guard("recordings")
        self._thread = threading.Thread(target=self._run, name="recordings", daemon=True)

    def start(self) -> None:
        """Makes the folder, for its owner only, removes what is outdated, and begins. Raises `OSError`."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._clean()
        self._thread.start()

    def close(self, within_s: float) -> bool:
        """Writes what waits and ends the thread; returns whether that was done in time. Waits: not for the loop."""
        self.backlog.close()
        if self._thread.is_alive():
            self._thread.join(within_s)
        return not self._thread.is_alive()

    def put(self, recording: Recording, entry: Entry, size: int) -> bool:
        """Hands over something to be written; returns whether there was room. Never waits for the disk."""
        return self.backlog.put((recording, entry), size, is_last=isinstance(entry, Ended | Withdrawn))

    # -- the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while (entries := self.backlog.take(self._rest_s())) is not None:
            for recording, entry in entries:
                if not recording.is_over:
                    self._goes_on(recording, entry)
            if time.monotonic() - self._synced_s >= SYNC_S:
                self._sync()
        for recording in list(self._open.values()):
            self._guarded(recording, Ended("the server has ended"))

    def _rest_s(self) -> float | None:
        """Returns how long there is nothing to sync."""
        if not any(recording.is_dirty for recording in self._open.values()):
            return None
        return max(0.0, self._synced_s + SYNC_S - time.monotonic())

    def _sync(self) -> None:
        self._synced_s = time.monotonic()
        for recording in [one for one in self._open.values() if one.is_dirty]:
            recording.is_dirty = False
            try:
                for file in recording.files.values():
                    os.fsync(file)
                    if not os.fstat(file).st_nlink:
                        raise FileNotFoundError(errno.ENOENT, "its file was removed")
            except OSError as error:
                self._give_up(recording, _reason(error))

    def _goes_on(self, recording: Recording, entry: Entry) -> None:
        """Whatever is wrong with one recording ends that one: the thread writes all others."""
        with self._guard:
            self._guarded(recording, entry)
        if self._guard.failed:
            self._give_up(recording, "it could not be written down")

    def _guarded(self, recording: Recording, entry: Entry) -> None:
        try:
            self._write(recording, entry)
        except OSError as error:
            self._give_up(recording, _reason(error))
        except (msgspec.MsgspecError, TypeError, ValueError, OverflowError) as error:
            log.exception("a recording failed", extra={"session": recording.session_id})
            # What the error says may be somebody's words.
            self._give_up(recording, f"it could not be written down ({type(error).__name__})")

    def _write(self, recording: Recording, entry: Entry) -> None:
        if isinstance(entry, Withdrawn):
            self._close(recording)
            retention.remove(recording.stem)
            log.info("recording withdrawn", extra={"session": recording.session_id})
            return
        scribe = recording.scribe or self._begin(recording)
        match entry:
            case Stepped():
                line = scribe.step(entry.event, entry.now, entry.effects, entry.standing)
            case Sounded():
                line, block = scribe.sound(entry.marks, np.frombuffer(entry.pcm, "<i2"), entry.clip)
                self._append(recording, SOUND_SUFFIX, block)
            case Ended():
                self._append(recording, JOURNAL_SUFFIX, scribe.end(entry.reason))
                self._close(recording)
                return
        self._append(recording, JOURNAL_SUFFIX, line)
        if recording.written > self._room.recording_bytes:
            self._give_up(recording, f"it has reached {self._room.recording_bytes} bytes")

    def _begin(self, recording: Recording) -> Scribe:
        recording.scribe = scribe = Scribe(recording.opening)
        self._open[recording.stem] = recording
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # somebody may have removed it
        self._clean()
        for suffix in (JOURNAL_SUFFIX, SOUND_SUFFIX):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
            recording.files[suffix] = file = os.open(recording.stem.with_suffix(suffix), flags, 0o600)
            _mark(file)
        self._append(recording, JOURNAL_SUFFIX, scribe.header())
        return scribe

    def _append(self, recording: Recording, suffix: str, data: bytes) -> None:
        """Appends all of it. Raises `OSError`."""
        rest = memoryview(data)
        while rest:
            count = os.write(recording.files[suffix], rest)
            recording.written += count
            rest = rest[count:]
        if suffix == JOURNAL_SUFFIX:
            recording.whole += len(data)
            recording.lines += 1
        recording.is_dirty = True

    def _give_up(self, recording: Recording, reason: str) -> None:
        """Ends a recording before its session; says so in it, if that can still be written."""
        recording.is_over = True
        log.warning(
            "recording stopped, the session goes on",
            extra={"session": recording.session_id, "reason": reason},
        )
        journal = recording.files.get(JOURNAL_SUFFIX)
        if journal is not None and recording.scribe is not None:
            try:
                os.ftruncate(journal, recording.whole)  # without the line that had no room
                self._append(recording, JOURNAL_SUFFIX, recording.scribe.end(reason, recording.lines))
            except OSError:
                pass  # then it ends as after a crash
        self._close(recording, warns=False)

    def _close(self, recording: Recording, warns: bool = True) -> None:
        recording.is_over = True
        self._open.pop(recording.stem, None)
        files, recording.files = recording.files, {}
        for file in files.values():
            try:
                os.fsync(file)
            except OSError as error:
                if warns:  # else that is known
                    log.warning("recording not synced", extra={"reason": _reason(error)})
            finally:
                os.close(file)

    def _clean(self) -> None:
        try:
            retention.clean(
                self._folder, time.time(), self._room.days, self._room.folder_bytes, set(self._open)
            )
        except OSError as error:
            log.warning("old recordings were not removed", extra={"reason": _reason(error)})


def _mark(file: int) -> None:
    """Tells other servers with the same folder that this is being written (`retention.clean`)."""
    with suppress(OSError):  # a file system without locks
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
