"""Semantic end-of-turn: how much silence a speaker is granted, judged by what was said so far."""

from dataclasses import dataclass
from typing import Literal

Eagerness = Literal["low", "medium", "high", "auto"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEVER_LAST = _words(
    """a an the my your our their every and or nor but because although unless whether than into onto
    uh um er erm i'm i'd i'll i've we're we'd we'll gonna wanna"""
)
"""Words that end no English sentence, whatever punctuation a recogniser puts behind them."""

_RARELY_LAST = _words(
    """of to in on at by for from with without about over under between through during before after near like as
    is are was were am be been do does did has have had can could will would should may might must
    i he she we they if when while until since though so what who which where how why
    there's that's it's let's want need very really quite just also"""
)
"""Words that end a sentence now and then: they hang unless a full stop or question mark follows."""


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
        if said.endswith(("...", "…", ",", ";", ":", "-", "–", "—")) or bare in _NEVER_LAST:
            return self._grant.most
        if said.endswith(("?", "？", "!", "！")):
            return self._grant.finished
        if said.endswith((".", "。")):
            return self._grant.open if bare in _RARELY_LAST else self._grant.finished
        return self._grant.most if bare in _RARELY_LAST else self._grant.open
