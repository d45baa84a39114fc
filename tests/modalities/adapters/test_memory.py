"""Freed memory is kept for the next call."""

import resource
import subprocess
import sys

import pytest

from modalities.adapters.memory import keep_freed_memory

FAULTS_OF_A_BLOCK_USED_AGAIN = """
import ctypes, resource, sys
from modalities.adapters.memory import keep_freed_memory
if sys.argv[1] == "kept":
    assert keep_freed_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
def use():
    block = libc.malloc(48 << 20)
    ctypes.memset(block, 1, 48 << 20)
    libc.free(block)
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def _faults(how: str) -> int:
    command = [sys.executable, "-c", FAULTS_OF_A_BLOCK_USED_AGAIN, how]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(not keep_freed_memory(), reason="this C library has nothing to keep freed memory with")
def test_memory_kept_is_used_again_without_asking_the_system() -> None:
    """A large block that was freed and is asked for again costs no page faults; as shipped it costs one a page or
    a huge page."""
    assert _faults("kept") < (48 << 20) // resource.getpagesize() // 512
    assert _faults("as shipped") > _faults("kept")
