"""Recordings on disk: safe when handed over, ended by their own faults only."""

import errno
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.observability.faults import FAULTS
from orchestrator.recording.backlog import Backlog
from orchestrator.recording.journal import load, standing_of
from orchestrator.recording.replay import replay
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
from orchestrator.sessions.links import LinkKind
from orchestrator.sessions.rules import SessionRules
from orchestrator.sessions.session import Session
from tests.sessions.talk import view

ROOM = Room(10**7, 10**8, None)


def recording(folder: Path, name: str = "one") -> Recording:
    return Recording(folder / name, "sess_test", Opening(view(), SessionRules(), "T", "secret", 0.0))


def steps(count: int) -> list[Stepped]:
    """What a session does with so many links that join."""
    heart = Session(view(), SessionRules(), "T", 0)
    found = []
    for number in range(count):
        event = on.LinkJoined(f"link {number}", LinkKind.WEBSOCKET)
        effects = heart.receive(event, number)
        found.append(Stepped(event, number, effects, standing_of(heart)))
    return found


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def write(writer: Writer, one: Recording, *entries: Entry) -> None:
    for entry in entries:
        assert writer.put(one, entry, 1_000)


def test_a_recording_is_written_for_its_owner_only_and_replays(tmp_path: Path) -> None:
    """Folder and files are private; what was handed over is there when the writer has closed."""
    folder = tmp_path / "recordings"
    writer = Writer(folder, ROOM)
    writer.start()
    one = recording(folder)
    write(writer, one, *steps(3), Sounded((Mark(0, 0, 2, True),), b"\1\0\2\0"), Ended(CLOSED))
    assert writer.close(30)
    assert folder.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
    journal = load(folder / "one.jsonl")
    assert (journal.end, journal.torn, replay(journal).steps, replay(journal).is_equal) == (
        CLOSED,
        False,
        3,
        True,
    )
    assert [one.pcm.tolist() for one in journal.deliveries()] == [[1, 2]]


def test_a_full_disk_stops_the_recording_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """ENOSPC within a line: the line is taken out again, the recording says why it ends, others go on."""
    writer = Writer(tmp_path, ROOM)
    writer.start()
    one, other = recording(tmp_path), recording(tmp_path, "other")
    write(writer, one, *steps(2))
    write(writer, other, *steps(1))
    real, room = os.write, [3]

    def full(file: int, data: bytes) -> int:
        if room[0] == 3 and b'"now":2' in bytes(data):
            room[0] = 2
            return real(file, bytes(data)[:20])
        if room[0] == 2:
            room[0] = 1
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(file, data)

    with caplog.at_level(logging.WARNING, "chorale.recording"):
        monkeypatch.setattr(os, "write", full)
        write(writer, one, steps(3)[2])
        write(writer, other, Ended(CLOSED))
        assert writer.close(30)
    monkeypatch.undo()
    assert one.is_over
    journal = load(tmp_path / "one.jsonl")
    assert (journal.end, replay(journal).steps) == ("No space left on device", 2)
    assert load(tmp_path / "other.jsonl").end == CLOSED
    assert [one.message for one in caplog.records] == ["recording stopped, the session goes on"]


@pytest.mark.parametrize("fault", [errno.EACCES, errno.EROFS, errno.EMFILE])
def test_a_folder_that_cannot_be_written_costs_one_warning_a_session(
    fault: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Permission taken away, a disk that became read-only, no more files: the recording never begins; others that come
    when it is over do."""
    writer = Writer(tmp_path, ROOM)
    writer.start()
    real = os.open

    def refused(path: str, flags: int, mode: int = 0o777, **more: int) -> int:
        if str(path).endswith("one.sound"):
            raise OSError(fault, os.strerror(fault))
        return real(path, flags, mode, **more)

    monkeypatch.setattr(os, "open", refused)
    one, other = recording(tmp_path), recording(tmp_path, "other")
    with caplog.at_level(logging.WARNING, "chorale.recording"):
        write(writer, one, *steps(3))
        write(writer, other, *steps(1), Ended(CLOSED))
        assert writer.close(30)
    assert [one.message for one in caplog.records] == ["recording stopped, the session goes on"]
    assert one.is_over
    assert load(tmp_path / "other.jsonl").end == CLOSED


def test_a_folder_that_is_removed_ends_what_was_in_it_and_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody writes for hours into a file that is not there any more; the next session is recorded again."""
    monkeypatch.setattr("orchestrator.recording.writer.SYNC_S", 0.0)
    folder = tmp_path / "recordings"
    writer = Writer(folder, ROOM)
    writer.start()
    one, other = recording(folder), recording(folder, "other")
    write(writer, one, *steps(1))
    until(lambda: one.lines == 2)
    shutil.rmtree(folder)
    with caplog.at_level(logging.WARNING, "chorale.recording"):
        write(writer, one, steps(2)[1])
        until(lambda: one.is_over)
        write(writer, other, *steps(1), Ended(CLOSED))
        assert writer.close(30)
    assert [one.__dict__["reason"] for one in caplog.records] == ["its file was removed"]
    assert [path.name for path in sorted(folder.iterdir())] == ["other.jsonl", "other.sound"]
    assert folder.stat().st_mode & 0o077 == 0


def test_a_name_that_is_taken_is_not_written_over(tmp_path: Path) -> None:
    """Two servers with one folder that draw the same name: the first one's recording stays whole."""
    writers = [Writer(tmp_path, ROOM), Writer(tmp_path, ROOM)]
    for writer in writers:
        writer.start()
        write(writer, recording(tmp_path), *steps(2), Ended(CLOSED))
        assert writer.close(30)
    journal = load(tmp_path / "one.jsonl")
    assert (journal.end, replay(journal).steps, replay(journal).is_equal) == (CLOSED, 2, True)


def test_a_recording_that_has_grown_too_big_ends(tmp_path: Path) -> None:
    """The bound of one recording is kept, give or take a line."""
    writer = Writer(tmp_path, Room(10_000, 10**8, None))
    writer.start()
    one = recording(tmp_path)
    write(writer, one, *steps(50))
    assert writer.close(30)
    assert one.is_over
    assert (tmp_path / "one.jsonl").stat().st_size < 12_500
    assert load(tmp_path / "one.jsonl").end == "it has reached 10000 bytes"


def test_a_withdrawn_recording_is_gone(tmp_path: Path) -> None:
    """Who takes his agreement back leaves nothing on the disk, also where nothing had been written yet."""
    writer = Writer(tmp_path, ROOM)
    writer.start()
    one, early = recording(tmp_path), recording(tmp_path, "early")
    write(writer, one, *steps(2), Withdrawn())
    write(writer, early, Withdrawn())
    assert writer.close(30)
    assert list(tmp_path.iterdir()) == []


def test_a_recording_that_is_open_when_the_server_ends_says_so(tmp_path: Path) -> None:
    """Closing the writer ends every recording in words."""
    writer = Writer(tmp_path, ROOM)
    writer.start()
    write(writer, recording(tmp_path), *steps(1))
    assert writer.close(30)
    assert load(tmp_path / "one.jsonl").end == "the server has ended"


def test_what_cannot_be_written_down_ends_that_recording_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A fault of ours in one recording is logged with its stack; the thread lives on."""
    writer = Writer(tmp_path, ROOM)
    writer.start()
    one, other = recording(tmp_path), recording(tmp_path, "other")
    (step,) = steps(1)
    odd = Stepped(on.EndAsked(object()), 0, (), step.standing)  # type: ignore[arg-type]
    write(writer, one, step, odd)
    write(writer, other, step, Ended(CLOSED))
    assert writer.close(30)
    assert load(tmp_path / "one.jsonl").end == "it could not be written down (TypeError)"
    assert load(tmp_path / "other.jsonl").end == CLOSED
    assert "a recording failed" in caplog.text


def test_putting_never_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the disk stands still, entries wait up to the bound and are refused then; the caller goes on."""
    stands, real = threading.Event(), os.write

    def slow(file: int, data: bytes) -> int:
        stands.wait(60)
        return real(file, data)

    monkeypatch.setattr(os, "write", slow)
    writer = Writer(tmp_path, ROOM, Backlog(entries=4))
    writer.start()
    one = recording(tmp_path)
    taken = [writer.put(one, step, 1) for step in steps(10)]
    assert not all(taken)
    stands.set()
    assert writer.close(30)


def test_a_fault_that_nobody_foresaw_ends_one_recording_and_not_the_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistake of ours in one recording: that one says that it ended, all others are written on."""
    before = FAULTS.counts().get("recordings", 0)
    writer = Writer(tmp_path, ROOM)
    writer.start()
    one, other = recording(tmp_path), recording(tmp_path, "other")
    write(writer, one, *steps(1))
    write(writer, other, *steps(1))
    until(lambda: one.scribe is not None and other.scribe is not None)
    assert one.scribe is not None

    def broken(*_: object) -> bytes:
        raise KeyError("nothing foreseen")

    monkeypatch.setattr(one.scribe, "step", broken)
    write(writer, one, steps(2)[1])
    write(writer, other, steps(2)[1], Ended(CLOSED))
    assert writer.close(30)
    assert one.is_over
    assert load(tmp_path / "one.jsonl").end == "it could not be written down"
    assert load(tmp_path / "other.jsonl").end == CLOSED
    assert FAULTS.counts()["recordings"] == before + 1
