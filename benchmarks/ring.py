"""`chorale bench ring`: the ring of a session's sound beside growing and trimmed byte buffers, and plain memory copies.

One operation is a write and a read of the newest 32 ms. Writes of 20 ms and of 3 s take turns, as a call's frames and a
file's pieces do. All ways write the same bytes, which lie in memory already.
"""

import gc
import io
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.outcome import Claim, Outcome, Row, screen, table, this_machine
from modalities.ports import Pcm
from orchestrator.buffers.ring import Ring

SMALL_BYTES, BIG_BYTES, READ_BYTES = 640, 100_000, 1_024
GOAL = 7.4
YARDSTICK = "memory copies"


def command(
    operations: Annotated[int, typer.Option(min=2, help="Writes, each with a read.")] = 10_000,
    kilobytes: Annotated[int, typer.Option(min=200, help="What the ring holds.")] = 1_024,
    rounds: Annotated[int, typer.Option(min=1, help="How often; the median counts.")] = 15,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """Sound through the ring, beside byte buffers and plain memory copies.

    \b
    Examples:
      chorale bench ring                                   10,000 operations, 1 MB
      chorale bench ring --operations 500 --rounds 2        small and quick
    """
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    seen: dict[str, list[tuple[float, int]]] = {}
    for number in range(rounds):
        for way, run in WAYS.items():
            with console.status(f"round {number + 1} of {rounds}: {way}"):
                seen.setdefault(way, []).append(measure(run, operations, kilobytes * 1_024))
    rows = [_row(way, seen, operations) for way in WAYS]
    console.print(table(f"{operations} writes with reads, {kilobytes} KB", rows))
    outcome = Outcome(
        "ring",
        {"operations": operations, "kilobytes": kilobytes, "rounds": rounds},
        tables={"ways": rows},
    )
    times = {way: statistics.median(took for took, _ in found) for way, found in seen.items()}
    against = times["BytesIO that grows"] / times["ring"]
    outcome.figures |= {
        "against BytesIO": against,
        "against bytearray": times["bytearray, front deleted"] / times["ring"],
        "share of memory copies": times[YARDSTICK] / times["ring"],
        "collections": max(collections for _, collections in seen["ring"]),
    }
    outcome.claims += [
        Claim(f"at least {GOAL} times as fast as a BytesIO that grows", against >= GOAL, against),
        Claim(
            "no collection by the ring",
            outcome.figures["collections"] == 0,
            outcome.figures["collections"],
        ),
    ]
    outcome.show(console)
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)


def measure(run: Callable[[int, int], float], operations: int, held_bytes: int) -> tuple[float, int]:
    """Returns the seconds that one way takes, and how many garbage collections fell into it."""
    gc.collect()
    before = sum(generation["collections"] for generation in gc.get_stats())
    took_s = run(operations, held_bytes)
    return took_s, sum(generation["collections"] for generation in gc.get_stats()) - before


def through_ring(operations: int, held_bytes: int) -> float:
    """Writes and reads views of a `Ring`."""
    small, big = _sounds()
    ring, samples = Ring(held_bytes // 2), READ_BYTES // 2
    began = time.perf_counter()
    for number in range(operations):
        ring.write(big if number % 2 else small)
        stop = ring.position
        ring.peek(max(0, stop - samples), stop)
    return time.perf_counter() - began


def through_bytes_io(operations: int, held_bytes: int) -> float:
    """Appends to a `BytesIO` that is never trimmed, and reads near its end."""
    small, big = (sound.tobytes() for sound in _sounds())
    buffer, stop = io.BytesIO(), 0
    began = time.perf_counter()
    for number in range(operations):
        piece = big if number % 2 else small
        buffer.seek(stop)
        buffer.write(piece)
        stop += len(piece)
        buffer.seek(max(0, stop - READ_BYTES))
        buffer.read(READ_BYTES)
    return time.perf_counter() - began


def through_bytearray(operations: int, held_bytes: int) -> float:
    """Appends to a `bytearray` and deletes at its front what is too old."""
    small, big = (sound.tobytes() for sound in _sounds())
    buffer = bytearray()
    began = time.perf_counter()
    for number in range(operations):
        buffer += big if number % 2 else small
        if len(buffer) > held_bytes:
            del buffer[: len(buffer) - held_bytes]
        bytes(buffer[-READ_BYTES:])
    return time.perf_counter() - began


def by_memory_copies(operations: int, held_bytes: int) -> float:
    """Copies the same bytes to the same places, and does nothing else."""
    small, big = _sounds()
    block: Pcm = np.zeros(held_bytes // 2, dtype=np.int16)
    at = 0
    began = time.perf_counter()
    for number in range(operations):
        piece = big if number % 2 else small
        if at + len(piece) > len(block):
            at = 0
        np.copyto(block[at : at + len(piece)], piece)
        at += len(piece)
    return time.perf_counter() - began


WAYS: dict[str, Callable[[int, int], float]] = {
    "ring": through_ring,
    "BytesIO that grows": through_bytes_io,
    "bytearray, front deleted": through_bytearray,
    YARDSTICK: by_memory_copies,
}


def _sounds() -> tuple[Pcm, Pcm]:
    small = (np.arange(SMALL_BYTES // 2) % 30_011).astype(np.int16)
    big = (np.arange(BIG_BYTES // 2) % 30_011).astype(np.int16)
    return small, big


def _row(way: str, seen: dict[str, list[tuple[float, int]]], operations: int) -> Row:
    times = [took for took, _ in seen[way]]
    middle = statistics.median(times)
    written = operations // 2 * BIG_BYTES + (operations - operations // 2) * SMALL_BYTES
    return {
        "way": way,
        "ms": middle * 1_000,
        "least": min(times) * 1_000,
        "most": max(times) * 1_000,
        "MB/s": round(written / middle / 1e6),
        "ring is faster by": middle / statistics.median(took for took, _ in seen["ring"]),
        "collections": max(collections for _, collections in seen[way]),
    }
