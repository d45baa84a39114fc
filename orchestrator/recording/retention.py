"""Which recordings are kept: none for longer than agreed, and not more than there is room for."""

import logging
from dataclasses import dataclass
from pathlib import Path

from orchestrator.recording.journal import JOURNAL_SUFFIX, SOUND_SUFFIX

log = logging.getLogger("chorale.recording")

_S_PER_DAY = 86_400


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
        if path.suffix not in (JOURNAL_SUFFIX, SOUND_SUFFIX):
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
    """Removes what is outdated, but for `spared` (stems that are being written); returns how many. Raises `OSError`."""
    gone = [one for one in outdated(recordings(folder), now, days, most_bytes) if one.stem not in spared]
    for one in gone:
        remove(one.stem)
        log.info("recording removed", extra={"recording": one.stem.name, "bytes": one.bytes})
    return len(gone)


def remove(stem: Path) -> None:
    """Removes a recording. Idempotent. Raises `OSError`."""
    for suffix in (JOURNAL_SUFFIX, SOUND_SUFFIX):
        stem.with_suffix(suffix).unlink(missing_ok=True)
