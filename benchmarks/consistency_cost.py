"""What a verdict about two texts costs without the embedding; neither that nor memory grows with the session."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.outcome import Claim, Outcome, Row, table
from consistency.case import wants_of
from consistency.distance import TextJudge
from consistency.engine import ConsistencyEngine
from consistency.fingerprint import fingerprint, versioned
from consistency.observation import ForcedScore, Observation
from consistency.sound import SoundJudge
from consistency.verdict import Reheard, Scores, Verdict, WantScore
from modalities.text.facts import facts_and_form

UNITS = 10_000
_BOUND_MS = 3.0
_FLAT = 1.2
_MORE_MIB = 8.0
_TURN_US = 10_000_000
_PAGE_MIB = 4_096 / 2**20


@dataclass(frozen=True, slots=True)
class Held:
    """A session of the engine: milliseconds of processor time of each unit, and from a third of it on, when every text
    has been seen, to its end: units and observations held, and MiB of the process."""

    spent: NDArray[np.float64]
    before: tuple[int, int]
    after: tuple[int, int]
    more_mib: float


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
            Claim(
                "cost: flat over 10,000 verdicts (last tenth to first)", late <= _FLAT * early, late / early
            )
        )
        _show_session(session(pairs), outcome, console)


def _show_session(held: Held, outcome: Outcome, console: Console) -> None:
    tenth = len(held.spent) // 10
    # The first tenth sees its texts for the first time; the others see them again, as long sessions do.
    parts = [held.spent[at * tenth : (at + 1) * tenth] for at in (0, 4, 9)]
    rows = [
        _row(f"units {name} of {len(held.spent):,}", part)
        for name, part in zip(("of the first tenth", "of the fifth", "of the last"), parts, strict=True)
    ]
    outcome.tables["session"] = rows
    console.print(table("a unit that was spoken and typed, in one long session, ms of processor time", rows))
    middle, late = float(np.median(parts[1])), float(np.median(parts[2]))
    outcome.figures["held by the engine after a third and after all (units, observations)"] = (
        f"{held.before[0]}, {held.before[1]}; {held.after[0]}, {held.after[1]}"
    )
    outcome.figures["MiB more of the process since"] = f"{held.more_mib:.1f}"
    outcome.claims += [
        Claim("cost: flat over a session of 10,000 units", late <= _FLAT * middle, late / middle),
        Claim("cost: the engine holds no more at the end of it", held.after <= held.before, held.after[1]),
        Claim(
            f"cost: the process grows by at most {_MORE_MIB:g} MiB", held.more_mib <= _MORE_MIB, held.more_mib
        ),
    ]


def session(pairs: Sequence[tuple[Observation, Observation]], units: int = UNITS) -> Held:
    """Plays a conversation in which each turn is spoken and typed, and every want answered: the sound denies what was
    typed, and nothing new is heard when it is recognised again."""
    engine = ConsistencyEngine(judge=SoundJudge(TextJudge()), fingerprint=versioned)
    spent, before, mib = np.zeros(units), (0, 0), 0.0
    for at in range(units):
        if at == units // 3:
            before, mib = engine.statistics(), _resident_mib()
        heard, typed = pairs[at % len(pairs)]
        now = (at + 1) * _TURN_US
        start = time.thread_time_ns()
        verdict = engine.observe(_placed(heard, f"s{at}", now), now, at + 1)
        verdict = engine.observe(_placed(typed, f"t{at}", now + 1), now, at + 1)
        _answer(engine, verdict, now)
        spent[at] = (time.thread_time_ns() - start) / 1e6
    return Held(spent, before, engine.statistics(), _resident_mib() - mib)


def _answer(engine: ConsistencyEngine, verdict: Verdict, now: int) -> None:
    while wants := wants_of(verdict):
        for want in wants:
            if isinstance(want, WantScore):
                found = tuple(ForcedScore(text, -40.0, -4.0, -9.0, -10.0, -1.0, -2.0) for text in want.texts)
                verdict = engine.observe(Scores(want.observation_id, found, want.texts, want.rung), now)
            else:
                verdict = engine.observe(Reheard(want.observation_id, want.rung, None), now)


def _placed(one: Observation, name: str, at_us: int) -> Observation:
    return replace(one, id=name, start_us=at_us, stop_us=at_us)


def _resident_mib() -> float:
    """Memory of this process; 0 where the system does not tell it."""
    told = Path("/proc/self/statm")
    return int(told.read_text(encoding="ascii").split()[1]) * _PAGE_MIB if told.exists() else 0.0


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
