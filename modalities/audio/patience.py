"""Semantic end-of-turn: how much silence a speaker is granted, judged by what was said so far."""

from dataclasses import dataclass
from typing import Literal

Eagerness = Literal["low", "medium", "high", "auto"]

_HANGING = frozenset(
    """a an the this that these those my your his her its our their some any every each no
    and or but nor so because since although though unless until while if when whether than as like
    of to in on at by for from with without about into onto over under between through during before after near
    is are was were am be been do does did has have had can could will would shall should may might must
    i you he she we they it what which who whom whose where how why
    i'm i'd i'll i've we're we'd it's that's there's let's gonna wanna want need please
    very really quite just also maybe perhaps uh um er erm hmm mm well""".split()
)
"""Words after which English hardly stops: determiners, conjunctions, prepositions, auxiliaries, fillers."""

_CLOSES_ANYWAY = frozenset(
    "please is are was do does did can will would it that this you me so well about for to with in on have".split()
)
"""Hanging words that do end sentences too: with a final stop or question mark they are taken as ends."""


@dataclass(frozen=True, slots=True)
class _Grant:
    """Silence in ms: after a finished sentence, after words that may be all, and at most."""

    finished: int
    open: int
    most: int


_GRANTS: dict[Eagerness, _Grant] = {
    "low": _Grant(finished=700, open=2_000, most=8_000),
    "medium": _Grant(finished=400, open=1_000, most=4_000),
    "auto": _Grant(finished=400, open=1_000, most=4_000),
    "high": _Grant(finished=250, open=500, most=2_000),
}


class SemanticPatience:
    """Grants much silence to a sentence that hangs in the air and little to one that is complete.

    At most 8, 4, 2 s for low, medium, high eagerness; auto is medium. English only: other languages mostly come with
    punctuation, which decides first.
    """

    __slots__ = ("_grant",)

    def __init__(self, eagerness: Eagerness) -> None:
        self._grant = _GRANTS[eagerness]

    @property
    def most_ms(self) -> int:
        """The longest silence ever granted."""
        return self._grant.most

    def silence_ms(self, text: str) -> int:
        """Returns how much silence ends the turn whose words so far are `text` (a partial transcript, may be empty)."""
        words = text.split()
        if not words:
            return self._grant.open
        said = words[-1].rstrip("\"')]”’")
        bare = said.strip(".,;:!?…-–—\"'([“‘").lower()
        if said.endswith(("...", "…", ",", ";", ":", "-", "–", "—")):
            return self._grant.most
        ended = said.endswith((".", "!", "?", "。", "！", "？"))
        if bare in _HANGING and not (ended and bare in _CLOSES_ANYWAY):
            return self._grant.most
        return self._grant.finished if ended else self._grant.open
