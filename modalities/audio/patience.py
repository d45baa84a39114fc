"""Semantic end of turn: how much silence a speaker is granted, judged by what was said so far and how.

Doubts are added up in octaves; each octave doubles the silence. The words weigh most; how the voice closed and whether
the speaker has paused before move the verdict by less than an octave or two. The weights are set by hand, to round
figures, after a look at a logistic fit; docs/turn-taking.md tells how far they carry.
"""

import math
from dataclasses import dataclass
from typing import Literal

from modalities.audio.completeness import Completeness, completeness
from modalities.audio.phrase_end import PhraseEnd
from modalities.audio.prosody import Closing

Eagerness = Literal["low", "medium", "high", "auto"]


@dataclass(frozen=True, slots=True)
class _Grant:
    """Silence in ms: without any doubt either way, and at most."""

    usual: float
    most: int


_GRANTS: dict[Eagerness, _Grant] = {
    "low": _Grant(usual=700, most=8_000),
    "medium": _Grant(usual=400, most=4_000),
    "auto": _Grant(usual=400, most=4_000),
    "high": _Grant(usual=240, most=2_000),
}

LEAST_MS = 160
"""Less silence than this stands inside words."""

_WORDS: dict[Completeness, float] = {
    Completeness.FINISHED: -0.4,
    Completeness.LIKELY: 0.0,
    Completeness.OPEN: 1.0,
    Completeness.SPELLED: 1.0,
    Completeness.DOUBTFUL: 1.8,
    Completeness.HANGING: 4.2,
}
_UNHEARD = 1.3

_HELD_PER_MS = 0.2 / 32
_HELD_USUAL_MS = 96
_FADE_PER_DB = -0.05
_FADE_USUAL_DB = 18.0
_DEPTH_PER_ST = -0.06
_VOICE_LEAST, _VOICE_MOST = -0.6, 1.5
_VOICE_MOST_WHEN_FINISHED = 0.3
"""A question is over, however long its last vowel."""

_PER_PAUSE = 0.15
_PAUSES_MOST = 3


class SemanticPatience:
    """Grants much silence to a sentence that hangs in the air and little to one that is complete.

    At most 8, 4, 2 s for low, medium, high eagerness; auto is medium. `scale` multiplies what is granted, for
    measurements.
    """

    __slots__ = ("_most", "_usual")

    def __init__(self, eagerness: Eagerness, scale: float = 1.0) -> None:
        self._usual = _GRANTS[eagerness].usual * scale
        self._most = _GRANTS[eagerness].most

    @property
    def most_ms(self) -> int:
        """The longest silence ever granted."""
        return self._most

    def silence_ms(self, text: str | None, phrase: PhraseEnd | None = None) -> int:
        """Returns how much silence ends the turn whose words so far are `text` (a partial transcript, may be empty;
        None while no draft has heard the last of them). `phrase` tells how they were said, where that is known."""
        words = None if text is None else completeness(text)
        doubt = _UNHEARD if words is None else _WORDS[words]
        if phrase is not None:
            most = _VOICE_MOST if words is not Completeness.FINISHED else _VOICE_MOST_WHEN_FINISHED
            doubt += min(_of_voice(phrase.prosody.closing), most) + _of_rhythm(phrase.earlier_ms)
        return int(min(max(self._usual * math.pow(2.0, doubt), LEAST_MS), self._most))


def _of_voice(closing: Closing | None) -> float:
    if closing is None:
        return 0.0
    held = _HELD_PER_MS * (closing.held_ms - _HELD_USUAL_MS)
    fade = _FADE_PER_DB * (closing.fade_db - _FADE_USUAL_DB)
    return max(held + fade + _DEPTH_PER_ST * closing.depth, _VOICE_LEAST)


def _of_rhythm(earlier_ms: tuple[int, ...]) -> float:
    return _PER_PAUSE * min(len(earlier_ms), _PAUSES_MOST)
