"""Which recordings are kept: none for longer than agreed, and not more than there is room for."""

import fcntl
import logging
import os
import re
from dataclasses import dataclass
from pathlib import Path

from orchestrator.recording.journal import JOURNAL_SUFFIX, SOUND_SUFFIX

log = logging.getLogger("chorale.recording")

_S_PER_DAY = 86_400
_NAME = re.compile(r"\d{8}-\d{6}-.+")
"""What recordings are called: whatever else lies in the folder is somebody else's."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A recording on disk; `changed` is Unix time."""

    stem: Path
    changed: float
    bytes: int


def recordings(folder: Path) -> list[Kept]:
    """Returns the recordings of a folder, oldest first. A sound file without its journal counts too."""
    found: dict[Path, Kept] = {}
    for path in folder.iterdir():
        if path.suffix not in (JOURNAL_SUFFIX, SOUND_SUFFIX) or not _NAME.fullmatch(path.stem):
            continue
        try:
            state = path.stat()
        except FileNotFoundError:  # removed meanwhile
            continue
        stem = path.with_suffix("")
        before = found.get(stem, Kept(stem, 0.0, 0))
        found[stem] = Kept(stem, max(before.changed, state.st_mtime), before.bytes + state.st_size)
    return sorted(found.values(), key=lambda one: (one.changed, one.stem))


def outdated(kept: list[Kept], now: float, days: float | None, most_bytes: int) -> list[Kept]:
    """Returns what is to go: what is older than `days` (None: nothing is too old), then the oldest, until the rest has
    room in `most_bytes`."""
    old = [one for one in kept if days is not None and now - one.changed > days * _S_PER_DAY]
    gone, left = list(old), [one for one in kept if one not in old]
    total = sum(one.bytes for one in left)
    for one in left:
        if total <= most_bytes:
            break
        gone.append(one)
        total -= one.bytes
    return gone


def clean(folder: Path, now: float, days: float | None, most_bytes: int, spared: set[Path]) -> int:
    """Removes what is outdated, but for `spared` (stems that are being written) and what another server writes; returns
    how many. Raises `OSError`."""
    old = [one for one in outdated(recordings(folder), now, days, most_bytes) if one.stem not in spared]
    gone = [one for one in old if not is_being_written(one.stem)]
    for one in gone:
        remove(one.stem)
        log.info("recording removed", extra={"recording": one.stem.name, "bytes": one.bytes})
    return len(gone)


def is_being_written(stem: Path) -> bool:
    """Whether a process holds the lock on a recording's journal, as writers do."""
    try:
        file = os.open(stem.with_suffix(JOURNAL_SUFFIX), os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


def remove(stem: Path) -> None:
    """Removes a recording. Idempotent. Raises `OSError`."""
    for suffix in (JOURNAL_SUFFIX, SOUND_SUFFIX):
        stem.with_suffix(suffix).unlink(missing_ok=True)
