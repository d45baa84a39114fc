"""The pieces of a file of sound, decoded in a process of its own (`sound_child`): a file that would fill the memory, or
bring a decoder down, ends that process and is refused."""

import asyncio
import logging
import os
import sys
from collections.abc import AsyncGenerator
from typing import BinaryIO

import numpy as np

from orchestrator.errors import Overloaded
from orchestrator.flow.open_files import room_for_process
from orchestrator.transports.media import Piece, Unreadable
from orchestrator.transports.sound_child import HEAD, REFUSED, SOUND

log = logging.getLogger(__name__)

PIECE_WITHIN_S = 120.0
"""How long a piece may take to decode."""

_RETRY_AFTER_S = 5.0
_LARGEST_BYTES = 4 * 2**20
_KEPT = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "HOME", "LANG", "SYSTEMROOT")
"""What a decoder needs of the server's environment: no keys are among it."""


async def decoded(file: BinaryIO, most_s: float) -> AsyncGenerator[Piece, None]:
    """Yields piece after piece of a file, which is closed then: the process has it. Leaving the iteration ends the
    process. It decodes no further than one piece ahead. Raises `Unreadable`, and `Overloaded` where there is no room
    for it on the disk, or for another process."""
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    try:
        room_for_process()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "orchestrator.transports.sound_child",
            str(most_s),
            stdin=file.fileno(),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={**environment, "OPENBLAS_NUM_THREADS": "1"},
        )
    except OSError as error:
        raise no_room(error) from None
    finally:
        file.close()
    try:
        start = 0
        while (pcm := await _piece(process)) is not None:
            yield Piece(start, np.frombuffer(pcm, dtype="<i2"))
            start += len(pcm) // 2
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def no_room(error: OSError) -> Overloaded:
    """Tells the log why a file cannot be taken now, and returns what its client is told."""
    log.warning("no room for a file: %s", error.strerror)
    return Overloaded("there is no room for a file now", _RETRY_AFTER_S)


async def _piece(process: asyncio.subprocess.Process) -> bytes | None:
    """Returns the next piece, None behind the last one."""
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PIECE_WITHIN_S):
            letter, size = HEAD.unpack(await process.stdout.readexactly(HEAD.size))
            if size > _LARGEST_BYTES:
                raise Unreadable("The file cannot be decoded.")
            data = await process.stdout.readexactly(size)
    except (asyncio.IncompleteReadError, TimeoutError):
        raise Unreadable("The file cannot be decoded.") from None
    if letter == REFUSED:
        raise Unreadable(data.decode())
    return data if letter == SOUND else None
