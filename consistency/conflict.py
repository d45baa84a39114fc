"""Whether two observations contradict each other, and who is right (design §7). Pure.

Cheap checks first: equal words, then slots, then the distance, then the sound. A pair that is suspect is scored under
the sound; a pair in conflict is decided by the sound where that is clear, else the utterance is recognised again, rung
by rung, and in the end the policy decides.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from consistency.asking import spliced
from consistency.judge import Comparison, Judge
from consistency.observation import ForcedScore, Observation, Token
from consistency.policy import EngineRules, Policy, winner
from consistency.units import Answers
from consistency.verdict import Evidence, Want, WantScore, WantTranscript

MOST_COMPARISONS = 512
"""Remembered, so that a unit that is judged again costs next to nothing."""

_ROUND = 4


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one pair. `adopted`: whose text stands for this id. `loser`: whose words count no more. `lost`: what
    stands of an observation that lost some of its slots. `open`: only the user can tell."""

    state: Literal["agreed", "suspect", "frozen", "open"] = "agreed"
    evidence: tuple[Evidence, ...] = ()
    wants: tuple[Want, ...] = ()
    adopted: tuple[str, Observation] | None = None
    loser: Observation | None = None
    lost: Observation | None = None
    verified: bool = True


class Conflicts:
    """Looks into pairs of observations, the earlier one first."""

    def __init__(self, rules: EngineRules, judge: Judge | None) -> None:
        self._rules = rules
        self._judge = judge
        self._known: OrderedDict[
            tuple[int, int, tuple[ForcedScore, ...]], tuple[Observation, Observation, Comparison]
        ] = OrderedDict()

    def compare(self, a: Observation, b: Observation, scores: tuple[ForcedScore, ...] = ()) -> Comparison:
        """Returns how two observations stand to each other; without a judge they have nothing to do with each other."""
        if self._judge is None:
            return Comparison("unrelated", 0.0)
        key = (id(a), id(b), scores)
        if key not in self._known:  # holds both, so that no other observation gets one of these ids
            self._known[key] = (a, b, self._judge.compare(a, b, scores))
            if len(self._known) > MOST_COMPARISONS:
                self._known.popitem(last=False)
        return self._known[key][2]

    def distance(self, a: Observation, b: Observation) -> float:
        return self.compare(a, b).distance

    def passes(self, early: Observation, final: Observation, answers: Answers, waits: bool) -> Finding:
        """Compares two passes over one utterance: the final one stands, unless the sound says otherwise."""
        if early.text == final.text or (early.normal and early.normal == final.normal):
            return Finding()
        found = self.compare(early, final)
        evidence = (_distance(found, f"passes of {final.id}"), *found.evidence)
        if found.distance <= self._rules.suspect:
            return Finding(evidence=evidence)
        if early.text not in answers.scores:
            want = WantScore(final.id, (early.text,))
            return (
                Finding("suspect", evidence, (want,))
                if waits
                else Finding("agreed", evidence, verified=False)
            )
        score = answers.scores[early.text]
        if score is None:
            return Finding(evidence=evidence)
        evidence += (_forced(score),)
        is_better = score.total > score.recognised_total
        return Finding(evidence=evidence, adopted=(final.id, early) if is_better else None)

    def find(
        self,
        a: Observation,
        b: Observation,
        answers: Mapping[str, Answers],
        others: Sequence[Observation],
        policy: Policy,
        waits: bool,
    ) -> Finding:
        """Looks into `a` and the later `b`. `others` are what else was said around them. Without `waits` there is no
        time to want anything: what is not known yet stays unverified."""
        slots = slot_conflicts(a, b)
        if "form" in (a.modality, b.modality):
            if not slots:
                return Finding()
            return self._settle_slots(a, b, slots, others, policy)
        if a.normal and a.normal == b.normal:
            return Finding(evidence=(Evidence("distance", 0.0, "the same words"),))
        found = self.compare(a, b)
        relation = "restatement" if "caption" in (a.modality, b.modality) else found.relation
        evidence = (_distance(found, f"{relation} of {a.id} in {b.id}"), *found.evidence)
        match relation:
            case "unrelated":
                return Finding()
            case "correction":
                return self._correction(a, b, found, evidence, answers, waits)
            case "complement":
                if slots:
                    return self._settle_slots(a, b, (*slots, *evidence), others, policy)
                return Finding(evidence=evidence)
            case "restatement":
                if a.modality == b.modality or found.distance <= self._rules.suspect:
                    return Finding(evidence=evidence)
                return self._restatement(a, b, found, evidence, answers, others, policy, waits)

    # -- restatements -----------------------------------------------------------------------------------------------

    def _restatement(
        self,
        a: Observation,
        b: Observation,
        found: Comparison,
        evidence: tuple[Evidence, ...],
        answers: Mapping[str, Answers],
        others: Sequence[Observation],
        policy: Policy,
        waits: bool,
    ) -> Finding:
        heard, other = (a, b) if a.modality == "speech" else (b, a)
        if heard.modality != "speech":
            if found.distance <= self._rules.freeze:
                return Finding(evidence=evidence)
            return self._settle(a, b, evidence, others, policy)
        known = answers.get(heard.id, Answers())
        texts = _renderings(heard, other)
        missing = tuple(text for text in texts if text not in known.scores)
        if missing and waits:
            return Finding("suspect", evidence, (WantScore(heard.id, missing),))
        verified = not missing
        by_text = found.distance
        scores = tuple(score for text in texts if (score := known.scores.get(text)) is not None)
        if scores:
            found = self.compare(a, b, scores)
            best = max(scores, key=_ratio)
            evidence = (_distance(found, "with the sound"), _forced(best), *found.evidence, *evidence)
            if _ratio(best) >= self._rules.fits:
                return Finding(
                    evidence=evidence,
                    adopted=(heard.id, _reading(heard, other, best.text)),
                    verified=verified,
                )
        cleared = found.distance <= self._rules.suspect
        if cleared or max(found.distance, by_text) <= self._rules.freeze:
            return Finding(evidence=evidence, verified=verified)
        if not scores or _ratio(max(scores, key=_ratio)) > self._rules.unlikely:
            again = self._rehear(heard, other, known, evidence, waits)
            if again is not None:
                return again
            verified = verified and set(self._rules.rungs) <= known.reheard.keys()
        settled = self._settle(a, b, evidence, others, policy)
        return settled if verified else replace(settled, verified=False)

    def _rehear(
        self,
        heard: Observation,
        other: Observation,
        known: Answers,
        evidence: tuple[Evidence, ...],
        waits: bool,
    ) -> Finding | None:
        """Recognises the utterance again until it agrees with the other; None where it never does."""
        for rung in self._rules.rungs:
            if rung not in known.reheard:
                return Finding("frozen", evidence, (WantTranscript(heard.id, rung),)) if waits else None
            again = known.reheard[rung]
            if again is None or not again.text:
                continue
            same = bool(again.normal) and again.normal == other.normal
            found = Comparison("restatement", 0.0) if same else self.compare(again, other)
            if found.distance <= self._rules.suspect:
                told = Evidence("recognised_again", found.distance, f"rung {rung}: {again.text}"[:120])
                return Finding(evidence=(told, *evidence), adopted=(heard.id, again))
        return None

    def _correction(
        self,
        a: Observation,
        b: Observation,
        found: Comparison,
        evidence: tuple[Evidence, ...],
        answers: Mapping[str, Answers],
        waits: bool,
    ) -> Finding:
        """The later one stands. Where the sound of what it corrects says the same, that had been misheard."""
        better = spliced(a, b) if a.modality == "speech" and found.distance > self._rules.suspect else None
        if better is None:
            return Finding(evidence=evidence)
        known = answers.get(a.id, Answers())
        if better not in known.scores:
            if waits:
                return Finding("suspect", evidence, (WantScore(a.id, (better,)),))
            return Finding(evidence=evidence, verified=False)
        score = known.scores[better]
        if score is None or _ratio(score) < self._rules.fits:
            return Finding(evidence=evidence)
        return Finding(evidence=(_forced(score), *evidence), adopted=(a.id, _reading(a, b, better)))

    def _settle(
        self,
        a: Observation,
        b: Observation,
        evidence: tuple[Evidence, ...],
        others: Sequence[Observation],
        policy: Policy,
    ) -> Finding:
        support = (0, 0)
        if policy == "confirmed":
            support = (self._support(a, others), self._support(b, others))
        wins = winner(policy, a, b, support)
        if wins is None:
            return Finding("open", evidence)
        told = Evidence("policy", 1.0, f"{policy}: {wins.id}")
        return Finding(evidence=(*evidence, told), loser=b if wins is a else a)

    def _settle_slots(
        self,
        a: Observation,
        b: Observation,
        evidence: tuple[Evidence, ...],
        others: Sequence[Observation],
        policy: Policy,
    ) -> Finding:
        """Takes from the loser the slots that it named otherwise; its words stay, since they say more than these."""
        settled = self._settle(a, b, evidence, others, policy)
        loser = settled.loser
        if loser is None:
            return settled
        values = {token.slot: _key(token) for token in (b if loser is a else a).tokens}
        kept = tuple(one for one in loser.tokens if values.get(one.slot, _key(one)) == _key(one))
        if loser.modality == "form" and not kept:
            return settled
        return replace(settled, loser=None, lost=replace(loser, tokens=kept))

    def _support(self, one: Observation, others: Sequence[Observation]) -> int:
        """How many others say the same."""
        count = 0
        for other in others:
            if other.id == one.id or slot_conflicts(one, other):
                continue
            if "form" in (one.modality, other.modality):
                count += any(
                    x.slot and (x.slot, x.value) == (y.slot, y.value)
                    for x in one.tokens
                    for y in other.tokens
                )
                continue
            found = self.compare(*((other, one) if other.start_us <= one.start_us else (one, other)))
            count += found.relation == "restatement" and found.distance <= self._rules.suspect
        return count


def slot_conflicts(a: Observation, b: Observation) -> tuple[Evidence, ...]:
    """Returns the slots for which two observations name different values."""
    values = {
        (one.slot, one.value.strip().casefold()) for one in b.tokens if one.slot and one.act == "inform"
    }
    named = {slot for slot, _ in values}
    return tuple(
        Evidence("slot", 1.0, f"{one.slot}: {one.value} against {_value(b, one.slot)}")
        for one in a.tokens
        if one.slot in named
        and one.act == "inform"
        and (one.slot, one.value.strip().casefold()) not in values
    )


def _key(token: Token) -> tuple[str, str]:
    return token.slot, token.value.strip().casefold()


def _value(one: Observation, slot: str) -> str:
    return next(token.value for token in one.tokens if token.slot == slot)


def _renderings(heard: Observation, other: Observation) -> tuple[str, ...]:
    """The texts that might have been said, should the other one be right."""
    better = spliced(heard, other)
    return (other.text,) if better is None else (other.text, better)


def _reading(heard: Observation, other: Observation, text: str) -> Observation:
    """Returns what stands for an utterance that was misheard: the other's words, or its own with these in them."""
    if text == other.text:
        return other
    return Observation(
        id=f"{heard.id}~{other.id}",
        modality=heard.modality,
        start_us=heard.start_us,
        stop_us=heard.stop_us,
        text=text,
        facts=other.facts,
        tokens=other.tokens,
        intent=other.intent or heard.intent,
        revision=heard.revision + 1,
    )


def _ratio(score: ForcedScore) -> float:
    """How much likelier the text is under the sound than what was recognised (natural logarithm)."""
    return score.total - score.recognised_total


def _forced(score: ForcedScore) -> Evidence:
    return Evidence("forced_score", round(_ratio(score), _ROUND), score.text[:120])


def _distance(found: Comparison, about: str) -> Evidence:
    return Evidence("distance", round(found.distance, _ROUND), about)
