"""Which jobs may go to a worker together: recognition and understanding of equal shape.

A batch costs what its longest member costs, so members are of one shape: recognition jobs that round up to the same
length of sound and ask for the same care, or texts to understand. A batch leaves as soon as a worker is free, with
what waits then: an idle worker never waits for company.
"""

from bisect import bisect_left

from modalities.ports import SPEECH_RATE_HZ
from orchestrator.scheduling.work import Embed, Reply, Score, Speak, Transcribe, Understand, Work

CLIP_SHAPES_S = (5.0, 7.5, 10.0, 15.0, 20.0, 30.0)
"""Lengths that a recogniser's encoder is run at; a clip rounds up to the next, a longer one to the last."""

Shape = tuple[str, int, bool, int]


def shape_of(work: Work) -> Shape | None:
    """Returns what must be equal within a batch; None for work that is never batched."""
    match work:
        case Transcribe():
            return ("asr", _length(work), work.draft, work.rung)
        case Score():
            return ("score", _length(work), False, work.rung)
        case Understand():
            return ("understand", 0, False, 0)
        case Embed() | Reply() | Speak():
            return None


def _length(work: Transcribe | Score) -> int:
    length_s = clip_samples(work) / SPEECH_RATE_HZ
    return min(bisect_left(CLIP_SHAPES_S, length_s), len(CLIP_SHAPES_S) - 1)


def clip_samples(work: Transcribe | Score) -> int:
    """Returns how many 16 kHz samples a recognition job covers."""
    return len(work.audio) // 2 if work.audio else work.stop - work.start
