import asyncio
import wave
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.hearing import Heard
from benchmarks.judging import Played
from benchmarks.playing import Journal, play_all
from benchmarks.recordings import Recording
from orchestrator.clients.recording import Samples
from tests.virtual_time import run

HEARD = Heard("turn it off", 1, "Done.", "reply", ("x: y",), 0.4, None)


class FakeDoors:
    """Answers every clip after a minute and counts how many calls there were at one time."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.pushed: list[bytes] = []

    async def play(self, sound: Samples) -> tuple[Heard, bool]:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(60)
        self.now -= 1
        return HEARD, True

    async def push(self, raw: bytes) -> tuple[Heard, bool]:
        self.pushed.append(raw)
        return HEARD, True


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[[str, bytes | None], Recording]:
    """Makes a recording of half a second, or a file of other bytes."""

    def record(name: str, raw: bytes | None = None) -> Recording:
        path = tmp_path / name
        if raw is None:
            with wave.open(str(path), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(16_000)
                file.writeframes(bytes(16_000))
        else:
            path.write_bytes(raw)
        return Recording(path, name, "command", None, "none", "en", 0.5, None, "")

    return record


def test_every_recording_is_played_once_by_so_many_calls(
    recorded: Callable[[str, bytes | None], Recording],
) -> None:
    """Three calls share ten recordings: none is left out, none played twice, never a fourth call."""
    doors, played = FakeDoors(), list[Played]()
    recordings = [recorded(f"{number}.wav", None) for number in range(10)]
    run(play_all(recordings, doors, 3, played.append))
    assert sorted(one.name for one in played) == [f"{number}.wav" for number in range(10)]
    assert doors.most == 3
    assert doors.pushed == []


def test_what_no_decoder_takes_is_pushed_as_raw_bytes(
    recorded: Callable[[str, bytes | None], Recording],
) -> None:
    """A file that is no sound goes out byte by byte, and the row says why; so does an empty one."""
    doors, played = FakeDoors(), list[Played]()
    run(play_all([recorded("text.wav", b"no sound"), recorded("empty.wav", b"")], doors, 1, played.append))
    assert doors.pushed == [b"no sound", b""]
    assert [one.refused is not None for one in played] == [True, True]


def test_a_journal_gives_back_what_was_played(tmp_path: Path) -> None:
    """A run that goes on finds every row as it was; a fresh run begins empty."""
    path = tmp_path / "results" / "speech.jsonl"
    one = Played("a.wav", "command", True, HEARD, False, "no samples")
    Journal(path, resume=False).add(one)
    assert Journal(path, resume=True).read() == {"a.wav": one}
    assert Journal(path, resume=False).read() == {}
