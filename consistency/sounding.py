"""What the sound of one utterance can still tell, from cheap to dear (design §7). Pure.

Texts are scored under what its recogniser heard, then under what the second one heard; it is recognised again, rung by
rung. What is not known yet is wanted, as long as there is time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from consistency.finding import Finding
from consistency.observation import ForcedScore, Observation
from consistency.policy import SECOND, EngineRules
from consistency.units import Answers
from consistency.verdict import Evidence, WantScore, WantTranscript

_ROUND = 4
_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Sounding:
    """What is known of an utterance's sound. Without `waits` there is no time to want more of it."""

    heard: Observation
    known: Answers
    rules: EngineRules
    waits: bool

    def unscored(self, texts: tuple[str, ...], evidence: tuple[Evidence, ...]) -> Finding | None:
        """Returns what is to be waited for until all of these texts are scored; None where nothing is."""
        missing = tuple(text for text in texts if text not in self.known.scores)
        if not missing or not self.waits:
            return None
        return Finding("suspect", evidence, (WantScore(self.heard.id, missing),))

    def scores(self, texts: tuple[str, ...]) -> tuple[ForcedScore, ...]:
        """Returns how well these texts fit by the recogniser that heard the utterance, as far as that is known."""
        return tuple(score for text in texts if (score := self.known.scores.get(text)) is not None)

    @property
    def second(self) -> Observation | None:
        """What the second recogniser heard, where it has been asked and heard something."""
        found = self.known.reheard.get(SECOND)
        return found if found is not None and found.text else None

    def by_second(
        self, texts: tuple[str, ...], state: Literal["suspect", "frozen"], evidence: tuple[Evidence, ...]
    ) -> Finding | tuple[ForcedScore, ...]:
        """Returns how well these texts fit by the second recogniser; what is to be waited for first, where it is not
        known yet; nothing where there is no second recogniser, or no time."""
        if SECOND not in self.rules.rungs:
            return ()
        if SECOND not in self.known.reheard:
            want = WantTranscript(self.heard.id, SECOND)
            return Finding(state, evidence, (want,)) if self.waits else ()
        if self.second is None:
            return ()
        missing = tuple(text for text in texts if text not in self.known.second)
        if missing and self.waits:
            return Finding(state, evidence, (WantScore(self.heard.id, missing, SECOND),))
        return tuple(score for text in texts if (score := self.known.second.get(text)) is not None)

    def again(
        self, distance: Callable[[Observation], float], evidence: tuple[Evidence, ...]
    ) -> Finding | None:
        """Has the utterance recognised again until what is heard agrees; None where it never does, or there is no time.
        `distance` of what is heard: it agrees up to `suspect`."""
        for rung in self.rules.rungs:
            if rung not in self.known.reheard:
                want = WantTranscript(self.heard.id, rung)
                return Finding("frozen", evidence, (want,)) if self.waits else None
            heard = self.known.reheard[rung]
            if heard is None or not heard.text:
                continue
            found = distance(heard)
            if found <= self.rules.suspect:
                told = Evidence("recognised_again", found, f"rung {rung}: {heard.text}"[:_SHOWN])
                return Finding(evidence=(told, *evidence), adopted=(self.heard.id, heard))
        return None

    @property
    def exhausted(self) -> bool:
        """Whether everything that can be recognised again has been."""
        return set(self.rules.rungs) <= self.known.reheard.keys()


def ratio(score: ForcedScore) -> float:
    """Returns how much likelier the text is under the sound than what was recognised (natural logarithm)."""
    return score.total - score.recognised_total


def best(scores: tuple[ForcedScore, ...]) -> ForcedScore:
    """Returns the score of the text that fits best. Raises `ValueError` where there is none."""
    return max(scores, key=ratio)


def forced(score: ForcedScore) -> Evidence:
    """Returns a score as a verdict tells it."""
    name = "second_score" if score.rung == SECOND else "forced_score"
    return Evidence(name, round(ratio(score), _ROUND), score.text[:_SHOWN])
