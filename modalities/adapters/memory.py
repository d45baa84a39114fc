"""Keeps memory that an engine has freed, so that its next call need not ask the system for pages again.

CTranslate2 allocates every intermediate result anew. The C library of Linux maps blocks of some megabytes by
themselves and gives them back at once: each call then faults all its pages in, which takes more than half of the
decoder's first step on a batch of eight (`docs/decisions/short-encoder.md`).
"""

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h
KEPT_BYTES = 512 << 20
"""Freed memory above this goes back to the system."""

_MAPPED_BYTES = 256 << 20


def keep_freed_memory() -> bool:
    """Tells the C library to keep up to `KEPT_BYTES` of freed memory in this process; False where it cannot."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # musl
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _MAPPED_BYTES)) and bool(mallopt(_TRIM_THRESHOLD, KEPT_BYTES))
