"""How sure a recogniser was of what it heard, for clients that ask for it (heart): ``include``."""

from math import log

from msgspec import UNSET, UnsetType

from orchestrator.scheduling.work import Transcribed
from orchestrator.wire.server import LogProb
from orchestrator.wire.session import LOGPROBS, Session

_LEAST = 1e-9
"""JSON knows no infinity."""


def logprobs_of(
    view: Session, report: Transcribed | None, text: str
) -> tuple[LogProb, ...] | UnsetType | None:
    """Returns a token for each word of the transcript; None where the words of `text` were not recognised so, or the
    recogniser tells none; nothing where nobody asked."""
    if LOGPROBS not in (view.include or ()):
        return UNSET
    if report is None or not report.words or report.text.strip() != text:
        return None
    return tuple(
        LogProb(word.text, round(log(max(_LEAST, word.probability)), 4), tuple(word.text.encode()))
        for word in report.words
    )
