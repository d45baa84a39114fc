"""What the report on facts counts, and what it counted when it was last looked at."""

import json
from pathlib import Path

import pytest

from benchmarks.facts_report import main, report


def _pair(type_: str, a: str, b: str) -> dict[str, str]:
    return {"type": type_, "a": a, "b": b}


def test_report_counts_conflicts_of_the_planted_kind() -> None:
    """A conflict of another kind is counted as any."""
    rows = report(
        [
            _pair("hard_number", "mute for fifteen minutes", "Mute for 50 minutes."),
            _pair("hard_number", "mute it", "unmute it"),
            _pair("natural_asr", "power off please", "Power off"),
        ]
    )
    assert [(row.type, row.pairs, row.found, row.any) for row in rows] == [
        ("hard_number", 2, 1, 2),
        ("natural_asr", 1, 0, 0),
    ]


def test_report_says_its_figures_and_writes_them(tmp_path: Path) -> None:
    """One line for each type, and the same as JSON."""
    line = json.dumps(_pair("hard_day", "how cold is it today", "how cold is it tomorrow"))
    (tmp_path / "pairs_slurp.jsonl").write_text(line + "\n", encoding="utf-8")
    said: list[str] = []
    main(["--data", str(tmp_path), "--json", str(tmp_path / "out.json")], said.append)
    assert any(one.startswith("hard_day") and "100.0%" in one for one in said)
    assert json.loads((tmp_path / "out.json").read_text())["types"]["hard_day"]["found"] == 1


@pytest.mark.dialogues
def test_facts_find_planted_contradictions_and_leave_recognised_text_alone(consistency_data: Path) -> None:
    """At least 97 of 100 numbers, days, halves of the day and negations, 92 of 100 opposites; at most 15 of 1,000 pairs
    that say the same are held against each other."""
    lines = (consistency_data / "pairs_slurp.jsonl").read_text(encoding="utf-8").splitlines()
    rows = {row.type: row for row in report([json.loads(line) for line in lines])}
    for type_ in ("hard_number", "hard_day", "hard_ampm", "hard_negation"):
        assert rows[type_].found >= 0.97 * rows[type_].pairs, type_
    assert rows["hard_polarity"].found >= 0.92 * rows["hard_polarity"].pairs
    assert rows["natural_asr"].any <= 0.015 * rows["natural_asr"].pairs
