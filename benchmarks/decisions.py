"""`chorale bench decisions`: what one decision of the scheduler costs, with 100 to 100,000 jobs that wait.

Flat means: with a thousand times as many waiting, a job's way (submitted, planned, finished) costs at most as much more
as their logarithm grows, that is 2.5 times; and nothing that is done to one picked at random costs over five times as
much: it is then no longer in the processor's caches. Moving or walking all that waits would cost a hundred times. Every
session has one job that waits, a tenth of their users have just given a sign.
"""

import gc
import os
import random
import time
from collections.abc import Callable
from math import log
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from benchmarks.outcome import Claim, Outcome, Row, screen, table, this_machine
from orchestrator.buffers.input_queue import QueueBounds
from orchestrator.clock import seconds
from orchestrator.scheduling.job import Job, Tier
from orchestrator.scheduling.plan import FreeSlots
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.scheduling.work import Reply

SIZES = (100, 1_000, 10_000, 100_000)
OPERATIONS = ("submit", "plan and finish", "cancel", "reprioritise", "statistics")
PARTS = 7
_FREE = {"w": FreeSlots("llm", 1)}
_WORK = Reply(())


def measure(size: int, rounds: int, seed: int = 1) -> dict[str, float]:
    """Returns microseconds of each operation with `size` jobs waiting: the median of several parts of the rounds."""
    random_ = random.Random(seed)
    scheduler = Scheduler(QueueBounds(jobs=2 * size + 10_000, watermark=1.0))
    number, now, gone_ids = 0, seconds(1), set[str]()
    alive: list[Job] = []

    def made() -> Job:
        nonlocal number
        number += 1
        level = random_.randint(1, 3)
        return Job(f"{number}", f"s{number}", _WORK, Tier(level), level, now, now + seconds(3600))

    def submit(job: Job) -> None:
        scheduler.submit(job, now)

    def serve(_: Job) -> None:
        for one in scheduler.plan(now, _FREE).assignments:
            scheduler.finish(one.jobs[0].id, now)
            served.add(one.jobs[0].id)

    def touch(job: Job) -> None:
        scheduler.reprioritise(job.session_id, now)

    def timed(act: Callable[[Job], object], jobs: list[Job]) -> float:
        began = time.perf_counter_ns()
        for job in jobs:
            act(job)
        return (time.perf_counter_ns() - began) / len(jobs) / 1000

    for _ in range(size):
        now += max(1, seconds(60) // size)
        job = made()
        if number % 10 == 0:
            scheduler.reprioritise(job.session_id, now)
        submit(job)
        alive.append(job)
    for _ in range(size // 32 + 10):
        for one in scheduler.plan(
            now, _FREE
        ).assignments:  # what has turned late meanwhile moves, some each time
            scheduler.finish(one.jobs[0].id, now)
            gone_ids.add(one.jobs[0].id)
    alive = [job for job in alive if job.id not in gone_ids]
    spent: dict[str, list[float]] = {name: [] for name in OPERATIONS}
    many = max(1, rounds // PARTS)
    for _ in range(PARTS):
        now += seconds(0.01)
        new = [made() for _ in range(2 * many)]
        spent["submit"].append(timed(submit, new))
        alive += new
        served: set[str] = set()
        spent["plan and finish"].append(timed(serve, new[: max(1, min(many, size // 4))]))
        alive = [job for job in alive if job.id not in served]
        random_.shuffle(alive)
        gone = [alive.pop() for _ in range(many)]
        spent["cancel"].append(timed(lambda job: scheduler.cancel(job.id), gone))
        touched = alive[: min(many, len(alive))]
        spent["reprioritise"].append(timed(touch, touched))
        spent["statistics"].append(timed(lambda _: scheduler.statistics(), touched[:20]))
    return {name: median(parts) for name, parts in spent.items()}


def study(sizes: tuple[int, ...], rounds: int) -> list[Row]:
    """Returns a row for each number of waiting jobs."""
    rows: list[Row] = []
    for size in sizes:
        gc.collect()
        gc.freeze()
        rows.append({"waiting": size, **{f"{one}, µs": cost for one, cost in measure(size, rounds).items()}})
        gc.unfreeze()
    return rows


def claims(rows: list[Row]) -> list[Claim]:
    """Returns what the figures have to bear out."""
    first, last = rows[0], rows[-1]
    most = log(float(str(last["waiting"]))) / log(float(str(first["waiting"])))
    way = [sum(float(str(row[f"{name}, µs"])) for name in OPERATIONS[:2]) for row in (first, last)]
    found = [
        Claim(f"a job's way costs at most {most:.1f} times as much", way[1] / way[0] <= most, way[1] / way[0])
    ]
    for name in OPERATIONS:
        ratio = float(str(last[f"{name}, µs"])) / float(str(first[f"{name}, µs"]))
        found.append(Claim(f"{name}: at most 5 times as much", ratio <= 5, ratio))
    return found


def command(
    rounds: Annotated[int, typer.Option(min=50, help="Operations of each sort.")] = 3_500,
    largest: Annotated[int, typer.Option(min=1_000, help="How many wait at most.")] = SIZES[-1],
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """What one decision of the scheduler costs, as more and more waits.

    \b
    Examples:
      chorale bench decisions                               up to 100,000 that wait
      chorale bench decisions --largest 1000 --rounds 500    quick
    """
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    with console.status("deciding"):
        rows = study(tuple(size for size in SIZES if size <= largest), rounds)
    console.print(table("One decision", rows))
    outcome = Outcome("decisions", {"rounds": rounds, "largest": largest}, tables={"sizes": rows})
    outcome.claims += claims(rows)
    outcome.show(console)
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)
