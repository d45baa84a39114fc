"""The dialogue part of the benchmark: its figures are what they are called, and no label reaches a rule."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks import consistency_dialogues as bench
from benchmarks import dialogue_data
from benchmarks.data_files import BadData
from consistency.graph import SlotIntentGraph
from consistency.related import relation

SCHEMA = {
    "Trains": {
        "description": "Book trains",
        "intents": {
            "Find": {"description": "Find a train", "required": ["origin", "destination"], "optional": []}
        },
        "slots": {
            "origin": {"description": "City where it starts", "categorical": False, "possible_values": []},
            "destination": {
                "description": "City to which it goes",
                "categorical": False,
                "possible_values": [],
            },
        },
    }
}


def turn(index: int, text: str, slot: str, value: str, label: str, switch: bool = False) -> dict[str, object]:
    token = {"service": "Trains", "act": "inform", "intent": "Find", "slot": slot, "value": value}
    corruption = {"kind": "value_not_mentioned"} if label == "incoherent" else None
    return {
        "i": index, "speaker": "user", "text": text, "tokens": [token], "label": label, "switch": switch,
        "corruption": corruption,
    }  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two dialogues of two turns, one of them with a value that nobody said."""
    good = [
        turn(0, "from Boston", "origin", "Boston", "coherent"),
        turn(2, "to Austin", "destination", "Austin", "coherent", True),
    ]
    bad = [
        turn(0, "from Salem", "origin", "Salem", "coherent"),
        turn(2, "to Austin", "destination", "Berlin", "incoherent"),
    ]
    lines = [
        {"id": name, "modality": modality, "services": ["Trains"], "turns": turns}
        for name, modality, turns in (("a", "text", good), ("b", "speech", bad))
    ]
    (tmp_path / "dialogues.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    return tmp_path


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    """The same vector for every text."""
    return np.tile(np.array([[0.6, 0.8]], np.float32), (len(texts), 1))


def test_rows_find_the_value_that_nobody_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One alarm of four turns, none on the switch; both baselines stand beside it."""
    monkeypatch.setattr(bench, "UNITS", 20)
    heard: list[tuple[str, int, int]] = []
    rows = {str(row["what"]): row for row in bench.rows(folder, embed, lambda *step: heard.append(step))}
    ours = rows["slot-intent graph"]
    assert (ours["n"], ours["bad"], ours["AUC"], ours["F1"], ours["FPR switch"]) == (
        4,
        1,
        1.0,
        1.0,
        0.0,
    )
    assert {"reliabilities (V3w)", "largest component (V1)", "ours, speech", "ours, text"} <= rows.keys()
    assert all(tuple(row) == bench.COLUMNS for row in rows.values())
    assert ("dialogues", 2, 2) in heard
    assert heard[-1] == ("without its domain", 2, 2)
    assert all(claim.holds for claim in bench.claims(list(rows.values())) if "cost" not in claim.text)


def test_dialogues_show_no_label_to_the_rules(folder: Path) -> None:
    """The same turns with every label turned round are the same to the graph."""
    raw, ontology = dialogue_data.load(folder)
    graph = SlotIntentGraph(ontology, dialogue_data.facts, relation)
    before = [step.turn for one in dialogue_data.dialogues(raw, graph.read, None) for step in one.steps]
    for dialogue in raw:
        for one in dialogue["turns"]:  # type: ignore[attr-defined]
            one |= {"label": "incoherent", "switch": True, "corruption": {"kind": "wrong_intent"}}
    assert [
        step.turn for one in dialogue_data.dialogues(raw, graph.read, None) for step in one.steps
    ] == before


def test_auc_counts_ties_half() -> None:
    """Lower connectivity should be incoherent; a tie is worth half."""
    wrong = np.array([True, False, False])
    assert bench.auc(np.array([0.1, 0.5, 0.9]), wrong) == 1.0
    assert bench.auc(np.array([0.5, 0.5, 0.9]), wrong) == 0.75
    assert bench.auc(np.array([1.0, 0.5, 0.9]), wrong) == 0.0


@pytest.mark.dialogues
def test_graph_keeps_its_figures_on_the_developer_dialogues(consistency_data: Path) -> None:
    """Without sentence vectors, so that it takes seconds: AUC, F1 at 0.6, and legal changes of subject."""
    raw, ontology = dialogue_data.load(consistency_data)
    graph = SlotIntentGraph(ontology, dialogue_data.facts, relation, dialogue_data.TODAY)
    every = list(dialogue_data.dialogues(raw, graph.read, None))
    judged = bench.judge(every, graph, ontology, lambda _: None)
    ours, plain, component = bench.table(judged)[:3]
    assert float(str(ours["AUC"])) >= 0.99
    assert float(str(ours["F1"])) >= 0.93
    assert float(str(ours["FPR switch"])) <= 0.02
    assert float(str(ours["F1"])) > float(str(plain["F1"])) > float(str(component["F1"]))


def test_everyday_words_of_a_dialogues_own_domain_are_held_out(tmp_path: Path) -> None:
    """Judged apart, "ramen" bears out Japanese no more where the dialogue's own domain lists it; what is known of other
    domains stays, and afterwards everything is known again."""
    schema = {
        name: {
            "description": name,
            "intents": {"Find": {"description": "Find one", "required": ["kind"], "optional": []}},
            "slots": {"kind": {"description": "Kind of it", "categorical": True, "possible_values": values}},
        }
        for name, values in (("Restaurants_1", ["Japanese", "Mexican"]), ("Movies_1", ["Comedy", "Drama"]))
    }
    turns = [turn(0, "some place with ramen", "kind", "Japanese", "coherent")]
    turns[0]["tokens"][0]["service"] = "Restaurants_1"  # type: ignore[index]
    line = {"id": "a", "modality": "text", "services": ["Restaurants_1"], "turns": turns}
    (tmp_path / "dialogues.jsonl").write_text(json.dumps(line))
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    raw, ontology = dialogue_data.load(tmp_path)
    graph = SlotIntentGraph(ontology, dialogue_data.facts, relation, dialogue_data.TODAY)
    every = list(dialogue_data.dialogues(raw, graph.read, None))

    def apart(domain: str) -> float:
        return float(bench.judge_apart(every, {"a": frozenset([domain])}, ontology, lambda done: None)[0])

    known = bench.connectivities(every[0], graph, ontology)[0]
    assert apart("Restaurants") < known
    assert apart("Movies") == known
    assert bench.connectivities(every[0], graph, ontology)[0] == known


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda row: row.pop("turns"), "line 1, field turns: expected a list, but there is no such field"),
        (
            lambda row: row["turns"][0].update(label="fine"),
            'field turns[0].label: expected "coherent", "incoherent"',
        ),
        (
            lambda row: row["turns"][0].update(tokens=["x"]),
            'field turns[0].tokens[0]: expected an object, found "x"',
        ),
        (
            lambda row: row["turns"][0].update(label="incoherent"),
            "field turns[0].corruption: expected an object",
        ),
    ],
)
def test_faulty_dialogue_is_named_with_line_field_and_what_was_expected(
    tmp_path: Path, change: Callable[[Any], object], told: str
) -> None:
    """No stack trace of something that was not there."""
    row = {
        "id": "a",
        "modality": "text",
        "services": ["Trains"],
        "turns": [turn(0, "x", "origin", "x", "coherent")],
    }
    change(row)
    (tmp_path / "dialogues.jsonl").write_text(json.dumps(row))
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    with pytest.raises(BadData, match=re.escape(told)):
        dialogue_data.load(tmp_path)
