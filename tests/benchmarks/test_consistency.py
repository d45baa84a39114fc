"""The benchmark of consistency: what it reads, what it may not read, and a small run on developer data."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from benchmarks import consistency
from benchmarks.consistency_pairs import Observer, audit, observe, read_pairs
from benchmarks.detection import at, auc
from benchmarks.fit_distance import cross_validated, features_of, folds_of
from benchmarks.outcome import Outcome
from benchmarks.relation_cases import cases
from consistency.distance import distance
from orchestrator.cli.main import app

ROWS = [
    ("natural_asr", "consistent", "set an alarm for nine am tomorrow", "Set an alarm for 9 am tomorrow."),
    ("natural_asr", "consistent", "play some jazz in the kitchen please", "play some jazz in the kitchen"),
    ("natural_asr", "consistent", "remind me to call anna on friday", "remind me to call ana on friday"),
    ("natural_asr", "consistent", "what is the weather in berlin", "What's the weather in Berlin?"),
    ("natural_asr", "consistent", "add milk to my shopping list", "add milk to my shoping list"),
    ("natural_asr_error", "inconsistent", "how is last any mail", "how is lasagne made"),
    ("paraphrase", "consistent", "play a film", "start a movie"),
    ("hard_ampm", "inconsistent", "set an alarm for nine am tomorrow", "Set an alarm for 9 pm tomorrow"),
    ("hard_day", "inconsistent", "remind me to call anna on friday", "remind me to call anna on monday"),
    ("hard_polarity", "inconsistent", "turn on the lights", "turn off the lights"),
    ("different_any", "inconsistent", "turn on the lights", "who is the president of france"),
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of the data's layout with pairs only."""
    with (tmp_path / "pairs_slurp.jsonl").open("w", encoding="utf-8") as file:
        for copy in range(4):
            for at_row, (kind, label, heard, typed) in enumerate(ROWS):
                row = {"id": f"x{copy}-{at_row}", "type": kind, "label": label, "a": heard, "b": typed}
                row |= {"said": f"{heard} {copy}", "intent": f"scenario{at_row % 3}_{kind}"}
                file.write(json.dumps(row) + "\n")
    return tmp_path


def test_features_read_neither_what_was_said_nor_the_label(data: Path) -> None:
    """Only both texts count: another label, intent, type or group changes no feature."""
    pairs = read_pairs(data)
    blind = [
        replace(pair, inconsistent=not pair.inconsistent, intent="", type="other", group=0, judged="unclear")
        for pair in pairs
    ]

    class Plain(Observer):
        def __init__(self) -> None:
            self._vectors = {}

    assert np.array_equal(features_of(pairs, Plain()), features_of(blind, Plain()))


def test_folds_keep_an_utterance_together(data: Path) -> None:
    """Pairs of one recording are never on both sides of a fold; every fold has some."""
    pairs = read_pairs(data)
    folds = folds_of(pairs)
    assert all(
        len({folds[at] for at, pair in enumerate(pairs) if pair.group == group}) == 1 for group in range(11)
    )
    assert set(folds.tolist()) == set(range(5))


def test_audit_holds_300_judgements() -> None:
    """Ids and judgements only."""
    judged = audit()
    assert len(judged) == 300
    assert set(judged.values()) == {"consistent", "inconsistent", "unclear"}


def test_relation_cases_are_the_same_every_time(data: Path) -> None:
    """Cases are made of the pairs' texts alone, by a fixed seed, and cover each relation."""
    rows = [json.loads(line) for line in (data / "pairs_slurp.jsonl").read_text().splitlines()]
    made = cases(rows)
    assert made == cases(rows)
    assert {case.relation for case in made} == {"complement", "correction", "restatement", "unrelated"}


@pytest.mark.real
def test_texts_prints_every_table_and_claims(data: Path) -> None:
    """A small run fills all tables and finds the planted contradictions."""
    outcome = Outcome("consistency", {})
    consistency.texts(read_pairs(data), outcome, Console(quiet=True), cv=False)
    assert {"texts", "types", "relations", "fingerprints", "cost"} <= set(outcome.tables)
    frozen = {row["type"]: row["D > .85"] for row in outcome.tables["types"]}
    assert (
        frozen["hard_ampm"] == frozen["hard_day"] == frozen["hard_polarity"] == frozen["different_any"] == 1.0
    )
    assert frozen["natural_asr"] == 0.0


def test_bench_without_data_says_where_it_is_looked_for() -> None:
    """The option and the variable are named, and nothing is measured."""
    result = CliRunner().invoke(app, ["bench", "consistency"], env={"CHORALE_CONSISTENCY_DATA": ""})
    assert result.exit_code == 2
    assert "CHORALE_CONSISTENCY_DATA" in result.output


@pytest.mark.dialogues
def test_one_word_contradictions_of_the_developer_data_are_found(consistency_data: Path) -> None:
    """Without vectors: of the planted numbers, days, halves and negations at least .95 lie above the operating point,
    and of the natural pairs at most .04."""
    pairs = read_pairs(consistency_data)
    found: dict[str, list[bool]] = {}
    for pair in pairs:
        if pair.type in (
            "natural_asr",
            "hard_number",
            "hard_day",
            "hard_ampm",
            "hard_negation",
            "hard_polarity",
        ):
            heard = replace(observe(pair.heard), modality="speech")
            found.setdefault(pair.type, []).append(distance(heard, observe(pair.typed)) > 0.85)
    shares = {kind: sum(marks) / len(marks) for kind, marks in found.items()}
    assert shares.pop("natural_asr") <= 0.04
    assert min(shares.values()) >= 0.95, shares


@pytest.mark.dialogues
@pytest.mark.real
def test_cross_validated_distance_reaches_its_goals(consistency_data: Path) -> None:
    """On hard and audited pairs, by models fitted on all others: AUC .99; F1 .94 with false positives of 2 %."""
    pairs = read_pairs(consistency_data)
    observer = Observer()
    for _ in observer.embed([text for pair in pairs for text in (pair.heard, pair.typed)]):
        pass
    sure = np.array([pair.is_sure for pair in pairs])
    scores = cross_validated(pairs, features_of(pairs, observer))[sure]
    truth = np.array([pair.truth for pair in pairs])[sure]
    assert auc(scores, truth) >= 0.99
    figures = at(scores, truth, 0.85)
    assert figures.f1 >= 0.94
    assert figures.false_positives <= 0.02
