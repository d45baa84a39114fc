"""The dialogue part of the benchmark: its figures are what they are called, and no label reaches a rule."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks import consistency_dialogues as bench
from benchmarks import dialogue_data
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
    assert heard[-1] == ("dialogues", 2, 2)
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
