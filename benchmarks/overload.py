"""`chorale bench overload`: twice as much as the workers can do, on virtual time, with the server's scheduler.

Definitions: capacity is places / mean service time; half of what comes is silver, an eighth platinum (that is a quarter
of the capacity: under its share of 4/7 without unblocking work), the rest gold. A tier's bound is for its wait from
submission to start. A job that has not ended after 5 s is expired. Above .85 of the queue's mark silver is let in up to
its share of the mark only. An inversion is a lower level's job that starts while a higher level has waited all along,
with the lower one over its share of those starts by more than one. Jain's index is over the jobs served of sessions of
one tier that always have work, one to thirty jobs waiting each.
"""

import os
import random
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.outcome import Claim, Outcome, Row, screen, table, this_machine
from benchmarks.queue_world import BOUNDS_S, LEVELS, Hybrid, Told, arrivals, jain, p95, play
from orchestrator.buffers.input_queue import QueueBounds
from orchestrator.clock import seconds
from orchestrator.scheduling.job import Job, Tier
from orchestrator.scheduling.work import Reply

PLACES = 32
SERVICE_S = 0.25
CAPACITY = PLACES / SERVICE_S
TTL_S = 5.0
LOADS = {1: 0.25, 2: 0.75, 3: 1.0}
"""By level, in capacities."""

NAMES = {1: "platinum", 2: "gold", 3: "silver"}
SESSIONS = 20


def study(span_s: float, seed: int) -> Told:
    """Returns what becomes of everybody at twice the capacity."""
    rates = {level: load * CAPACITY for level, load in LOADS.items()}
    coming = arrivals(lambda _: rates, span_s, SERVICE_S, seed, ttl_s=TTL_S)
    return play(Hybrid(QueueBounds(), sheds=0.85), coming, PLACES)


def turns(span_s: float, seed: int) -> float:
    """Returns Jain's index of sessions of one tier that always have work, some of them thirty times as much."""
    random_ = random.Random(seed)
    depth = [random_.randint(1, 30) for _ in range(SESSIONS)]
    number, places = 0, 4
    queue = Hybrid(QueueBounds(jobs=10_000, watermark=1.0))
    served, running = dict.fromkeys(range(SESSIONS), 0), list[tuple[int, str, int]]()
    sessions: dict[str, int] = {}

    def comes(session: int, now: int) -> None:
        nonlocal number
        number += 1
        job = Job(f"{number}", f"{session}", Reply(()), Tier.GOLD, 2, now, now + seconds(3600))
        sessions[job.id] = session
        queue.scheduler.submit(job, now)

    for session, many in enumerate(depth):
        for _ in range(many + 1):
            comes(session, 0)
    now = 0
    while now < seconds(span_s):
        for id in queue.start(places - len(running), now):
            took = int(seconds(SERVICE_S) * random_.lognormvariate(-0.11, 0.47))
            running.append((now + took, id, sessions[id]))
        running.sort()
        now, id, session = running.pop(0)
        queue.end(id, now)
        served[session] += 1
        comes(session, now)
    return jain([float(many) for many in served.values()])


def rows(told: Told, span_s: float) -> list[Row]:
    """Returns a row for each tier; `first` and `last` are thirds of the time after the first 5 s."""
    found: list[Row] = []
    for level in LEVELS:
        waits = told.waits_s[level]
        third = (span_s - TTL_S) / 3
        first = [wait for at, wait in waits if TTL_S <= at < TTL_S + third]
        last = [wait for at, wait in waits if at >= span_s - third]
        found.append(
            {
                "tier": NAMES[level],
                "came, of capacity": LOADS[level],
                "started/s": len(waits) / span_s,
                "refused/s": told.refused[level] / span_s,
                "expired/s": told.expired[level] / span_s,
                "wait p95, ms": 1000 * p95([wait for _, wait in waits]),
                "first third p95, ms": 1000 * p95(first),
                "last third p95, ms": 1000 * p95(last),
                "bound, ms": 1000 * BOUNDS_S[level],
            }
        )
    return found


def claims(told: Told, fairness: float, span_s: float) -> list[Claim]:
    """Returns what the figures have to bear out."""
    platinum, _, silver = rows(told, span_s)
    wait, first, last = (
        _number(platinum[key]) for key in ("wait p95, ms", "first third p95, ms", "last third p95, ms")
    )
    moved = _number(silver["started/s"]) / CAPACITY
    return [
        Claim("platinum's p95 wait is within its bound (ms)", wait <= 1000 * BOUNDS_S[1], wait),
        Claim("and flat: last third within 1.5 of the first", last <= 1.5 * max(first, 5.0), last / max(first, 5.0)),
        Claim("platinum is not refused: lower levels cannot take its places", not told.refused[1], told.refused[1]),
        Claim("silver is refused", told.refused[3] > 0, told.refused[3]),
        Claim("silver still gets a seventh of the capacity", moved >= 0.95 / 7, moved),
        Claim("no inversion beyond a level's share", told.inversions == 0, told.inversions),
        Claim("Jain's index of sessions that always have work is .95 or more", fairness >= 0.95, fairness),
    ]  # fmt: skip


def command(
    span_s: Annotated[float, typer.Option("--seconds", min=15, help="Of virtual time.")] = 120,
    seed: Annotated[int, typer.Option(help="Of arrivals and service times.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """Twice the capacity: who is served, who is refused, and how long each tier waits. Virtual time.

    \b
    Examples:
      chorale bench overload                       two minutes
      chorale bench overload --seconds 20 --seed 7   small and quick
    """
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    with console.status("twice the capacity"):
        told = study(span_s, seed)
        fairness = turns(span_s, seed)
    shown = rows(told, span_s)
    console.print(table(f"At twice the capacity of {CAPACITY:g} jobs a second", shown))
    outcome = Outcome("overload", {"seconds": span_s, "seed": seed}, tables={"tiers": shown})
    came = told.refused[1] + told.expired[1] + len(told.waits_s[1])
    outcome.figures["platinum refused, %"] = 100 * told.refused[1] / max(1, came)
    outcome.claims += claims(told, fairness, span_s)
    outcome.show(console)
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)


def _number(figure: object) -> float:
    assert isinstance(figure, int | float)
    return float(figure)
