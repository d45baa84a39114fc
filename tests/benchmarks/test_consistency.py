"""The benchmark of consistency: what it reads, what it may not read, and a small run on developer data."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from rich.console import Console
from typer.testing import CliRunner

from benchmarks import consistency
from benchmarks.consistency_pairs import Observer, Pair, audit, observe, read_pairs
from benchmarks.detection import at, auc
from benchmarks.fit_distance import TooFewPairs, cross_validated, features_of, fit, folds_of
from benchmarks.outcome import Outcome
from benchmarks.relation_cases import cases
from consistency.distance import distance, shipped
from consistency.features import NAMES
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
    """Of two readers; ids, prints and judgements only."""
    judged = audit()
    assert len(judged) == 300
    assert {one for both in judged.values() for one in both} == {"consistent", "inconsistent", "unclear"}


def test_audit_knows_its_pairs_by_their_texts(data: Path) -> None:
    """Other data with an id that the audit has read is other data: its judgement is not taken over."""
    id, _ = next(iter(audit()))
    row = {"id": id, "type": "natural_asr", "label": "consistent", "a": "wake me", "b": "wake me up"}
    (data / "pairs_slurp.jsonl").write_text(json.dumps(row))
    (pair,) = read_pairs(data)
    assert (pair.id, pair.judged, pair.judged_again) == (id, "", "")


def test_each_reader_of_the_audit_is_held_against_the_scores(data: Path) -> None:
    """The goals hold under either reading or not at all: there is a table row for each, and one for both."""
    pairs = [replace(pair, judged="consistent", judged_again="inconsistent") for pair in read_pairs(data)[:1]]
    pairs += [replace(pair, judged="consistent", judged_again="consistent") for pair in read_pairs(data)[1:3]]
    pairs += [pair for pair in read_pairs(data) if pair.is_hard]
    found = {
        name: (int(sure.sum()), int(truth[sure].sum())) for name, sure, truth in consistency._readings(pairs)
    }
    hard = len(pairs) - 3
    assert found == {
        "hard and audited": (3 + hard, hard),
        "hard and audited, second reader": (3 + hard, 1 + hard),
        "hard and audited, where both agree": (2 + hard, hard),
    }


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"id": "y", "type": "natural_asr", ', "line 2: expected a JSON object"),
        ("[1]", "line 2: expected a JSON object, found [1]"),
        (
            '{"id": "y", "type": "natural_asr", "label": "perhaps", "a": "x", "b": "x"}',
            'line 2, field label: expected "consistent" or "inconsistent", found "perhaps"',
        ),
        (
            '{"id": "y", "type": "natural_asr", "label": "consistent", "a": "x"}',
            "line 2, field b: expected a text, but there is no such field",
        ),
        (
            '{"id": "y", "type": "natural_asr", "label": "consistent", "a": 7, "b": "x"}',
            "line 2, field a: expected a text, found 7",
        ),
        (
            '{"id": "x0-0", "type": "natural_asr", "label": "consistent", "a": "x", "b": "x"}',
            'line 2, field id: expected each id once, found "x0-0"',
        ),
    ],
)
def test_bench_names_a_broken_line_and_goes_on_with_other_parts(data: Path, line: str, told: str) -> None:
    """File, line, field and what was expected; exit status 2, and no stack trace."""
    file = data / "pairs_slurp.jsonl"
    first, _, rest = file.read_text().partition("\n")
    file.write_text(f"{first}\n{line}\n{rest}")
    result = CliRunner().invoke(app, ["bench", "consistency", "--data", str(data)], env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert f"texts: pairs_slurp.jsonl, {told}" in result.output
    assert "dialogues: left out, " in result.output
    assert f"{data / 'clips.jsonl'} is missing" in result.output
    assert "Traceback" not in result.output


def test_fit_needs_both_classes(data: Path) -> None:
    """Where one is missing it says so, and does not fail inside."""
    pairs = [pair for pair in read_pairs(data) if pair.inconsistent]
    with pytest.raises(TooFewPairs, match="expected consistent and inconsistent pairs"):
        fit(pairs, np.zeros((len(pairs), len(NAMES))))


def test_data_that_nobody_has_read_is_judged_by_what_is_there(data: Path) -> None:
    """Planted pairs against consistent natural ones; without such all pairs; of one class only nothing."""
    quiet, pairs = Console(quiet=True), read_pairs(data)
    ((name, sure, _),) = consistency._unread(pairs, quiet)
    assert name.startswith("hard pairs")
    assert 0 < sure.sum() < len(pairs)
    ((name, sure, _),) = consistency._unread([replace(pair, type="other") for pair in pairs], quiet)
    assert name == "all pairs by their labels"
    assert sure.all()
    assert consistency._unread([pair for pair in pairs if pair.inconsistent], quiet) == []


def test_bench_knows_its_parts(data: Path) -> None:
    """A part that is misspelt is no part that is left out."""
    result = CliRunner().invoke(app, ["bench", "consistency", "--data", str(data), "--parts", "txts"])
    assert result.exit_code == 2
    assert "No part is called 'txts'" in result.output


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


@pytest.fixture(scope="module")
def measured() -> tuple[list[Pair], NDArray[np.float64]]:
    """All pairs of the developer data and their features."""
    pairs = read_pairs(Path(os.environ["CHORALE_CONSISTENCY_DATA"]))
    observer = Observer()
    for _ in observer.embed([text for pair in pairs for text in (pair.heard, pair.typed)]):
        pass
    return pairs, features_of(pairs, observer)


@pytest.mark.dialogues
@pytest.mark.real
def test_cross_validated_distance_reaches_its_goals(measured: tuple[list[Pair], NDArray[np.float64]]) -> None:
    """On hard and audited pairs, under either reading, by models fitted on all others: AUC .99; F1 .94 with false
    positives of 2 %."""
    pairs, features = measured
    scores = cross_validated(pairs, features)
    for _, sure, truth in consistency._readings(pairs):
        assert auc(scores[sure], truth[sure]) >= 0.99
        figures = at(scores[sure], truth[sure], 0.85)
        assert figures.f1 >= 0.94
        assert figures.false_positives <= 0.02


@pytest.mark.dialogues
@pytest.mark.real
def test_shipped_weights_are_those_that_the_verb_fits(
    measured: tuple[list[Pair], NDArray[np.float64]],
) -> None:
    """`make fit-consistency` makes the file that ships: D of every pair stays within .01."""
    pairs, features = measured
    again, ships = fit(pairs, features), shipped()
    assert max(abs(again.of(row) - ships.of(row)) for row in features) <= 0.01
