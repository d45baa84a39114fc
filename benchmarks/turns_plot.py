"""The trade-off as a picture: too-early ends against delay, one line for each way to end turns."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.turns_judging import Verdict


def plot(curves: Mapping[str, Sequence[Verdict]], marked: Sequence[Verdict], path: Path) -> None:
    """Draws the curves, with names at the `marked` points. Raises `ModuleNotFoundError` without matplotlib."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    for label, verdicts in curves.items():
        ordered = sorted(verdicts, key=lambda verdict: verdict.mean_ms)
        axes.plot(
            [verdict.mean_ms for verdict in ordered],
            [verdict.cuts for verdict in ordered],
            marker="o",
            label=label,
        )
    for verdict in marked:
        axes.annotate(
            verdict.name, (verdict.mean_ms, verdict.cuts), xytext=(6, 6), textcoords="offset points"
        )
    axes.set_xlabel("delay after the true end, mean, ms")
    axes.set_ylabel("ends before the speaker had finished")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.grid(alpha=0.3)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
