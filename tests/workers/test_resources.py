"""What the system tells of a process."""

import os

from orchestrator.workers.resources import Resources, resources_of


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
