"""Decodes one file of sound in a process of its own, which may have so much memory and time and no more.

The file is at file descriptor 0; its pieces leave at 1, each behind a letter and its length: ``s`` is sound (int16 at
16 kHz), ``e`` why there is none, ``.`` the end.
"""

import os
import struct
import sys
from contextlib import suppress

from orchestrator.transports.media import SoundFile, Unreadable

HEAD = struct.Struct("<cI")
SOUND, REFUSED, END = b"s", b"e", b"."

MOST_MEMORY_BYTES = 256 * 2**20
"""A file of a few kilobytes can say that it holds a hundred million samples; FFmpeg makes a table of them."""

MOST_CPU_S = 300
NICENESS = 10
"""Who talks is not to hear that somebody's file is being decoded."""


def main(most_s: float) -> None:
    """Decodes the file; one that lasts longer than `most_s` is refused."""
    bound_oneself()
    try:
        with open(0, "rb", closefd=False) as file:
            sound = SoundFile(file, most_s)
            while (piece := sound.next()) is not None:
                _tell(SOUND, piece.pcm.astype("<i2", copy=False).tobytes())
    except Unreadable as error:
        _tell(REFUSED, str(error).encode())
    else:
        _tell(END, b"")


def bound_oneself() -> None:
    """Takes from this process what it is not to have; where the system has no such bounds it stays as it is."""
    try:
        import resource
    except ImportError:
        return
    os.nice(NICENESS)
    for limit, most in (
        (resource.RLIMIT_DATA, MOST_MEMORY_BYTES),
        (resource.RLIMIT_CPU, MOST_CPU_S),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        with suppress(ValueError, OSError):
            resource.setrlimit(limit, (most, most))


def _tell(letter: bytes, data: bytes) -> None:
    sys.stdout.buffer.write(HEAD.pack(letter, len(data)))
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(float(sys.argv[1]))
