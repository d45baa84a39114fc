"""What a process uses, read from /proc; zeros where there is none."""

import os
from collections.abc import Sequence
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


_CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_MEMINFO = Path("/proc/meminfo")


def machine_memory(limits: Sequence[Path] = _CGROUP_LIMITS, meminfo: Path = _MEMINFO) -> int:
    """Returns the bytes that all processes here may use together: a container's bound, else the machine's memory; 0
    where neither is known."""
    found = []
    for line in _lines(meminfo):
        name, _, amount = line.partition(":")
        if name == "MemTotal" and amount:
            found.append(int(amount.split()[0]) * 1024)
    for limit in limits:
        # Version 1 writes a huge number where there is no bound, version 2 the word "max".
        found += [int(line) for line in _lines(limit) if line.isdecimal()]
    return min(found, default=0)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
