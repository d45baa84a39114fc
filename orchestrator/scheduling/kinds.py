"""The kinds of work: their names for people, and which of them are done in batches."""

from collections.abc import Mapping

from orchestrator.scheduling.work import WorkKind

KINDS: tuple[WorkKind, ...] = ("asr", "understand", "llm", "speech")

KIND_NAMES: Mapping[WorkKind, str] = {
    "asr": "speech recognition",
    "understand": "understanding",
    "llm": "the language model",
    "speech": "speech output",
}
"""Fit for messages to clients."""

BATCHED_KINDS: frozenset[WorkKind] = frozenset({"asr", "understand"})
"""Workers of these kinds run several jobs as one call and take no more until it is done."""
