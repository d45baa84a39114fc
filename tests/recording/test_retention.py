"""Which recordings leave."""

import os
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.recording.retention import Kept, clean, outdated, recordings
from orchestrator.recording.scribe import Opening
from orchestrator.recording.writer import Recording, Room, Sounded, Writer
from orchestrator.sessions.rules import SessionRules
from tests.sessions.talk import view

DAY = 86_400
PREFIX = "20270101-120000-"


def stored(folder: Path, name: str, age_days: float, now: float, size: int = 10) -> None:
    for suffix in (".jsonl", ".sound"):
        path = folder / f"{PREFIX}{name}{suffix}"
        path.write_bytes(bytes(size))
        os.utime(path, (now - age_days * DAY,) * 2)


def test_old_recordings_are_removed_with_their_sound_and_nothing_else(tmp_path: Path) -> None:
    """Older than agreed goes, both files; younger ones, those being written and foreign files stay."""
    now = 1_000 * DAY
    for name, age in (("old", 31.0), ("young", 29.0), ("running", 40.0)):
        stored(tmp_path, name, age, now)
    for foreign in ("notes.txt", "training.jsonl"):
        (tmp_path / foreign).write_text("mine")
        os.utime(tmp_path / foreign, (0, 0))
    assert clean(tmp_path, now, 30, 10**6, {tmp_path / f"{PREFIX}running"}) == 1
    assert {path.name.removeprefix(PREFIX) for path in tmp_path.iterdir()} == {
        "young.jsonl", "young.sound", "running.jsonl", "running.sound", "notes.txt", "training.jsonl",
    }  # fmt: skip
    assert clean(tmp_path, now, None, 10**6, set()) == 0


def test_the_oldest_recordings_leave_for_room(tmp_path: Path) -> None:
    """Over the bound of the folder the oldest go first, until the rest has room."""
    now = 1_000 * DAY
    for name, age in (("a", 3.0), ("b", 2.0), ("c", 1.0)):
        stored(tmp_path, name, age, now)
    clean(tmp_path, now, 30, 45, set())
    assert [one.stem.name for one in recordings(tmp_path)] == [f"{PREFIX}b", f"{PREFIX}c"]


def test_what_another_server_writes_stays(tmp_path: Path) -> None:
    """Two servers with one folder: what one of them is writing is not the other's to remove, however old it looks."""
    now = 1_000 * DAY
    writer = Writer(tmp_path, Room(10**7, 10**8, None))
    writer.start()
    one = Recording(
        tmp_path / f"{PREFIX}one", "sess_test", Opening(view(), SessionRules(), "T", "secret", 0.0)
    )
    assert writer.put(one, Sounded((), bytes(2), "clip"), 2)
    deadline = time.monotonic() + 60
    while one.lines < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    stored(tmp_path, "old", 31.0, now)
    os.utime(tmp_path / f"{PREFIX}one.jsonl", (0, 0))
    os.utime(tmp_path / f"{PREFIX}one.sound", (0, 0))
    assert clean(tmp_path, now, 30, 10**6, set()) == 1
    assert [one.stem.name for one in recordings(tmp_path)] == [f"{PREFIX}one"]
    assert writer.close(30)
    os.utime(tmp_path / f"{PREFIX}one.jsonl", (0, 0))
    assert clean(tmp_path, now, 30, 10**6, set()) == 1


def test_a_clock_that_is_set_back_removes_nothing(tmp_path: Path) -> None:
    """Recordings from what is now the future are as good as new."""
    now = 1_000 * DAY
    stored(tmp_path, "later", -400.0, now)
    assert clean(tmp_path, now, 30, 10**6, set()) == 0


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 50))), st.integers(0, 200))
def test_what_stays_has_room(found: list[tuple[int, int]], most: int) -> None:
    """Whatever there is, what stays is young enough and fits; nothing older than what stays was kept before it."""
    kept = [Kept(Path(str(n)), age, size) for n, (age, size) in enumerate(sorted(found))]
    gone = outdated(kept, 100.0 * DAY, 100 - 50 / DAY, most)
    stay = [one for one in kept if one not in gone]
    assert sum(one.bytes for one in stay) <= most
    assert all(one.changed >= 50 for one in stay)
    assert kept[len(kept) - len(stay) :] == stay
