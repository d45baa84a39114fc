"""What a process uses, read from /proc; zeros where there is none."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Resources:
    """Resident memory, and processor time in user and system mode since the start."""

    memory_bytes: int = 0
    cpu_s: float = 0.0


def resources_of(pid: int | None) -> Resources:
    """Returns what a living process uses now."""
    if pid is None:
        return Resources()
    try:
        # Fields 14, 15 and 24 of proc(5), counted behind the command's closing bracket: it may hold spaces.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return Resources()
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    return Resources(
        int(fields[21]) * os.sysconf("SC_PAGE_SIZE"), (int(fields[11]) + int(fields[12])) / ticks_per_s
    )
