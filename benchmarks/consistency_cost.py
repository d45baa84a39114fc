"""What a verdict about two texts costs without the embedding, and that it does not grow with the session."""

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.outcome import Claim, Outcome, Row, table
from consistency.distance import TextJudge
from consistency.fingerprint import fingerprint
from consistency.observation import Observation
from modalities.text.facts import facts_and_form

UNITS = 10_000
_BOUND_MS = 3.0


def measure(pairs: Sequence[tuple[Observation, Observation]], outcome: Outcome, console: Console) -> None:
    """Times facts, comparison and fingerprint of pairs in their order, each seen for the first time, then of 10,000."""
    judge = TextJudge()
    facts_and_form("warm")
    rows: list[Row] = []
    first = _timed(judge, pairs)
    for name, part in (
        ("facts of a text", 0),
        ("relation and distance", 1),
        ("fingerprint", 2),
        ("together", 3),
    ):
        rows.append(_row(name, first[:, part]))
    outcome.tables["cost"] = rows
    console.print(table("cost of a text verdict but the embedding, ms of processor time", rows))
    together = float(np.percentile(first[:, 3], 95))
    many = [pairs[at % len(pairs)] for at in range(UNITS)] if len(pairs) > 100 else []
    outcome.claims.append(
        Claim(f"cost: p95 of a text verdict at most {_BOUND_MS:g} ms", together <= _BOUND_MS, together)
    )
    if many:
        spent = _timed(judge, many)[:, 3]
        tenth = len(spent) // 10
        early, late = float(np.median(spent[:tenth])), float(np.median(spent[-tenth:]))
        outcome.figures["ms per verdict, first and last tenth of 10,000"] = f"{early:.3f} {late:.3f}"
        outcome.claims.append(
            Claim("cost: flat over 10,000 verdicts (last tenth to first)", late <= 1.2 * early, late / early)
        )


def _timed(judge: TextJudge, pairs: Sequence[tuple[Observation, Observation]]) -> NDArray[np.float64]:
    spent = []
    for one, other in pairs:
        marks = [time.thread_time_ns()]
        facts_and_form(one.text)
        marks.append(time.thread_time_ns())
        judge.compare(one, other)
        marks.append(time.thread_time_ns())
        fingerprint(one)
        marks.append(time.thread_time_ns())
        spent.append([*np.diff(marks) / 1e6, (marks[-1] - marks[0]) / 1e6])
    return np.array(spent)


def _row(name: str, spent: NDArray[np.float64]) -> Row:
    p50, p95, p99 = np.percentile(spent, [50, 95, 99])
    return {"part": name, "p50": float(p50), "p95": float(p95), "p99": float(p99)}
