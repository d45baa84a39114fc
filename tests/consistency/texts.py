"""Observations of texts for tests, with the facts that the server's own readers find; no model, so no vectors."""

from consistency.observation import Fact, Modality, Observation
from modalities.text.facts import facts_and_form


def said(text: str, modality: Modality = "speech") -> Observation:
    """Returns a text as an observation."""
    facts, normal = facts_and_form(text)
    named = tuple(Fact(fact.kind, fact.value, fact.start, fact.stop) for fact in facts)
    return Observation(f"{modality}:{text}", modality, 0, 0, text, normal, named)


def typed(text: str) -> Observation:
    """Returns a typed text as an observation."""
    return said(text, "text")
