"""Files that this process may still open: whoever begins another process looks first whether there are enough."""

import contextlib
import os

OF_A_PROCESS = 16
"""More than starting one takes: its input and output, and pipes in which it says that it runs."""


def room_for_process() -> None:
    """Raises `OSError` (EMFILE, ENFILE) where not so many files can be opened as starting a process takes.

    uvloop finds that out in the middle, and never closes what it had opened by then: files of ours that are handed over
    (an upload stays on the disk) and pipes. Who tries again and again would end up with none for anybody.
    """
    with contextlib.ExitStack() as opened:
        for _ in range(OF_A_PROCESS):
            opened.callback(os.close, os.open(os.devnull, os.O_RDONLY))
