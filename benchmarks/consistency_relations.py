"""How often the relation of two texts is told right, on utterances split, recombined, corrected and paired."""

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from rich.console import Console

from benchmarks.consistency_pairs import Pair, observe
from benchmarks.fit_distance import OPERATING_POINT
from benchmarks.outcome import Claim, Outcome, Row, table
from benchmarks.relation_cases import cases
from consistency.distance import TextJudge
from consistency.judge import Relation


def measure(pairs: Sequence[Pair], outcome: Outcome, console: Console) -> None:
    """Adds a table of relations, and the claim that complements do not freeze."""
    rows = [{"a": one.heard, "b": one.typed, "type": one.type, "intent": one.intent} for one in pairs]
    judge = TextJudge()
    told: Counter[tuple[str, str, str]] = Counter()
    frozen: Counter[tuple[str, str]] = Counter()
    for case in cases(rows):
        found = judge.compare(observe(case.earlier), observe(case.later))
        told[case.relation, case.how, found.relation] += 1
        frozen[case.relation, case.how] += _freezes(found.relation, found.distance)
    sorts = sorted({(relation, how) for relation, how, _ in told})
    drawn: list[Row] = []
    for relation, how in sorts:
        count = sum(told[relation, how, one] for one in get_args(Relation))
        shares = {one: told[relation, how, one] / count for one in get_args(Relation)}
        drawn.append(
            {"is": relation, "how": how, "n": count, **shares, "freezes": frozen[relation, how] / count}
        )
    outcome.tables["relations"] = drawn
    console.print(table("relations (no vectors): what share is told as what, what share freezes", drawn))
    parts = [one for one in sorts if one[0] == "complement"]
    count = sum(told[relation, how, one] for relation, how in parts for one in get_args(Relation))
    if count:
        share = sum(frozen[one] for one in parts) / count
        outcome.claims.append(Claim("relations: complements that freeze, at most 2 %", share <= 0.02, share))


def _freezes(relation: Relation, distance: float) -> bool:
    return relation == "restatement" and distance > OPERATING_POINT
