"""Facts of a text as the tests write them down."""

from modalities.text.facts import facts_of

WORDS = frozenset({"polarity", "negated"})
"""Kinds that nearly every sentence has, asked for by name where they are meant."""


def told(text: str, *kinds: str) -> list[tuple[str, str]]:
    """Kind and value of a text's facts in its order: of these kinds, or of all but the kinds of single words."""
    facts = facts_of(text)
    return [(one.kind, one.value) for one in facts if (one.kind in kinds if kinds else one.kind not in WORDS)]


def where(text: str, kind: str) -> list[str]:
    """The words that facts of a kind were read from."""
    return [text[one.start : one.stop] for one in facts_of(text) if one.kind == kind]
