"""What a measurement leaves behind: a table on the screen and a JSON file, both with the machine's name."""

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
WIDE = 180
"""Columns of a table that goes into a file: rich takes 80 there, and cuts the figures off."""

Figure = str | int | float | bool | None
Row = Mapping[str, Figure]


@dataclass(frozen=True, slots=True)
class Machine:
    """Where it was measured. `cores` are those this process may use; `commit` ends in ``+`` over changed files."""

    processor: str
    cores: int
    memory_gib: float
    gpu: str | None
    system: str
    python: str
    commit: str

    def __str__(self) -> str:
        gpu = f", {self.gpu}" if self.gpu else ""
        size = f"{self.cores} cores, {self.memory_gib:.0f} GiB"
        return f"{self.processor}, {size}{gpu}; Python {self.python}, {self.commit}"


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence that the figures bear out or not."""

    text: str
    holds: bool
    figure: Figure


@dataclass(slots=True)
class Outcome:
    """One run of one benchmark."""

    benchmark: str
    arguments: Mapping[str, Figure]
    figures: dict[str, Figure] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    tables: dict[str, Sequence[Row]] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Every claim holds."""
        return all(claim.holds for claim in self.claims)

    def write(self, path: Path | None, machine: Machine) -> Path:
        """Writes everything as JSON to `path`, by default ``results/<benchmark>-<time>.json``; returns where."""
        now = datetime.now(UTC)
        path = path or RESULTS / f"{self.benchmark}-{now:%Y%m%d-%H%M%S}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "benchmark": self.benchmark,
            "when": now.isoformat(timespec="seconds"),
            "machine": asdict(machine),
            "arguments": self.arguments,
            "figures": self.figures,
            "claims": [asdict(claim) for claim in self.claims],
            "tables": self.tables,
        }
        path.write_text(json.dumps(content, indent=1) + "\n")
        return path

    def show(self, console: Console) -> None:
        """Prints the claims with their figures."""
        for claim in self.claims:
            mark = "[green]holds[/]" if claim.holds else "[red]fails[/]"
            console.print(f"  {mark}  {claim.text}: {shown(claim.figure)}")


def screen() -> Console:
    """Returns where tables are drawn: as wide as the terminal, `WIDE` where there is none."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDE)


def table(title: str, rows: Sequence[Row]) -> Table:
    """Returns a table of rows that have the same keys; numbers stand right."""
    drawn = Table(title=title, title_justify="left", header_style="bold")
    for key, value in rows[0].items() if rows else ():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        drawn.add_column(key, justify="right" if number else "left")
    for row in rows:
        drawn.add_row(*(shown(value) for value in row.values()))
    return drawn


def shown(value: Figure) -> str:
    """Returns a figure as people read it: three decimals at most, a dash for nothing."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    return str(value)


def this_machine() -> Machine:
    """Describes the machine that this process runs on."""
    return Machine(
        processor=_processor(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_gib=_memory_gib(),
        gpu=_said_by("nvidia-smi", "--query-gpu=name", "--format=csv,noheader"),
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        commit=_said_by("git", "-C", str(ROOT), "describe", "--always", "--dirty=+") or "no commit",
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory_gib() -> float:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError):
        return 0.0


def _said_by(*command: str) -> str | None:
    """Returns the first line that a program prints; None where it is missing or fails."""
    if shutil.which(command[0]) is None:
        return None
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    lines = done.stdout.strip().splitlines()
    return lines[0] if done.returncode == 0 and lines else None
