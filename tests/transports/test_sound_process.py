"""Files are decoded in a process of its own: what it cannot bear, the server does not notice."""

import asyncio
import errno
import io
import os
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest
import uvloop

from orchestrator.errors import Overloaded
from orchestrator.flow.open_files import OF_A_PROCESS
from orchestrator.transports import sound_child, sound_process
from orchestrator.transports.media import Piece, Unreadable
from orchestrator.transports.sound_child import MOST_MEMORY_BYTES
from orchestrator.transports.sound_process import decoded
from tests.flow.test_open_files import room_for
from tests.transports.test_media import encoded, pieces_of, tone, wav

LONG = wav(tone(50.0, 16_000), 16_000)


def on_disk(data: bytes) -> BinaryIO:
    """A file as an upload leaves it: in memory until somebody wants its descriptor."""
    file = tempfile.SpooledTemporaryFile(max_size=2**20)  # noqa: SIM115 - whoever decodes it closes it
    file.write(data)
    file.seek(0)
    return file  # type: ignore[return-value]  # it is one in all that matters


def bomb(samples: int) -> bytes:
    """A film of 19 KB whose tables say that it has so many samples of a byte each."""
    data = bytearray(encoded("mp4", "aac", tone(2.0, 48_000), 48_000))
    for name, at, values in (("stsz", 8, (1, samples)), ("stsc", 16, (samples,)), ("stts", 12, (samples,))):
        struct.pack_into(f">{len(values)}I", data, data.index(name.encode()) + at, *values)
    return bytes(data)


def children() -> set[str]:
    """The processes that this one has."""
    found: set[str] = set()
    for tasks in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        found.update(tasks.read_text().split())
    return found


def program(folder: Path, script: str) -> str:
    """A program that does this instead of decoding."""
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs `main`; whatever process it began is gone then."""
    before = children()

    async def bounded() -> None:
        async with asyncio.timeout(120):
            await main()

    asyncio.run(bounded())
    assert children() == before


async def refused(data: bytes) -> str:
    """Why a file cannot be read."""
    with pytest.raises(Unreadable) as caught:
        [piece async for piece in decoded(on_disk(data), 600.0)]
    return str(caught.value)


def test_pieces_of_a_process_are_those_of_the_file() -> None:
    """The same samples at the same places; the file is closed on our side."""

    async def main() -> None:
        file = on_disk(LONG)
        pieces = [piece async for piece in decoded(file, 600.0)]
        assert file.closed
        for piece, own in zip(pieces, pieces_of(LONG), strict=True):
            assert piece.start == own.start
            assert np.array_equal(piece.pcm, own.pcm)

    run(main)


def test_file_that_cannot_be_read_says_why() -> None:
    """In the words of who tried, from the other process."""

    async def main() -> None:
        assert "not sound in a format" in await refused(b"nonsense")
        assert "no sound" in await refused(wav(tone(0.0)))
        with pytest.raises(Unreadable, match="longer than 10 s"):
            [piece async for piece in decoded(on_disk(LONG), 10.0)]

    run(main)


def test_file_that_would_fill_the_memory_is_refused() -> None:
    """80 million samples that are not there would be a table of two gigabytes: the process may not have them."""
    with subprocess.Popen(
        [sys.executable, "-m", "orchestrator.transports.sound_child", "600"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as idle:
        assert idle.stdin is not None
        idle.stdin.close()  # what it needs for itself
        idle_kb = os.wait4(idle.pid, 0)[2].ru_maxrss
    with tempfile.TemporaryFile() as file:
        file.write(bomb(80_000_000))
        file.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator.transports.sound_child", "600"],
            stdin=file,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
    assert used.ru_maxrss < idle_kb + MOST_MEMORY_BYTES // 1024

    async def main() -> None:
        await refused(bomb(80_000_000))

    run(main)


def test_decoder_that_breaks_down_refuses_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a word, in the middle of one, or with nonsense: the server goes on."""
    for script in ("exit 1", "printf s", "printf 'sAAAAAAAA'", "kill -SEGV $$"):
        monkeypatch.setattr(sys, "executable", program(tmp_path, script))

        async def main() -> None:
            assert "cannot be decoded" in await refused(LONG)

        run(main)


def test_decoder_that_never_comes_to_an_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece that takes too long is given up, and its process with it."""
    monkeypatch.setattr(sound_process, "PIECE_WITHIN_S", 0.05)
    monkeypatch.setattr(sys, "executable", program(tmp_path, "exec sleep 100"))

    async def main() -> None:
        assert "cannot be decoded" in await refused(LONG)

    run(main)


def test_where_no_process_can_begin_its_file_is_let_go() -> None:
    """There is no room for now: nothing of the file stays open, however often it is tried."""

    async def main() -> None:
        before = len(os.listdir("/proc/self/fd"))
        for count in range(OF_A_PROCESS):
            file = on_disk(LONG)
            file.fileno()
            with room_for(count), pytest.raises(Overloaded, match="no room for a file"):
                await anext(decoded(file, 600.0))
            assert file.closed
        assert len(os.listdir("/proc/self/fd")) == before

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def test_file_that_finds_no_room_on_the_disk_is_refused_for_now() -> None:
    """It was small enough to be held in memory; the process would have needed it on the disk."""
    file = on_disk(LONG)

    def full() -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    file.fileno = full  # type: ignore[method-assign]

    async def main() -> None:
        with pytest.raises(Overloaded, match="no room for a file"):
            await anext(decoded(file, 600.0))
        assert file.closed

    run(main)


def test_decoder_ends_with_its_reader() -> None:
    """Who leaves after a piece leaves no process behind, and one who never began has none."""

    async def main() -> None:
        async with aclosing(decoded(on_disk(LONG), 600.0)) as pieces:
            assert (await anext(pieces)).start == 0
        with on_disk(LONG) as file:
            unused: AsyncGenerator[Piece, None] = decoded(file, 600.0)
            await unused.aclose()

    run(main)


def test_decoder_knows_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands in the server's environment is not the business of whoever sends a file."""
    monkeypatch.setenv("OPENAI_API_KEY", "hunter2")
    monkeypatch.setattr(sys, "executable", program(tmp_path, f"env > {tmp_path}/seen"))

    async def main() -> None:
        await refused(LONG)

    run(main)
    assert "PATH=" in (tmp_path / "seen").read_text()
    assert "hunter2" not in (tmp_path / "seen").read_text()


def test_child_tells_pieces_and_the_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Letters and lengths, as the server reads them; here without the bounds, which would be this process's own."""
    out = io.BytesIO()
    monkeypatch.setattr(sound_child, "bound_oneself", lambda: None)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, write_through=True))
    (tmp_path / "a.wav").write_bytes(wav(tone(1.0, 16_000), 16_000))
    saved = os.dup(0)
    try:
        with (tmp_path / "a.wav").open("rb") as file:
            os.dup2(file.fileno(), 0)
        sound_child.main(10.0)
    finally:
        os.dup2(saved, 0)
        os.close(saved)
    told = out.getvalue()
    assert told[: sound_child.HEAD.size] == sound_child.HEAD.pack(b"s", 32_000)
    assert told[-sound_child.HEAD.size :] == sound_child.HEAD.pack(b".", 0)
