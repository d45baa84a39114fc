"""`chorale bench soak`: half an hour at 80 % of the capacity: do memory, open tasks and latency stay where they are?

The server, the simulated accelerator and the users are those of `chorale bench load-study`, with the policy `best`.
Every session ends after ten turns and its user opens another, so that sessions come and go all the time. What is held
against the figures is the last third beside the second; the first is for caches and pools to fill.
"""

import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.load.arrivals import Plan, Seen, percentile
from benchmarks.load.options import JsonFile, LocustPython, Users
from benchmarks.load.policies import POLICIES, TIERS, common, stacked
from benchmarks.load.study import LOCUST_PYTHON, CannotRun, crowd, key_of, latencies, serving
from benchmarks.outcome import RESULTS, Claim, Outcome, Row, screen, table, this_machine

SAMPLE_EVERY_S = 5.0
TURNS_PER_SESSION = 10
CAPACITY = 42.0
"""Turns a second that the simulated accelerator carries with its default numbers (docs/load.md)."""

MOST_GROWTH = {"memory MiB": 1.05, "tasks": 1.03, "blocks": 1.05, "p95 ms": 1.25}
"""What the last third may be of the second, at most."""

MIB = 1 << 20


def command(
    minutes: Annotated[float, typer.Option(min=0.1, help="How long.")] = 30.0,
    users: Users = 1_000,
    capacity: Annotated[
        float, typer.Option(min=0.1, help="Turns a second; four fifths of it arrive.")
    ] = CAPACITY,
    policy: Annotated[str, typer.Option(help=f"One of {', '.join(POLICIES)}.")] = "best",
    quick: Annotated[bool, typer.Option("--quick", help="50 users, one minute.")] = False,
    rows: Annotated[
        Path | None, typer.Option(help="Samples of the server, one line each, as they come.")
    ] = None,
    python: LocustPython = LOCUST_PYTHON,
    json_file: JsonFile = None,
) -> None:
    """Half an hour at 80 % load: memory, open tasks and latency stay flat.

    \b
    Examples:
      chorale bench soak                  1,000 sessions, half an hour
      chorale bench soak --quick          a minute, to see that it runs
    """
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    if policy not in POLICIES:
        raise typer.BadParameter(f"no such policy: {policy}")
    if not python.exists():
        console.print(f"[red]{python} is not there: `make load` installs Locust[/]")
        raise typer.Exit(2)
    if quick:
        minutes, users = min(minutes, 1.0), min(users, 50)
    plan = Plan(
        0, users, 0.8 * capacity * min(1.0, users / 500), warm_s=5.0, duration_s=60 * minutes,
        turns_per_session=TURNS_PER_SESSION, keys=tuple(map(key_of, TIERS)),
    )  # fmt: skip
    lines = rows or RESULTS / f"soak{'-quick' if quick else ''}.jsonl"
    samples: list[dict[str, Any]] = []
    try:
        with console.status(f"{minutes:g} minutes at {plan.rate:.1f} turns/s; samples go to {lines}"):
            seen = soak(plan, policy, capacity, python, lines, samples)
    except CannotRun as fault:
        console.print(f"[red]{fault}[/]")
        raise typer.Exit(1) from None
    told = by_minute(plan, seen, samples)
    console.print(table("Minute by minute", told))
    outcome = Outcome(
        "soak",
        {"minutes": minutes, "users": users, "turns/s": plan.rate, "policy": policy},
        {"turns": len(seen.turns), "faults": len(seen.faults)},
        claims(told),
        {"minutes": told},
    )
    outcome.show(console)
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds or quick else 1)


def soak(
    plan: Plan, policy: str, capacity: float, python: Path, lines: Path, samples: list[dict[str, Any]]
) -> Seen:
    """Runs the plan; adds what the server uses every few seconds to `samples`, and to the file as it comes. Raises
    `CannotRun`."""
    lines.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="chorale-soak-") as place, lines.open("w") as file:
        tree = stacked(common(plan.seed), POLICIES[policy].settings(capacity))
        with serving(tree, Path(place)) as server:
            began_s = time.monotonic()

            def watch() -> None:
                while (at_s := time.monotonic() - began_s) < plan.until_s:
                    samples.append({"at_s": round(at_s, 1), **server.usage()})
                    file.write(json.dumps(samples[-1]) + "\n")
                    file.flush()
                    time.sleep(SAMPLE_EVERY_S)

            def begin() -> None:
                nonlocal began_s
                began_s = time.monotonic()
                watch()

            return crowd(replace(plan, port=server.port), Path(place), python, begin)


def by_minute(plan: Plan, seen: Seen, samples: Sequence[dict[str, Any]]) -> list[Row]:
    """Returns a row for every minute that is there as a whole."""
    rows: list[Row] = []
    for minute in range(int(plan.duration_s // 60)):
        start_s = plan.warm_s + 60 * minute
        turns = [turn for turn in seen.turns if start_s <= turn.intended_s < start_s + 60]
        of = [sample for sample in samples if start_s <= sample["at_s"] < start_s + 60]
        if not of:
            continue
        waits = latencies(turns, seen.ended_s)
        rows.append(
            {
                "minute": minute + 1,
                "turns": len(turns),
                "failed": sum(turn.outcome != "completed" for turn in turns),
                "p50 ms": percentile(waits, 0.5),
                "p95 ms": percentile(waits, 0.95),
                "memory MiB": _middle(of, "memory_bytes") / MIB,
                "workers MiB": _middle(of, "workers_memory_bytes") / MIB,
                "tasks": _middle(of, "tasks"),
                "blocks": _middle(of, "blocks"),
                "sessions": _middle(of, "sessions"),
                "lag p99 ms": _middle(of, "lag_p99_ms"),
            }
        )
    return rows


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Returns what is held against the figures; nothing where there are too few minutes for thirds."""
    third = len(rows) // 3
    if third < 1:
        return []
    found = []
    for name, most in MOST_GROWTH.items():
        second, last = (
            statistics.median(_number(row, name) for row in part)
            for part in (rows[third:-third], rows[-third:])
        )
        growth = last / max(second, 1e-9)
        found.append(
            Claim(f"{name}: the last third is at most {most:g} of the second", growth <= most, growth)
        )
    return found


def _middle(samples: Sequence[dict[str, Any]], name: str) -> float:
    return float(statistics.median(sample[name] for sample in samples))


def _number(row: Row, name: str) -> float:
    value = row[name]
    return float(value) if isinstance(value, int | float) else 0.0
