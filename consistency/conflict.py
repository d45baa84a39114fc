"""Whether two observations contradict each other, and who is right (design §7). Pure.

Cheap checks first: equal words, then slots, then the distance, then the sound. A pair that is suspect is scored under
the sound; a pair in conflict is decided by the sound where that is clear, else the utterance is recognised again, rung
by rung, and in the end the policy decides.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from consistency.asking import question, spliced
from consistency.finding import Finding
from consistency.judge import Comparison, Judge
from consistency.observation import ForcedScore, Observation
from consistency.policy import EngineRules, Policy, winner
from consistency.reading import Reader
from consistency.rewording import reworded
from consistency.slots import Apart, apart, evidence_of, fills, kept, mended, respelled, same_value
from consistency.sounding import Sounding, best, forced, ratio
from consistency.units import Answers
from consistency.verdict import Evidence, WantScore

MOST_COMPARISONS = 512
"""Remembered, so that a unit that is judged again costs next to nothing."""

_ROUND = 4

_Key = tuple[int, int, tuple[ForcedScore, ...], int]
_Held = tuple[Observation, Observation, Observation | None]


@dataclass(frozen=True, slots=True)
class Known:
    """What is known while two observations are looked into: the `answers` there are by utterance, what else was said
    around them, and who wins where nothing else decides. Without `waits` there is no time to want anything: what is not
    known yet stays unverified."""

    answers: Mapping[str, Answers]
    others: Sequence[Observation]
    policy: Policy
    waits: bool

    def of(self, one: Observation) -> Answers:
        return self.answers.get(one.id, Answers())


class Conflicts:
    """Looks into pairs of observations, the earlier one first."""

    def __init__(self, rules: EngineRules, judge: Judge | None, read: Reader | None = None) -> None:
        self._rules = rules
        self._judge = judge
        self._read = read
        self._known: OrderedDict[_Key, tuple[_Held, Comparison]] = OrderedDict()

    def compare(
        self,
        a: Observation,
        b: Observation,
        scores: tuple[ForcedScore, ...] = (),
        second: Observation | None = None,
    ) -> Comparison:
        """Returns how two observations stand to each other; without a judge they have nothing to do with each other."""
        if self._judge is None:
            return Comparison("unrelated", 0.0)
        key = (id(a), id(b), scores, id(second))
        if key not in self._known:  # holds all three, so that no other observation gets one of these ids
            self._known[key] = ((a, b, second), self._judge.compare(a, b, scores, second))
            if len(self._known) > MOST_COMPARISONS:
                self._known.popitem(last=False)
        return self._known[key][1]

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
        evidence += (forced(score),)
        is_better = score.total > score.recognised_total
        return Finding(evidence=evidence, adopted=(final.id, early) if is_better else None)

    def find(self, a: Observation, b: Observation, known: Known) -> Finding:
        """Looks into `a` and the later `b`."""
        slots = apart(a, b, self._read)
        if "form" in (a.modality, b.modality):
            if not slots:
                return Finding()
            return self._slots(a, b, slots, (), known)
        if a.normal and a.normal == b.normal:
            return Finding(evidence=(Evidence("distance", 0.0, "the same words"),))
        found = self.compare(a, b)
        relation = "restatement" if "caption" in (a.modality, b.modality) else found.relation
        evidence = (_distance(found, f"{relation} of {a.id} in {b.id}"), *found.evidence)
        match relation:
            case "unrelated":
                return Finding()
            case "correction":
                return self._correction(a, b, found, evidence, known)
            case "complement":
                if slots:
                    return self._slots(a, b, slots, evidence, known)
                return Finding(evidence=evidence)
            case "restatement":
                if a.modality == b.modality or found.distance <= self._rules.suspect:
                    return Finding(evidence=evidence)
                return self._restatement(a, b, found, evidence, known)

    # -- restatements -----------------------------------------------------------------------------------------------

    def _restatement(
        self,
        a: Observation,
        b: Observation,
        found: Comparison,
        evidence: tuple[Evidence, ...],
        known: Known,
    ) -> Finding:
        heard, other = (a, b) if a.modality == "speech" else (b, a)
        if heard.modality != "speech":
            if found.distance <= self._rules.freeze:
                return Finding(evidence=evidence)
            return self._settle(a, b, evidence, known)
        sound = Sounding(heard, known.of(heard), self._rules, known.waits)
        texts = _renderings(heard, other)
        if (first := sound.unscored(texts, evidence)) is not None:
            return first
        by_text, scores = found.distance, sound.scores(texts)
        verified = all(text in sound.known.scores for text in texts)
        if scores:
            found = self.compare(a, b, scores)
            evidence = (_distance(found, "with the sound"), forced(best(scores)), *found.evidence, *evidence)
            if ratio(best(scores)) >= self._rules.fits:
                return self._adopts(heard, other, best(scores), evidence, verified)
            if self._rules.suspect < found.distance <= self._rules.freeze:
                theirs = sound.by_second(texts, "suspect", evidence)
                if isinstance(theirs, Finding):
                    return theirs
                if theirs:
                    found = self.compare(a, b, (*scores, *theirs), sound.second)
                    evidence = _by_both(found, theirs, evidence)
        cleared = found.distance <= self._rules.suspect
        if cleared or max(found.distance, by_text) <= self._rules.freeze:
            return Finding(evidence=evidence, verified=verified)
        if not scores or ratio(best(scores)) > self._rules.unlikely:
            again = sound.again(self._agreement(other), evidence)
            if again is not None:
                return again
            verified = verified and sound.exhausted
            theirs = sound.by_second(texts, "frozen", evidence) if scores and verified else ()
            if isinstance(theirs, Finding):
                return theirs
            if theirs and not any(one.name == "second_score" for one in evidence):
                found = self.compare(a, b, (*scores, *theirs), sound.second)
                evidence = _by_both(found, theirs, evidence)
                if found.distance <= self._rules.suspect:
                    return Finding(evidence=evidence)
        settled = self._settle(a, b, evidence, known)
        return settled if verified else replace(settled, verified=False)

    def _agreement(self, other: Observation) -> Callable[[Observation], float]:
        """Returns how far what was recognised again is from the other."""

        def distance(again: Observation) -> float:
            same = bool(again.normal) and again.normal == other.normal
            return 0.0 if same else self.compare(again, other).distance

        return distance

    def _adopts(
        self,
        heard: Observation,
        other: Observation,
        score: ForcedScore,
        evidence: tuple[Evidence, ...],
        verified: bool = True,
    ) -> Finding:
        """The sound says that this text was said: it stands for what was recognised."""
        reading = _reading(heard, other, score.text)
        return Finding(evidence=evidence, adopted=(heard.id, reading), verified=verified)

    def _correction(
        self,
        a: Observation,
        b: Observation,
        found: Comparison,
        evidence: tuple[Evidence, ...],
        known: Known,
    ) -> Finding:
        """The later one stands. Where the sound of what it corrects says the same, that had been misheard."""
        better = spliced(a, b) if a.modality == "speech" and found.distance > self._rules.suspect else None
        if better is None:
            return Finding(evidence=evidence)
        scores = known.of(a).scores
        if better not in scores:
            if known.waits:
                return Finding("suspect", evidence, (WantScore(a.id, (better,)),))
            return Finding(evidence=evidence, verified=False)
        score = scores[better]
        if score is None or ratio(score) < self._rules.fits:
            return Finding(evidence=evidence)
        return self._adopts(a, b, score, (forced(score), *evidence))

    # -- slots ------------------------------------------------------------------------------------------------------

    def _slots(
        self,
        a: Observation,
        b: Observation,
        slots: Apart,
        evidence: tuple[Evidence, ...],
        known: Known,
    ) -> Finding:
        """A slot in two values, of which one was spoken, is looked into as two texts are that contradict each other:
        the utterance with the other's value in it is scored, then it is recognised again, then the policy decides."""
        evidence = (*evidence_of(slots), *evidence)
        if (a.modality == "speech") == (b.modality == "speech"):
            return self._settle_slots(a, b, evidence, known)
        heard, other = (a, b) if a.modality == "speech" else (b, a)
        if heard is b:
            slots = apart(b, a, self._read)
        sound = Sounding(heard, known.of(heard), self._rules, known.waits)
        text = respelled(heard, slots, self._read)
        if text is None:
            return self._settle_slots(a, b, evidence, known)
        texts = (text,)
        if (first := sound.unscored(texts, evidence)) is not None:
            return first
        scores = sound.scores(texts)
        verified = text in sound.known.scores
        if scores:
            evidence = (forced(scores[0]), *evidence)
            if ratio(scores[0]) >= self._rules.fits:
                reading = mended(heard, other, slots, text, self._read)
                return Finding(evidence=evidence, adopted=(heard.id, reading), verified=verified)
        if not scores or ratio(scores[0]) > self._rules.unlikely:
            again = sound.again(lambda one: float(not fills(one, slots, self._read)), evidence)
            if again is not None:
                return again
            verified = verified and sound.exhausted
        settled = self._settle_slots(a, b, evidence, known)
        return settled if verified else replace(settled, verified=False)

    # -- who wins ---------------------------------------------------------------------------------------------------

    def _settle(
        self,
        a: Observation,
        b: Observation,
        evidence: tuple[Evidence, ...],
        known: Known,
    ) -> Finding:
        policy, support = known.policy, (0, 0)
        if policy == "confirmed":
            support = (self._support(a, known.others), self._support(b, known.others))
        wins = winner(policy, a, b, support)
        if wins is None:
            policy, wins = "typed", _understood(a, b, self._read)
        if wins is None:
            return Finding("open", evidence)
        told = Evidence("policy", 1.0, f"{policy}: {wins.id}")
        return Finding(evidence=(*evidence, told), loser=b if wins is a else a)

    def _settle_slots(
        self,
        a: Observation,
        b: Observation,
        evidence: tuple[Evidence, ...],
        known: Known,
    ) -> Finding:
        """Takes from the loser the slots that it named otherwise. Its words stay, since they say more than these, and
        read with the winner's values where its own stood."""
        settled = self._settle(a, b, evidence, known)
        loser = settled.loser
        if loser is None:
            return settled
        wins = b if loser is a else a
        left = kept(loser, wins, self._read)
        if loser.modality == "form":
            if not left:
                return settled
            return replace(settled, loser=None, lost=replace(loser, tokens=left))
        text = respelled(loser, apart(loser, wins, self._read), self._read)
        lost = replace(loser, tokens=left)
        reads = None if text is None else reworded(lost, text, self._read)
        return replace(settled, loser=None, lost=lost, reads=reads)

    def _support(self, one: Observation, others: Sequence[Observation]) -> int:
        """How many others say the same."""
        count = 0
        for other in others:
            if other.id == one.id or apart(one, other, self._read):
                continue
            if "form" in (one.modality, other.modality):
                count += any(
                    x.slot and x.slot == y.slot and same_value(x.value, y.value, self._read)
                    for x in one.tokens
                    for y in other.tokens
                )
                continue
            found = self.compare(*((other, one) if other.start_us <= one.start_us else (one, other)))
            count += found.relation == "restatement" and found.distance <= self._rules.suspect
        return count


def _understood(a: Observation, b: Observation, read: Reader | None) -> Observation | None:
    """Returns the written one of two of which the spoken one fills no slot and differs all over: garbled speech is
    nothing that a user could choose. None where he can."""
    heard, written = (a, b) if a.modality == "speech" else (b, a)
    if heard.modality != "speech" or written.modality != "text" or question(a, b, read).names_a_part:
        return None
    fills_one = any(token.slot for token in written.tokens)
    return written if fills_one and not any(token.slot for token in heard.tokens) else None


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


def _by_both(
    found: Comparison, theirs: tuple[ForcedScore, ...], evidence: tuple[Evidence, ...]
) -> tuple[Evidence, ...]:
    return (_distance(found, "with both recognisers"), forced(best(theirs)), *found.evidence[:2], *evidence)


def _distance(found: Comparison, about: str) -> Evidence:
    return Evidence("distance", round(found.distance, _ROUND), about)
