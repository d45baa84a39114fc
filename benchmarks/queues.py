"""`chorale bench queues`: four ways to keep what waits in order, and what each operation costs as more waits.

A sorted Python list (`insort`), sortedcontainers' `SortedKeyList`, a heap that skips what was removed, and a skip list.
Each is asked what the scheduler asks: add, take the first, take out any (a cancel), take out and add with a
new key, read the first eight in order. A heap cannot be read in order: it takes eight out and puts them back.
"""

import heapq
import os
import random
import time
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Annotated, Protocol

import typer
from sortedcontainers import SortedKeyList

from benchmarks.outcome import Claim, Outcome, Row, screen, table, this_machine

Key = tuple[int, float, int]
Item = tuple[Key, str]

SIZES = (100, 1_000, 10_000, 100_000)
OPERATIONS = ("add", "first", "cancel", "anew", "scan")


class Line(Protocol):
    """Items by key; keys are unique."""

    def add(self, key: Key, item: str) -> None: ...

    def remove(self, key: Key) -> None:
        """Takes out what is there under this key."""
        ...

    def first(self) -> Key:
        """Returns the smallest key."""
        ...

    def scan(self, limit: int) -> list[Key]:
        """Returns the smallest keys in order."""
        ...


class Insort:
    """One sorted list: making room moves what lies behind."""

    def __init__(self) -> None:
        self._line: list[Item] = []

    def add(self, key: Key, item: str) -> None:
        insort(self._line, (key, item))

    def remove(self, key: Key) -> None:
        del self._line[bisect_left(self._line, (key, ""))]

    def first(self) -> Key:
        return self._line[0][0]

    def scan(self, limit: int) -> list[Key]:
        return [key for key, _ in self._line[:limit]]


class Sorted:
    """sortedcontainers: a list of short sorted lists."""

    def __init__(self) -> None:
        self._line: SortedKeyList[Item, Key] = SortedKeyList(key=_key)

    def add(self, key: Key, item: str) -> None:
        self._line.add((key, item))

    def remove(self, key: Key) -> None:
        del self._line[self._line.bisect_key_left(key)]

    def first(self) -> Key:
        return self._line[0][0]

    def scan(self, limit: int) -> list[Key]:
        return [key for key, _ in self._line.islice(0, limit)]


class LazyHeap:
    """A heap and the set of what is alive in it; it is made anew where more than half is dead."""

    def __init__(self) -> None:
        self._heap: list[Item] = []
        self._alive: dict[Key, str] = {}

    def add(self, key: Key, item: str) -> None:
        self._alive[key] = item
        heapq.heappush(self._heap, (key, item))

    def remove(self, key: Key) -> None:
        del self._alive[key]
        if len(self._heap) > 2 * len(self._alive) + 64:
            self._heap = [(key, item) for key, item in self._alive.items()]
            heapq.heapify(self._heap)

    def first(self) -> Key:
        while self._heap[0][0] not in self._alive:
            heapq.heappop(self._heap)
        return self._heap[0][0]

    def scan(self, limit: int) -> list[Key]:
        found: list[Item] = []
        while self._heap and len(found) < limit:
            item = heapq.heappop(self._heap)
            if item[0] in self._alive:
                found.append(item)
        for item in found:
            heapq.heappush(self._heap, item)
        return [key for key, _ in found]


class _Node:
    __slots__ = ("item", "key", "next")

    def __init__(self, key: Key, item: str, height: int) -> None:
        self.key = key
        self.item = item
        self.next: list[_Node | None] = [None] * height


class SkipList:
    """Linked nodes with shortcuts of random height (Pugh, 1990), a quarter of them one higher."""

    _HIGHEST = 12

    def __init__(self, seed: int = 1) -> None:
        self._head = _Node((-1, 0.0, 0), "", self._HIGHEST)
        self._random = random.Random(seed)

    def add(self, key: Key, item: str) -> None:
        height = 1
        while height < self._HIGHEST and self._random.random() < 0.25:
            height += 1
        node, before = _Node(key, item, height), self._before(key)
        for level in range(height):
            node.next[level], before[level].next[level] = before[level].next[level], node

    def remove(self, key: Key) -> None:
        before = self._before(key)
        node = before[0].next[0]
        assert node is not None
        assert node.key == key
        for level, after in enumerate(node.next):
            before[level].next[level] = after

    def first(self) -> Key:
        node = self._head.next[0]
        assert node is not None
        return node.key

    def scan(self, limit: int) -> list[Key]:
        return [key for key, _ in zip(self._keys(), range(limit), strict=False)]

    def _keys(self) -> Iterator[Key]:
        node = self._head.next[0]
        while node is not None:
            yield node.key
            node = node.next[0]

    def _before(self, key: Key) -> list[_Node]:
        node, found = self._head, [self._head] * self._HIGHEST
        for level in range(self._HIGHEST - 1, -1, -1):
            while (after := node.next[level]) is not None and after.key < key:
                node = after
            found[level] = node
        return found


LINES: dict[str, Callable[[], Line]] = {
    "list and insort": Insort,
    "SortedKeyList": Sorted,
    "lazy heap": LazyHeap,
    "skip list": SkipList,
}


def measure(make: Callable[[], Line], size: int, rounds: int, seed: int = 1) -> dict[str, float]:
    """Returns nanoseconds of each operation with `size` items waiting: the median of five parts of the rounds."""
    random_, line = random.Random(seed), make()
    keys: list[Key] = [(1, random_.random(), n) for n in range(size)]
    for key in keys:
        line.add(key, "x")
    spent: dict[str, list[float]] = {name: [] for name in OPERATIONS}
    for part in range(5):
        many = max(1, rounds // 5)
        new: list[Key] = [(1, random_.random(), size + part * many + n) for n in range(many)]
        at = time.perf_counter_ns()
        for key in new:
            line.add(key, "x")
        spent["add"].append((time.perf_counter_ns() - at) / many)
        keys += new
        random_.shuffle(keys)
        gone = [keys.pop() for _ in range(many)]
        at = time.perf_counter_ns()
        for key in gone:
            line.remove(key)
        spent["cancel"].append((time.perf_counter_ns() - at) / many)
        moved = [
            (key, (1, random_.random(), key[2])) for key in (keys.pop() for _ in range(min(many, len(keys))))
        ]
        at = time.perf_counter_ns()
        for key, other in moved:
            line.remove(key)
            line.add(other, "x")
        spent["anew"].append((time.perf_counter_ns() - at) / len(moved))
        keys += [other for _, other in moved]
        at = time.perf_counter_ns()
        for _ in range(many):
            line.scan(8)
        spent["scan"].append((time.perf_counter_ns() - at) / many)
        taken: set[Key] = set()
        few = max(1, min(many, size // 10))
        at = time.perf_counter_ns()
        for _ in range(few):
            key = line.first()
            line.remove(key)
            taken.add(key)
        spent["first"].append((time.perf_counter_ns() - at) / few)
        keys = [key for key in keys if key not in taken]
        for key in taken:
            line.add(key, "x")
        keys += taken
    return {name: median(parts) for name, parts in spent.items()}


def study(sizes: tuple[int, ...], rounds: int) -> list[Row]:
    """Returns a row for every way and size; `decision` is one job's life: add, scan, first, and a cancel each tenth."""
    rows: list[Row] = []
    for size in sizes:
        for name, make in LINES.items():
            found = measure(make, size, rounds)
            whole = found["add"] + found["scan"] + found["first"] + found["cancel"] / 10
            rows.append(
                {"waiting": size, "kept in": name, **{f"{one}, ns": found[one] for one in OPERATIONS},
                 "decision, ns": whole}
            )  # fmt: skip
    return rows


def command(
    rounds: Annotated[int, typer.Option(min=50, help="Operations of each sort.")] = 5_000,
    largest: Annotated[int, typer.Option(min=100, help="How many wait at most.")] = SIZES[-1],
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """Four ways to keep what waits in order, side by side.

    \b
    Examples:
      chorale bench queues                               up to 100,000 that wait
      chorale bench queues --largest 1000 --rounds 500    quick
    """
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    with console.status("four ways"):
        rows = study(tuple(size for size in SIZES if size <= largest), rounds)
    console.print(table("What waits, in order", rows))
    outcome = Outcome("queues", {"rounds": rounds, "largest": largest}, tables={"ways": rows})
    last = {str(row["kept in"]): float(str(row["decision, ns"])) for row in rows[-len(LINES) :]}
    best = min(last, key=lambda name: last[name])
    for name, figure in last.items():
        outcome.figures[f"{name}: decision, ns"] = figure
    outcome.claims.append(
        Claim("with most that wait the server's way is the cheapest", best == "SortedKeyList", best)
    )
    outcome.show(console)
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)


def _key(item: Item) -> Key:
    return item[0]
