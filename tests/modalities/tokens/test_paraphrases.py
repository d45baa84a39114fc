"""Sentences in words of their own, by the real embedding: how many of them are understood."""

import pytest

from benchmarks.paraphrases import domain, measure, sentences
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
