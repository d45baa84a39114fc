"""What a way to end turns did to a set of recordings: cut-ins, delays, beginnings missed and invented."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.outcome import Row
from benchmarks.turns_play import Played


@dataclass(frozen=True, slots=True)
class Verdict:
    """Counts and delays of one policy over recordings. `cuts`: ends before the speaker had finished; `cut`: recordings
    with one. Delays in ms from true ends to ends found; `never` counts true ends that none was found for."""

    name: str
    played: int
    cuts: int
    cut: int
    mean_ms: float
    median_ms: float
    p90_ms: float
    never: int

    def row(self) -> Row:
        """Returns the verdict as a row of a table."""
        return {
            "turns end by": self.name,
            "recordings": self.played,
            "too early": self.cuts,
            "recordings cut": self.cut,
            "delay mean, ms": round(self.mean_ms),
            "median": round(self.median_ms),
            "p90": round(self.p90_ms),
            "never ended": self.never,
        }


def judge(name: str, played: Sequence[Played]) -> Verdict:
    """Returns what a policy did."""
    finished = [one for one in played if one.take.true_end is not None]
    delays = [one.delay_ms for one in finished if one.delay_ms is not None]
    found = np.array(delays or [0.0])
    return Verdict(
        name=name,
        played=len(played),
        cuts=sum(one.early for one in played),
        cut=sum(one.early > 0 for one in played),
        mean_ms=float(found.mean()),
        median_ms=float(np.median(found)),
        p90_ms=float(np.percentile(found, 90)),
        never=len(finished) - len(delays),
    )


def beaten_on_both(silence: Sequence[Verdict], semantic: Sequence[Verdict]) -> list[str]:
    """Returns the names of silences that some semantic verdict beats: fewer cut-ins at no more delay on average."""
    return [
        plain.name
        for plain in silence
        if any(one.cuts < plain.cuts and one.mean_ms <= plain.mean_ms for one in semantic)
    ]


def beginnings(played: Sequence[Played]) -> tuple[int, int]:
    """Returns in how many recordings with speech none began, and how many began in those without."""
    spoken = [one for one in played if one.take.recording.speech]
    rest = [one for one in played if not one.take.recording.speech]
    return sum(not one.begins for one in spoken), sum(len(one.begins) for one in rest)
