"""Typed facts of a text: what must not differ between two texts that say the same thing. English."""

from modalities.text.facts.fact import Fact
from modalities.text.facts.normal import facts_and_form, normal_form
from modalities.text.facts.reading import facts_of

__all__ = ["Fact", "facts_and_form", "facts_of", "normal_form"]
