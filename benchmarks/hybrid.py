"""`chorale bench hybrid`: the server's queue against plain priority and plain LRU, the same arrivals, virtual time.

Bursts of 10 s at 1.5 times what the workers can do, then 20 s at a third, so that all is served at last. Definitions:
a wait is from arrival to start; the low tier's share is a seventh of what is started while all three tiers wait, less
one job for each unbroken stretch of that (shares are exact but for one job); mean waits are over all jobs of all tiers.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Annotated

import typer

from benchmarks.outcome import Claim, Outcome, Row, screen, table, this_machine
from benchmarks.queue_world import BOUNDS_S, LEVELS, Hybrid, Plain, Queue, Told, arrivals, p95, play
from orchestrator.buffers.input_queue import QueueBounds

PLACES = 16
SERVICE_S = 0.25
CAPACITY = PLACES / SERVICE_S
_MIX: Mapping[int, float] = {1: 0.5, 2: 0.3, 3: 0.2}
_NO_BOUND = QueueBounds(jobs=1_000_000, watermark=1.0)


def _rates(at_s: float) -> Mapping[int, float]:
    load = 1.5 if at_s % 30 < 10 else 1 / 3
    return {level: part * load * CAPACITY for level, part in _MIX.items()}


def study(span_s: float, seed: int) -> dict[str, Told]:
    """Returns what each rule makes of the same arrivals."""
    coming = arrivals(_rates, span_s, SERVICE_S, seed)
    rules: dict[str, Queue] = {
        "hybrid": Hybrid(_NO_BOUND),
        "plain priority": Plain("priority"),
        "plain LRU": Plain("lru"),
    }
    return {name: play(rule, coming, PLACES) for name, rule in rules.items()}


def row(name: str, told: Told) -> Row:
    """Returns the figures of one rule; waits in milliseconds."""
    waits = {level: [wait for _, wait in told.waits_s[level]] for level in LEVELS}
    every = [wait for level in LEVELS for wait in waits[level]]
    low = told.both[3] / max(1, sum(told.both.values()))
    return {
        "rule": name,
        "jobs": len(every),
        "mean wait, ms": 1000 * fmean(every or [0]),
        **{f"level {level} p95, ms": 1000 * p95(waits[level]) for level in LEVELS},
        **{
            f"level {level} in bound, %": 100
            * fmean([wait <= BOUNDS_S[level] for wait in waits[level]] or [0])
            for level in LEVELS
        },
        "silver of started while all wait, %": 100 * low,
        "started while all wait": sum(told.both.values()),
        "stretches": told.stretches,
    }


def claims(told: Mapping[str, Told]) -> list[Claim]:
    """Returns what the figures have to bear out."""
    hybrid, plain = (row(name, told[name]) for name in ("hybrid", "plain priority"))
    share = _number(hybrid["silver of started while all wait, %"])
    ratio = _number(hybrid["mean wait, ms"]) / max(_number(plain["mean wait, ms"]), 1e-9)
    started = max(1, sum(told["hybrid"].both.values()))
    least = 100 / 7 - 100 * told["hybrid"].stretches / started
    return [
        Claim(f"silver gets its seventh while all wait, but for a job a stretch ({least:.2f} %)",
              share >= least, share),
        Claim("the mean wait is within 1.15 of plain priority", ratio <= 1.15, ratio),
    ]  # fmt: skip


def command(
    span_s: Annotated[float, typer.Option("--seconds", min=30, help="Of virtual time.")] = 300,
    seed: Annotated[int, typer.Option(help="Of arrivals and service times.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """The order of jobs against plain priority and plain LRU, on virtual time.

    \b
    Examples:
      chorale bench hybrid                        ten bursts
      chorale bench hybrid --seconds 30 --seed 7   one burst, others
    """
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    with console.status("ten bursts, three rules"):
        told = study(span_s, seed)
    rows = [row(name, one) for name, one in told.items()]
    console.print(table("Rules for who is next", rows))
    outcome = Outcome("hybrid", {"seconds": span_s, "seed": seed}, tables={"rules": rows})
    outcome.claims += claims(told)
    outcome.show(console)
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)


def _number(figure: object) -> float:
    assert isinstance(figure, int | float)
    return float(figure)
