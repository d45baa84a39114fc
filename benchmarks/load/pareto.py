"""The Pareto front of throughput against latency: points that no other beats in both, as CSV and as a picture."""

import csv
from collections.abc import Sequence
from pathlib import Path

from benchmarks.outcome import Row

THROUGHPUT, LATENCY = "turns/s", "p95 ms"

_COLOURS = {
    "none": "#8a8f98", "token bucket": "#c65b4e", "sliding window": "#d98e32", "fused": "#c9b037",
    "reference": "#5b8fd9", "best": "#3f9b6d",
}  # fmt: skip


def front(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows than which no other has at least the throughput at no more latency and is better in one, by
    ascending throughput. A row without latency has answered nothing and is on no front."""
    known = [row for row in rows if row[LATENCY] is not None]
    best = [row for row in known if not any(_beats(other, row) for other in known)]
    return sorted(best, key=lambda row: (_figure(row, THROUGHPUT), _figure(row, LATENCY)))


def write_csv(rows: Sequence[Row], path: Path) -> None:
    """Writes all rows with a column ``front``: ``all`` for those on the front of all policies, ``own`` for those on the
    front of their policy only."""
    of_all = {id(row) for row in front(rows)}
    of_own = {
        id(row)
        for policy in policies(rows)
        for row in front([one for one in rows if one["policy"] == policy])
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*(rows[0] if rows else ()), "front"])
        for row in rows:
            where = "all" if id(row) in of_all else "own" if id(row) in of_own else ""
            writer.writerow([*(_rounded(value) for value in row.values()), where])


def draw(rows: Sequence[Row], path: Path, about: str) -> None:
    """Writes a PNG: a line per policy through its loads, and the front of all. Raises `ImportError`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.add_subplot()
    for policy in policies(rows):
        of = [row for row in rows if row["policy"] == policy and row[LATENCY] is not None]
        colour = _COLOURS.get(policy)
        throughputs, latencies = _both(of)
        axes.plot(throughputs, latencies, marker="o", markersize=5, linewidth=1.2, color=colour, label=policy)
        for row in of:
            place = (_figure(row, THROUGHPUT), _figure(row, LATENCY))
            axes.annotate(
                f"{row['load']}×", place, (4, 4), textcoords="offset points", fontsize=7, color=colour
            )
    axes.plot(*_both(front(rows)), color="#222222", linewidth=5, alpha=0.15, zorder=0, label="front of all")
    axes.set_yscale("log")
    axes.set_xlabel("turns answered per second")
    axes.set_ylabel("p95 from the intended time to the first text, ms")
    axes.set_title(about, fontsize=9, loc="left")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def policies(rows: Sequence[Row]) -> list[str]:
    """Returns the policies that have rows, in the order of their first."""
    return list(dict.fromkeys(str(row["policy"]) for row in rows))


def _beats(other: Row, row: Row) -> bool:
    more = _figure(other, THROUGHPUT) - _figure(row, THROUGHPUT)
    sooner = _figure(row, LATENCY) - _figure(other, LATENCY)
    return more >= 0 and sooner >= 0 and more + sooner > 0


def _both(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    return [_figure(row, THROUGHPUT) for row in rows], [_figure(row, LATENCY) for row in rows]


def _figure(row: Row, key: str) -> float:
    value = row[key]
    return float(value) if isinstance(value, int | float) else float("nan")


def _rounded(value: object) -> object:
    return round(value, 3) if isinstance(value, float) else value
