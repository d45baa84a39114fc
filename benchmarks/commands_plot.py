"""The picture of `commands`: wrong slots with the engine and without it, by how a command came in and by noise."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.outcome import Row

_ARMS = (
    ("off", "#8a8f98", "without the engine"),
    ("later", "#f2c14e", "with it"),
    ("ask", "#3f9b6d", "with leave to ask"),
)


def draw(rows: Sequence[Row], path: Path) -> None:
    """Writes a PNG: wrong slots of a hundred that were meant, three bars a row. Raises `ImportError`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 1.2 + 0.42 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    for number, (arm, colour, label) in enumerate(_ARMS):
        heights = [100 * _number(row, f"wrong, {arm}") / max(1.0, _number(row, "slots")) for row in rows]
        places = [at + 0.27 * (number - 1) for at in range(len(rows))]
        axes.barh(places, heights, height=0.25, color=colour, label=label)
    axes.set_yticks(range(len(rows)), [f"{row['commands']} ({row['n']})" for row in rows], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("wrong slots committed, of a hundred that were meant")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="lower right", fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _number(row: Row, key: str) -> float:
    value = row[key]
    return float(value) if isinstance(value, int | float) else 0.0
