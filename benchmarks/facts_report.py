"""How often typed facts find a planted contradiction, and how often they see one where there is none.

    python -m benchmarks.facts_report --data PATH [--show hard_day:missed] [--json FILE]

PATH holds `pairs_slurp.jsonl` (default: CHORALE_CONSISTENCY_DATA). A pair counts as found where `consistency.facts`
names a conflict of the kind that was planted; `any` counts a conflict of whatever kind. Also tells what reading a text
costs.
"""

import argparse
import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from consistency.facts import conflicts
from consistency.observation import Fact
from modalities.text.facts import facts_of

_NUMERIC = {"number", "ordinal", "time", "money", "percent", "duration", "year"}
WANTED: dict[str, set[str]] = {
    "hard_number": _NUMERIC | {"date"},
    "hard_day": {"weekday", "relative_day", "date"},
    "hard_ampm": {"half_day", "time"},
    "hard_negation": {"negation"},
    "hard_polarity": {"polarity", "negation", "ordinal"},
}
"""The kinds of conflict that find each planted change."""


@dataclass(frozen=True, slots=True)
class Row:
    """One type of pairs: how many, and in how many a conflict of the right kind, and of any kind, was seen."""

    type: str
    pairs: int
    found: int
    any: int
    by_kind: dict[str, int]


def main(arguments: list[str] | None = None, say: Callable[[str], None] = print) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=os.environ.get("CHORALE_CONSISTENCY_DATA"))
    parser.add_argument("--show", help="TYPE:missed or TYPE:seen lists those pairs")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    given = parser.parse_args(arguments)
    if given.data is None:
        parser.error("where is the data? --data PATH or CHORALE_CONSISTENCY_DATA")
    lines = (given.data / "pairs_slurp.jsonl").read_text(encoding="utf-8").splitlines()
    pairs = [json.loads(line) for line in lines]
    rows = report(pairs)
    say(f"{'type':24}{'pairs':>7}{'found':>8}{'any':>8}  kinds")
    for row in rows:
        kinds = ", ".join(
            f"{kind} {count}" for kind, count in sorted(row.by_kind.items(), key=lambda one: -one[1])
        )
        found = f"{row.found / row.pairs:8.1%}" if row.type in WANTED else f"{'':8}"
        say(f"{row.type:24}{row.pairs:7}{found}{row.any / row.pairs:8.1%}  {kinds}")
    costs = cost_us(pair["b"] for pair in pairs)
    say(f"reading a text: median {costs[0]:.0f} µs, 95 % within {costs[1]:.0f} µs")
    if given.show:
        type_, _, which = given.show.partition(":")
        _show(pairs, type_, which, say)
    if given.json:
        figures = {
            row.type: {"pairs": row.pairs, "found": row.found, "any": row.any, "kinds": row.by_kind}
            for row in rows
        }
        given.json.write_text(
            json.dumps({"types": figures, "median_us": costs[0], "p95_us": costs[1]}, indent=1)
        )


def report(pairs: Iterable[dict[str, str]]) -> list[Row]:
    """Returns one row for each type of pairs, in the order of their names."""
    kinds: dict[str, list[set[str]]] = defaultdict(list)
    for pair in pairs:
        kinds[pair["type"]].append(_kinds(pair))
    return [
        Row(
            type_,
            len(seen),
            sum(bool(one & WANTED.get(type_, set())) for one in seen),
            sum(bool(one) for one in seen),
            dict(Counter(kind for one in seen for kind in one)),
        )
        for type_, seen in sorted(kinds.items())
    ]


def facts(text: str) -> tuple[Fact, ...]:
    """The facts of a text as the heart knows them."""
    return tuple(Fact(one.kind, one.value, one.start, one.stop) for one in facts_of(text))


def cost_us(texts: Iterable[str]) -> tuple[float, float]:
    """Returns median and 95th percentile of reading a text, in microseconds."""
    spent = []
    for text in texts:
        before = time.perf_counter()
        facts_of(text)
        spent.append((time.perf_counter() - before) * 1e6)
    spent.sort()
    return spent[len(spent) // 2], spent[int(len(spent) * 0.95)]


def _kinds(pair: dict[str, str]) -> set[str]:
    found = conflicts(facts(pair["a"]), facts(pair["b"]))
    return {fact.kind for both in found for fact in both if fact is not None}


def _show(pairs: list[dict[str, str]], type_: str, which: str, say: Callable[[str], None]) -> None:
    for pair in pairs:
        if pair["type"] != type_:
            continue
        found = conflicts(facts(pair["a"]), facts(pair["b"]))
        kinds = {fact.kind for both in found for fact in both if fact is not None}
        hit = bool(kinds & WANTED.get(type_, kinds)) if kinds else False
        if hit == (which == "seen"):
            told = [tuple(one and f"{one.kind}={one.value}" for one in both) for both in found]
            say(f"  {pair['a']!r} | {pair['b']!r} {told}")


if __name__ == "__main__":
    main()
