"""The picture of `voice`: a bar per row, made of its stages; whoever has Matplotlib may draw it."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.outcome import Row
from benchmarks.voice_turn import STAGES

_COLOURS = ("#8a8f98", "#3b6fb6", "#e08e2b", "#f2c14e", "#3f9b6d", "#b65a7a")


def draw(rows: Sequence[Row], path: Path) -> None:
    """Writes a PNG: the median of each stage, stacked, and a mark at the 95th percentile. Raises `ImportError`."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [row for row in rows if row["p50"] is not None]
    figure, axes = pyplot.subplots(figsize=(9, 2.0 + 0.36 * len(rows)), layout="constrained")
    names = [
        f"{row['server']} · {row['transport']} · {row['end of turn by']} · {row['calls']}" for row in rows
    ]
    left = [0.0] * len(rows)
    for stage, colour in zip(STAGES, _COLOURS, strict=True):
        widths = [_number(row, stage) if row in shown else 0.0 for row in rows]
        axes.barh(names, widths, left=left, color=colour, label=stage)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    late = [(index, _number(row, "p95")) for index, row in enumerate(rows) if row["p95"] is not None]
    axes.plot(
        [at for _, at in late], [index for index, _ in late], "|", color="black", markersize=11, label="p95"
    )
    for index, row in enumerate(rows):
        if row["p50"] is None:
            axes.text(0, index, " not answered in time", va="center", fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("ms from the end of speech to the first sound of the reply (stages: medians)")
    axes.legend(loc="upper right", fontsize=8)
    axes.tick_params(labelsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _number(row: Row, key: str) -> float:
    value = row[key]
    return float(value) if isinstance(value, int | float) else 0.0
