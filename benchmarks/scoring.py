"""How close the whole path comes to the bare recogniser: word errors of both, and the words at the ends."""

from collections.abc import Iterable
from dataclasses import dataclass

from modalities.text.normalize import normalize, word_errors

END_WINDOW = 3
"""The direct decode's first word is to be among the path's first three, its last among the last three."""


@dataclass(frozen=True, slots=True)
class Score:
    """Word errors of one clip; `words` is 0 where nobody knows what was said."""

    words: int
    path_errors: int
    direct_errors: int
    ends_kept: bool


@dataclass(frozen=True, slots=True)
class Totals:
    """Word error rates over several clips, in percent of all their words."""

    clips: int
    words: int
    path_percent: float
    direct_percent: float
    ends_kept: int

    @property
    def points(self) -> float:
        """How many percent points the path is worse."""
        return round(self.path_percent - self.direct_percent, 2)


def score(reference: str | None, direct: str, path: str) -> Score:
    """Returns the score of one clip; `direct` holds at least one word."""
    wanted, plain, ours = normalize(reference or ""), normalize(direct), normalize(path)
    return Score(
        words=len(wanted),
        path_errors=word_errors(wanted, ours) if wanted else 0,
        direct_errors=word_errors(wanted, plain) if wanted else 0,
        ends_kept=not plain or (plain[0] in ours[:END_WINDOW] and plain[-1] in ours[-END_WINDOW:]),
    )


def total(scores: Iterable[Score]) -> Totals:
    """Adds scores up."""
    every = list(scores)
    words = sum(one.words for one in every)

    def percent(errors: int) -> float:
        return round(100 * errors / words, 2) if words else 0.0

    return Totals(
        clips=len(every),
        words=words,
        path_percent=percent(sum(one.path_errors for one in every)),
        direct_percent=percent(sum(one.direct_errors for one in every)),
        ends_kept=sum(one.ends_kept for one in every),
    )
