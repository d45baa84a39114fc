"""`chorale bench load-study`: which way to limit, and when. 1,000 sessions on a simulated accelerator.

Locust users hold real WebSockets to the real server; what is simulated is the accelerator in its workers, by a model
that `benchmarks/load/model.py` states. Turns arrive as a Poisson process whatever the server does, and latency counts
from the time for which a turn was meant. Every point is a server of its own. Rows are written as they come: the same
command again goes on where it was cut off. docs/load.md tells what came of it.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.load.arrivals import Plan
from benchmarks.load.journal import Journal
from benchmarks.load.options import JsonFile, LocustPython, Users
from benchmarks.load.pareto import LATENCY, draw, front, write_csv
from benchmarks.load.policies import POLICIES
from benchmarks.load.study import LOCUST_PYTHON, CannotRun, Point, measure
from benchmarks.outcome import RESULTS, Claim, Figure, Outcome, Row, screen, table, this_machine

KNEE_MS = 1_000.0
"""A rate is carried where p95 stays below, and all but 2 % of the turns end in their time."""

_KEPT_UP = 0.98
_QUICK_CAPACITY = 42.0
_SHOWN = (
    "policy", "load", "offered/s", "turns/s", "p50 ms", "p95 ms", "p99 ms", "refused", "unfinished", "other",
    "platinum p95 ms", "silver p95 ms", "silver done", "server ms/turn", "lag p99 ms", "late ms", "behind ms",
)  # fmt: skip


def command(
    policies: Annotated[str, typer.Option(help=f"Comma-separated: {', '.join(POLICIES)}.")] = "all",
    loads: Annotated[
        str, typer.Option(help="Multiples of the capacity, comma-separated.")
    ] = "0.5,0.8,1,1.5,2",
    users: Users = 1_000,
    speaking: Annotated[int, typer.Option(min=0, help="How many of them speak.")] = 20,
    seconds: Annotated[float, typer.Option(min=1, help="Counted at each point.")] = 45.0,
    capacity: Annotated[
        float | None,
        typer.Option(min=0.1, help="Turns a second; without it, the knee of `none` is measured."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="100 users, 5 s, loads 0.8 and 2.")] = False,
    real: Annotated[bool, typer.Option("--real", help="8 users on the installed models.")] = False,
    rows: Annotated[
        Path | None, typer.Option(help="Lines of JSON, one per point; what is there is not measured again.")
    ] = None,
    python: LocustPython = LOCUST_PYTHON,
    json_file: JsonFile = None,
) -> None:
    """Throughput against latency under load, by policy: 1,000 sessions on a simulated accelerator.

    \b
    Examples:
      make load                                     Locust in its environment, then the whole study (35 min)
      chorale bench load-study --quick              a minute or two, to see that it runs
      chorale bench load-study --policies none,best --loads 1,2 --capacity 40
      chorale bench load-study --real               the installed models, 8 sessions

    \b
    A picture (PNG) and a table (CSV) of the front are written beside the JSON.
    """
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    names = list(POLICIES) if policies == "all" else [name.strip() for name in policies.split(",")]
    if unknown := [name for name in names if name not in POLICIES]:
        raise typer.BadParameter(f"no such policy: {', '.join(unknown)}; known: {', '.join(POLICIES)}")
    if not python.exists():
        console.print(f"[red]{python} is not there: `make load` installs Locust[/]")
        raise typer.Exit(2)
    plan = Plan(0, users, 1.0, duration_s=seconds, speaking=min(speaking, users))
    if quick:
        plan = replace(
            plan, users=min(users, 100), speaking=min(speaking, 2), duration_s=5.0, warm_s=2.0, drain_s=5.0
        )
        loads = "0.8,2"
    if real:
        plan = replace(plan, users=min(plan.users, 8), speaking=0, max_tokens=48, drain_s=30.0)
        names = [name for name in names if name in ("none", "reference", "best")]
        loads = "0.5,1,2" if not quick else loads
    name = f"load-study{'-real' if real else ''}{'-quick' if quick else ''}"
    journal = Journal(rows or RESULTS / f"{name}.jsonl")
    try:
        known = capacity or (_QUICK_CAPACITY if quick and not real else None)
        knee = known or find_knee(journal, plan, real, python, console)
        factors = [float(load) for load in loads.split(",")]
        points = [
            Point(POLICIES[policy], load, knee, replace(plan, rate=load * knee), real)
            for load in factors
            for policy in names
        ]
        found = list(rows_of(points, journal, python, console))
    except CannotRun as fault:
        console.print(f"[red]{fault}[/]")
        raise typer.Exit(1) from None
    show(found, knee, console)
    outcome = Outcome(
        "load-study",
        {
            "users": plan.users,
            "speaking": plan.speaking,
            "seconds": plan.duration_s,
            "real": real,
            "quick": quick,
        },
        {"capacity turns/s": knee},
        claims(found),
        {"points": found, "front": front(found)},
    )
    outcome.show(console)
    written = outcome.write(json_file, machine)
    write_csv(found, written.with_suffix(".csv"))
    kind = "the installed models" if real else "a simulated accelerator"
    draw(found, written.with_suffix(".png"), f"{plan.users} sessions on {kind}; capacity {knee:.1f} turns/s")
    console.print(
        f"written to {os.path.relpath(written)}, .csv and .png; rows in {os.path.relpath(journal.path)}"
    )
    raise typer.Exit(0 if outcome.holds or quick or real else 1)


def find_knee(journal: Journal, plan: Plan, real: bool, python: Path, console: Console) -> float:
    """Returns the highest rate that a server without any policy carries, in steps of an eighth, from far below."""
    rate, knee = (1.0, 0.0) if real else (24.0, 0.0)
    steady = replace(plan, duration_s=min(20.0, plan.duration_s) if not real else plan.duration_s)
    while True:
        point = Point(POLICIES["none"], 0.0, 0.0, replace(steady, rate=rate), real)
        row = next(rows_of([point], journal, python, console))
        p95 = row[LATENCY]
        offered, done = row["offered/s"], row["turns/s"]
        assert isinstance(offered, float)
        assert isinstance(done, float)
        limit_ms = 5 * KNEE_MS if real else KNEE_MS
        if not isinstance(p95, float) or p95 > limit_ms or done < _KEPT_UP * offered:
            return knee or rate
        knee, rate = rate, round(rate * (1.5 if real else 1.125), 2)


def rows_of(points: Sequence[Point], journal: Journal, python: Path, console: Console) -> Iterator[Row]:
    """Yields the row of every point, measuring those that the journal does not have."""
    for number, point in enumerate(points):
        row = journal.find(point.key)
        if row is None:
            about = f"{point.policy.name} at {point.plan.rate:.1f} turns/s"
            with console.status(f"{number + 1} of {len(points)}: {about}"):
                row = measure(point, python)
            journal.add(point.key, row)
            console.print(
                f"[dim]{about}: {shown(row['turns/s'])} turns/s, p95 {shown(row[LATENCY])} ms, "
                f"refused {shown(row['refused'])}[/]"
            )
        yield row


def show(rows: Sequence[Row], knee: float, console: Console) -> None:
    """Prints the points."""
    console.print(f"capacity: {knee:.1f} turns a second")
    console.print(table("Load", [{name: row[name] for name in _SHOWN} for row in rows]))


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Returns what is held against the figures: the best policy at the highest load, beside none."""
    highest = max((float(str(row["load"])) for row in rows), default=0.0)
    at = {str(row["policy"]): row for row in rows if row["load"] == highest}
    if not {"none", "best"} <= at.keys():
        return []
    none, best = at["none"], at["best"]
    more = number(best["turns/s"]) / max(0.001, number(none["turns/s"]))
    sooner = number(best[LATENCY]) / max(0.001, number(none[LATENCY]))
    crossed = sum(number(row["late ms"]) > 250 or number(row["behind ms"]) > 0 for row in rows)
    return [
        Claim(f"at {highest:g}× the best policy answers at least as many turns as none", more >= 1, more),
        Claim(f"at {highest:g}× its p95 is at most a quarter of that of none", sooner <= 0.25, sooner),
        Claim("at no point were users or accelerator late themselves", crossed == 0, crossed),
    ]


def number(value: Figure) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")


def shown(value: Figure) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
