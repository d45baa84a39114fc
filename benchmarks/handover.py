"""`chorale bench handover`: bytes from one coroutine to another, as views and as copies.

The receiver looks at the first and the last byte. *Copies*: `bytes` of what the sender has, through `asyncio.Queue`.
Measured is the time from the sender's call to the receiver's look, in turns of one event loop that has nothing else to
do.
"""

import asyncio
import gc
import os
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.outcome import Claim, Outcome, Row, screen, table, this_machine
from orchestrator.buffers.handover import Handover

GOAL = 0.25


def command(
    megabytes: Annotated[
        str, typer.Option(help="Sizes of what is handed over, comma-separated.")
    ] = "0.01,1,10",
    times: Annotated[int, typer.Option(min=10, help="Handed over in each round.")] = 500,
    rounds: Annotated[int, typer.Option(min=1, help="How often; the median of their p99 counts.")] = 5,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """Bytes from one coroutine to another: views against copies through `asyncio.Queue`.

    \b
    Examples:
      chorale bench handover                                    10 KB, 1 MB and 10 MB
      chorale bench handover --megabytes 1 --times 50 --rounds 1   small and quick
    """
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    sizes = [float(size) for size in megabytes.split(",")]
    seen: dict[tuple[float, str], list[tuple[list[float], int]]] = {}
    for number in range(rounds):
        for size in sizes:
            for way, hand_over in WAYS.items():
                with console.status(f"round {number + 1} of {rounds}: {size:g} MB, {way}"):
                    seen.setdefault((size, way), []).append(measure(hand_over, int(size * 1e6), times))
    rows = [_row(size, way, seen) for size in sizes for way in WAYS]
    console.print(table("From one coroutine to another, µs", rows))
    outcome = Outcome(
        "handover",
        {"megabytes": megabytes, "times": times, "rounds": rounds},
        tables={"ways": rows},
    )
    largest = max(sizes)
    share = _p99(seen[(largest, "views")]) / _p99(seen[(largest, "copies")])
    outcome.figures["p99 of copies"] = share
    text = f"p99 for {largest:g} MB at most {GOAL} of copies through asyncio.Queue"
    outcome.claims.append(Claim(text, share <= GOAL, share))
    outcome.show(console)
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)


def measure(
    hand_over: Callable[[memoryview, int], Awaitable[list[float]]], size: int, times: int
) -> tuple[list[float], int]:
    """Returns how long each hand-over took, in seconds, and how many garbage collections fell into them."""
    sound = memoryview(bytes(range(256)) * (-(-size // 256)))[:size]
    gc.collect()
    before = sum(generation["collections"] for generation in gc.get_stats())

    async def run() -> list[float]:
        return await hand_over(sound, times)

    took = asyncio.run(run())
    return took, sum(generation["collections"] for generation in gc.get_stats()) - before


async def as_views(sound: memoryview, times: int) -> list[float]:
    """Through a `Handover` that has room for one."""
    handover, sent, took = Handover(len(sound)), [0.0], list[float]()

    async def send() -> None:
        for number in range(times):
            sent[0] = time.perf_counter()
            await handover.put(sound)
            await _taken(took, number)

    async def receive() -> None:
        for _ in range(times):
            view = await handover.take()
            _look(view)
            took.append(time.perf_counter() - sent[0])
            handover.done(view)

    await asyncio.gather(receive(), send())
    return took


async def as_copies(sound: memoryview, times: int) -> list[float]:
    """As `bytes` of their own, through a queue that has room for one."""
    queue: asyncio.Queue[bytes] = asyncio.Queue(1)
    sent, took = [0.0], list[float]()

    async def send() -> None:
        for number in range(times):
            sent[0] = time.perf_counter()
            await queue.put(bytes(sound))
            await _taken(took, number)

    async def receive() -> None:
        for _ in range(times):
            copy = await queue.get()
            _look(memoryview(copy))
            took.append(time.perf_counter() - sent[0])

    await asyncio.gather(receive(), send())
    return took


WAYS: dict[str, Callable[[memoryview, int], Awaitable[list[float]]]] = {
    "views": as_views,
    "copies": as_copies,
}


async def _taken(took: list[float], number: int) -> None:
    """Returns once the receiver has had its look: one thing is on its way at a time."""
    while len(took) <= number:  # noqa: ASYNC110 - an event of its own would be measured with it
        await asyncio.sleep(0)


def _look(view: memoryview) -> None:
    if view[0] != 0 or view[-1] != (len(view) - 1) % 256:
        raise ValueError("something else came")


def _row(size: float, way: str, seen: dict[tuple[float, str], list[tuple[list[float], int]]]) -> Row:
    found = seen[(size, way)]
    return {
        "MB": size,
        "way": way,
        "p50": statistics.median(statistics.median(took) for took, _ in found) * 1e6,
        "p99": _p99(found) * 1e6,
        "worst": max(max(took) for took, _ in found) * 1e6,
        "p99 of copies": _p99(found) / _p99(seen[(size, "copies")]),
        "collections": max(collections for _, collections in found),
    }


def _p99(found: list[tuple[list[float], int]]) -> float:
    return statistics.median(sorted(took)[int(0.99 * (len(took) - 1))] for took, _ in found)
