"""Sentences in words of their own, by the real embedding: how many of them are understood."""

import json
from pathlib import Path

import pytest

from benchmarks.paraphrases import domain, measure, prohibitions, sentences
from modalities.adapters.registry import build


def test_paraphrases_are_many_and_none_is_an_example() -> None:
    """At least sixty of each domain; a sentence that is an example would say nothing."""
    for name in ("default", "restaurant", "smart_home"):
        said = [*sentences("open")[name], *sentences("apart")[name]]
        assert len(said) >= 60
        assert len({one.text for one in said}) == len(said)
        examples = {example.lower() for intent in domain(name).intents for example in intent.examples}
        assert not examples & {one.text.lower() for one in said}


@pytest.mark.real
def test_paraphrases_are_understood_as_well_as_the_guide_says() -> None:
    """Both halves, with room for another build of the model: the one that was looked at, and the one that was not."""
    embedder = build("embed", "minilm_onnx", {})
    for half, least_intents, least_slots in (("open", 0.8, 0.88), ("apart", 0.66, 0.8)):
        counts = [one for one, _ in measure(half, embedder).values()]  # type: ignore[arg-type]
        total = sum(one.sentences for one in counts)
        assert sum(one.intents for one in counts) >= least_intents * total
        assert sum(one.slots for one in counts) >= least_slots * total
        assert sum(one.invented for one in counts) <= 0.06 * total


@pytest.mark.real
def test_paraphrases_count_who_is_given_what_he_forbids(tmp_path: Path) -> None:
    """Commands that are understood, and prohibitions that still are; pairs of other types are none of either."""
    rows = [
        {"type": "hard_negation", "a": "turn on the lights", "b": "don't turn on the lights"},
        {"type": "hard_negation", "a": "the cat sat on a mat", "b": "the cat never sat on a mat"},
        {"type": "hard_number", "a": "set a timer for ten minutes", "b": "set a timer for two minutes"},
    ]
    (tmp_path / "pairs_slurp.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    known, given = prohibitions(tmp_path, build("embed", "minilm_onnx", {}))
    assert known == 2  # both domains know the lights
    assert given == []
