"""What the system tells of a process."""

import os
from pathlib import Path

from orchestrator.workers.resources import Resources, machine_memory, resources_of


def test_resources_of_this_process_are_plausible() -> None:
    """Resident memory in bytes, processor time in seconds: compared with what Python itself is told."""
    found = resources_of(os.getpid())
    times = os.times()
    assert 5_000_000 < found.memory_bytes < 1 << 40
    assert 0 < found.cpu_s <= times.user + times.system + 1.0


def test_resources_of_no_process_are_zero() -> None:
    """Dead, never started, or a system without /proc."""
    assert resources_of(None) == Resources(0, 0.0)
    assert resources_of(2**22 + 1) == Resources(0, 0.0)


def test_machine_memory_is_the_containers_where_that_is_less(tmp_path: Path) -> None:
    """Version 2 says "max" or bytes, version 1 a huge number for no bound; the smallest counts."""
    meminfo, bound, unbounded, word = (tmp_path / name for name in ("meminfo", "bound", "unbounded", "word"))
    meminfo.write_text("MemTotal:        2048 kB\nMemFree: 7 kB\n")
    bound.write_text("1000000\n")
    unbounded.write_text("9223372036854771712\n")
    word.write_text("max\n")
    assert machine_memory((word, bound), meminfo) == 1_000_000
    assert machine_memory((word, unbounded), meminfo) == 2_097_152
    assert machine_memory((tmp_path / "none",), meminfo) == 2_097_152
    assert machine_memory((tmp_path / "none",), tmp_path / "none") == 0


def test_machine_memory_of_this_machine_is_plausible() -> None:
    """More than this process has, less than a petabyte."""
    assert resources_of(os.getpid()).memory_bytes < machine_memory() < 1 << 50
