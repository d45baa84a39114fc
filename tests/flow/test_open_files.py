"""Where there are no files to open left, whoever begins a process is told so before it has begun anything."""

import asyncio
import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop

from orchestrator.flow.open_files import OF_A_PROCESS, room_for_process

OPEN = Path("/proc/self/fd")


@contextlib.contextmanager
def room_for(count: int) -> Iterator[None]:
    """Leaves so many files that can be opened, and no more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(int(one.name) for one in OPEN.iterdir()) + 2 * OF_A_PROCESS
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    taken: list[int] = []
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(count):
            os.close(taken.pop())
        yield
    finally:
        for one in taken:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("count", range(OF_A_PROCESS))
def test_too_few_files_for_a_process_are_found_out_at_no_cost(count: int) -> None:
    """However many are left: they are left afterwards."""
    before = len(os.listdir(OPEN))
    with room_for(count), pytest.raises(OSError, match="open files"):
        room_for_process()
    assert len(os.listdir(OPEN)) == before


def test_where_there_is_room_a_process_begins() -> None:
    """So many files are enough for one with pipes, whatever else is full; none of them stays open."""

    async def begun() -> None:
        room_for_process()
        process = await asyncio.create_subprocess_exec(
            *("sh", "-c", "cat"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert await process.communicate() == (b"", b"")

    async def main() -> None:
        await begun()  # what uvloop opens for its first process it may keep
        before = len(os.listdir(OPEN))
        with room_for(OF_A_PROCESS):
            await begun()
        assert len(os.listdir(OPEN)) <= before

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
