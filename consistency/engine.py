"""The heart of consistency: observations in, verdicts out (design §7). Pure: no clock, no waiting, no model.

Units are judged in the order in which they were said, and observations within a unit too, whenever they arrived: what
comes late is put in its place, and everything behind it is judged again. So the committed state depends on what was
said and when, never on who answered first. A unit reads what was said before it and nothing that came later.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import assert_never

from consistency.asking import chosen, question
from consistency.case import Case, Judged, merged, newest_of_each_slot, wanted_texts, wants_of
from consistency.conflict import Conflicts, Known
from consistency.corrections import Corrections
from consistency.judge import Graph, Judge, Past, Surroundings
from consistency.misheard import Misheard
from consistency.observation import Observation
from consistency.policy import SECOND, EngineRules, Policy, is_near, place
from consistency.reading import Reader
from consistency.snapshots import Committed, Snapshot
from consistency.sounding import Sounding
from consistency.units import Answers, Unit, last_passes
from consistency.verdict import (
    Accept,
    Ask,
    Evidence,
    Freeze,
    Reheard,
    RollBack,
    Scores,
    Suspect,
    Verdict,
)

KEPT_UNITS = 8
"""Units that later ones may look back to, however old they are."""
MOST_UNITS = 48
KEPT_US = 60_000_000
"""Older units than these are settled for good: what comes for them is not looked into any more."""
_MOST_EVIDENCE = 16
_RECENT_UNITS = 6

Print = Callable[[Observation], bytes]


class ConsistencyEngine:
    """Judges the units of one conversation. Memory and the cost of an observation do not grow with the conversation."""

    def __init__(
        self,
        rules: EngineRules | None = None,
        judge: Judge | None = None,
        graph: Graph | None = None,
        fingerprint: Print | None = None,
        read: Reader | None = None,
        corrections: Corrections | None = None,
        misheard: Misheard | None = None,
    ) -> None:
        self.also: tuple[Verdict, ...] = ()
        """Verdicts about later units that the last call changed."""
        self._rules = rules or EngineRules()
        self._read = read
        self._conflicts = Conflicts(self._rules, judge, read)
        self._graph = graph
        self._corrections = corrections
        self._misheard = misheard
        self._fingerprint = fingerprint
        self._base = Snapshot()
        self._settled = 0
        self._units: list[Judged] = []
        self._answers: dict[str, Answers] = {}

    # -- what may be looked at --------------------------------------------------------------------------------------

    @property
    def snapshot(self) -> Snapshot:
        """The state behind the last unit."""
        return self._units[-1].after if self._units else self._base

    def verdict(self, unit: int) -> Verdict | None:
        """Returns what stands about a unit; None where it is not held (any more)."""
        return next((judged.verdict for judged in reversed(self._units) if judged.unit.number == unit), None)

    def reading(self, observation_id: str) -> Observation | None:
        """Returns what stands for an observation: itself, or what was adopted for it."""
        found = None
        for judged in self._units:
            found = next((one for one in judged.unit.standing if one.id == observation_id), found)
            found = judged.adopted.get(observation_id, found)
        return found

    def standing(self) -> tuple[int, dict[str, Observation]]:
        """Returns the first of the latest units, and what stands of it and of all since: by id of the observation,
        itself or what was adopted for it. What lost a conflict is not among them."""
        recent = self._units[-KEPT_UNITS:]
        return recent[0].unit.number if recent else 0, self._readings_before(len(self._units), as_said=True)

    def corrected(self) -> dict[str, str]:
        """Returns how what was said reads since something of it was corrected, by id of the observation."""
        said = {one.id: one.text for judged in self._units for one in judged.unit.standing}
        reads = {key: one.text for judged in self._units for key, one in judged.corrected.items()}
        return {key: text for key, text in reads.items() if key in said and said[key] != text}

    def stands_alone(self, observation: Observation, unit: int, asks: bool = False) -> bool:
        """Whether nothing is there that may contradict this observation, so that no more need be known of it. What was
        said before in the same way it may correct, which is no contradiction."""
        if any(judged.asked is not None for judged in self._units[-2:]):
            return False
        if self._units and self._corrections is not None and self._corrections.concerns(observation.text):
            return False
        if self._misheard is not None and self._misheard.concerns(observation, self._rules.lost, asks):
            return False
        others = (one for judged in self._units[-KEPT_UNITS:] for one in judged.unit.observations)
        return not any(
            (
                one.modality != observation.modality
                or (one.id == observation.id and one.revision != observation.revision)
            )
            and is_near(one, observation, self._rules.compare_us)
            for one in others
        )

    def statistics(self) -> tuple[int, int]:
        """Returns how many units and observations are held."""
        return len(self._units), sum(len(judged.unit.observations) for judged in self._units)

    # -- what happens -----------------------------------------------------------------------------------------------

    def observe(
        self, event: Observation | Scores | Reheard, now_us: int, unit: int = 0, asks: bool = False
    ) -> Verdict:
        """Takes what was said in a unit (a user's turn), or the result of a want; returns the verdict about its unit.
        `asks`: the user may be asked about it. `now_us` says only what is old enough to be forgotten."""
        match event:
            case Observation():
                return self._change(unit, now_us, lambda one: one.add(event, asks))
            case Scores():
                known = self._answers.setdefault(event.observation_id, Answers())
                scores = known.second if event.rung == SECOND else known.scores
                found = {score.text: score for score in event.scores}
                for text in event.texts or wanted_texts(self._units, event.observation_id, event.rung):
                    scores[text] = found.get(text)
                scores |= found
            case Reheard():
                known = self._answers.setdefault(event.observation_id, Answers())
                known.reheard[event.rung] = event.observation
            case _:
                assert_never(event)
        return self._judge_again(event.observation_id)

    def expire(self, unit: int, now_us: int) -> Verdict:
        """There is no more time: the unit is accepted as it is, unverified, until what was wanted comes after all."""
        return self._change(unit, now_us, lambda one: replace(one, expired=True))

    def offer(self, unit: int, text: str, now_us: int) -> None:
        """The assistant has said this in answer to a unit: later values may stem from it."""
        if self.verdict(unit) is not None:
            self._change(unit, now_us, lambda one: replace(one, offers=(*one.offers, text)[-4:]))

    def roll_back(self, to: int) -> Snapshot:
        """Forgets every unit behind snapshot `to`, as if they had not been said. Raises `LookupError` where that is
        older than what is held."""
        if self._settled > to:
            raise LookupError(f"snapshot {to} is older than what is held")
        kept = [judged for judged in self._units if judged.unit.number <= to]
        gone = {one.id for judged in self._units[len(kept) :] for one in judged.unit.observations}
        self._units = kept
        for observation_id in gone - {one.id for judged in kept for one in judged.unit.observations}:
            self._answers.pop(observation_id, None)
        return self.snapshot

    # -- judging ----------------------------------------------------------------------------------------------------

    def _change(self, number: int, now_us: int, change: Callable[[Unit], Unit]) -> Verdict:
        self.also = ()
        if 0 < number <= self._settled:
            return Accept(number, (Evidence("late", 1.0, "its unit is settled for good"),), verified=False)
        at = next((at for at, one in enumerate(self._units) if one.unit.number >= number), len(self._units))
        if at == len(self._units) or self._units[at].unit.number != number:
            self._units.insert(at, Judged(Unit(number), Accept(number), self._base))
        self._units[at].unit = change(self._units[at].unit)
        verdict = self._refold(at, number)
        self._prune(now_us)
        return verdict

    def _judge_again(self, observation_id: str) -> Verdict:
        """Something came back about an observation: whoever waited for it is judged again."""
        self.also = ()
        waiting = [
            at
            for at, judged in enumerate(self._units)
            if any(want.observation_id == observation_id for want in wants_of(judged.verdict))
            or any(one.id == observation_id for one in judged.unit.observations)
        ]
        if not waiting:
            return Accept(0, (Evidence("late", 1.0, f"nobody waits for {observation_id}"),), verified=False)
        asker = next(
            (
                at
                for at in waiting
                if any(want.observation_id == observation_id for want in wants_of(self._units[at].verdict))
            ),
            waiting[0],
        )
        return self._refold(waiting[0], self._units[asker].unit.number)

    def _refold(self, start: int, asked: int) -> Verdict:
        """Judges the units from `start` on; returns the verdict about unit `asked`."""
        verdict: Verdict = Accept(asked)
        changed = []
        for at in range(start, len(self._units)):
            before = self._units[at].verdict
            judged = self._units[at] = self._judge(at)
            if judged.unit.number == asked:
                verdict = judged.verdict
            elif judged.verdict != before:
                changed.append(judged.verdict)
        self.also = tuple(changed)
        return verdict

    def _judge(self, at: int) -> Judged:
        """Judges one unit by what was said before it."""
        unit = self._units[at].unit
        before = self._units[at - 1].after if at else self._base
        case = Case(unit, self._readings_before(at), self._rules.policy)
        self._hear_answer(at, case)
        self._correct(case)
        self._compare_passes(case)
        self._compare(case)
        self._look_for_lost(case)
        return self._conclude(case, before, at)

    def _readings_before(self, at: int, as_said: bool = False) -> dict[str, Observation]:
        """What stands of the units before, by id, oldest first; with what was corrected in it, or as it was said."""
        readings: dict[str, Observation] = {}
        for judged in self._units[max(0, at - KEPT_UNITS) : at]:
            readings |= {one.id: one for one in judged.unit.standing}
            readings |= {key: one for key, one in judged.adopted.items() if key in readings}
            if not as_said:
                readings |= {key: one for key, one in judged.corrected.items() if key in readings}
            for lost in judged.superseded:
                readings.pop(lost, None)
        return readings

    def _hear_answer(self, at: int, case: "Case") -> None:
        """Where the unit before ended in a question, this one answers it, or the policy does: it is not put twice."""
        asked = self._units[at - 1].asked if at else None
        if asked is None:
            return
        case.may_ask = False
        named = next(
            (
                which
                for one in case.unit.standing
                if one.text and (which := chosen(asked, one, self._conflicts.distance)) is not None
            ),
            None,
        )
        wins = asked.unanswered if named is None else (asked.a, asked.b)[named]
        loses = asked.b if wins is asked.a else asked.a
        case.settle(asked, wins, loses, named is not None)
        told = asked.readings[0 if wins is asked.a else 1]
        case.evidence.append(Evidence("answer", float(named is not None), told))

    def _correct(self, case: "Case") -> None:
        """Puts the values of corrections where they belong; what they correct keeps its words in this unit, since these
        may have been misheard."""
        if self._corrections is None:
            return
        for one in case.unit.standing:
            current = case.readings.get(one.id)
            if current is None or one.modality == "form":
                continue
            before = [
                case.corrected.get(key, said)
                for key, said in case.readings.items()
                if key != one.id and place(said) < place(one)
            ]
            found = self._corrections.amend(current, before)
            if found is not None:
                case.amend(found)

    def _compare_passes(self, case: "Case") -> None:
        unit = case.unit
        for one in unit.standing:
            passes = [other for other in unit.observations if other.id == one.id]
            for early, final in pairwise(passes):
                answers = self._answers.get(one.id, Answers())
                case.note(self._conflicts.passes(early, final, answers, not unit.expired))

    def _compare(self, case: "Case") -> None:
        for new in case.unit.standing:
            if new.id in case.superseded:
                continue
            for old_id in case.near(new, self._rules.compare_us):
                old = case.readings.get(old_id)
                current = case.readings.get(new.id)
                if old is None or current is None or old is current:
                    continue
                others = [one for key, one in case.readings.items() if key not in (old_id, new.id)]
                policy: Policy = "later" if case.policy == "ask" else case.policy
                if case.may_ask and case.unit.asks:
                    policy = "ask"
                known = Known(self._answers, others, policy, not case.unit.expired)
                finding = self._conflicts.find(old, current, known)
                case.note(finding, (old, current))

    def _look_for_lost(self, case: "Case") -> None:
        """Looks into what was spoken and stands as it was recognised."""
        if self._misheard is None:
            return
        for one in case.unit.standing:
            if one.modality == "speech" and case.readings.get(one.id) is one:
                known = self._answers.get(one.id, Answers())
                asks = case.may_ask and case.unit.asks and not case.near(one, self._rules.compare_us)
                sound = Sounding(one, known, self._rules, not case.unit.expired)
                case.note(self._misheard.find(sound, asks and len(case.unit.standing) == 1))

    # -- concluding -------------------------------------------------------------------------------------------------

    def _conclude(self, case: "Case", before: Snapshot, at: int) -> Judged:
        unit, evidence = case.unit, tuple(case.evidence[:_MOST_EVIDENCE])
        judged = Judged(unit, Accept(unit.number), before, case.adopted, tuple(case.superseded))
        wants = merged(want for finding in case.findings for want in finding.wants)
        states = {finding.state for finding in case.findings}
        if "frozen" in states:
            judged.verdict = Freeze(unit.number, wants, evidence)
        elif "suspect" in states:
            judged.verdict = Suspect(unit.number, wants, evidence)
        elif case.opened is not None:
            judged.asked = question(*case.opened, self._read)
            judged.verdict = Ask(unit.number, judged.asked.readings, judged.asked.text, evidence)
        else:
            self._commit(judged, case, before, at)
            return judged
        judged.adopted, judged.superseded = {}, ()  # nothing of a unit that waits counts
        return judged

    def _commit(self, judged: Judged, case: "Case", before: Snapshot, at: int) -> None:
        unit, evidence = judged.unit, tuple(case.evidence[:_MOST_EVIDENCE])
        adopted = tuple((key, one.id) for key, one in case.adopted.items())
        standing = [case.readings[one.id] for one in unit.standing if one.id in case.readings]
        readings = last_passes([*case.commits, *(case.adopted[key] for key in case.adopted), *standing])
        tokens = newest_of_each_slot(
            one for reading in readings for one in case.corrected.get(reading.id, reading).tokens
        )
        if tokens and self._graph is not None:
            around = Surroundings(
                (*case.commits, *standing), self._recent(at), before.tokens, self._rules.today
            )
            found = self._graph.check(tokens, around)
            evidence = (Evidence("connectivity", round(found.value, 4)), *found.evidence, *evidence)
            if found.value < self._rules.connectivity:
                superseded = judged.superseded
                judged.verdict = RollBack(unit.number, before.number, evidence, adopted, superseded)
                return
        verified = all(finding.verified for finding in case.findings)
        judged.verdict = Accept(unit.number, evidence, adopted, verified, judged.superseded)
        change = Committed(
            unit=unit.number,
            words=tuple((one.id, one.text) for one in standing),
            tokens=tokens,
            withdrawn=tuple(token for one in case.replaced for token in one.tokens if token not in tokens),
            adopted=tuple((key, one.text) for key, one in case.adopted.items()),
            superseded=judged.superseded,
            prints=tuple(map(self._fingerprint, standing)) if self._fingerprint is not None else (),
        )
        judged.after = before.commit(change)
        judged.corrected = case.corrected

    def _recent(self, at: int) -> tuple[Past, ...]:
        known = self._readings_before(at)
        past = []
        for judged in self._units[max(0, at - _RECENT_UNITS) : at]:
            said = [known[one.id] for one in judged.unit.standing if one.id in known]
            if not isinstance(judged.verdict, Accept):
                said = [replace(one, tokens=()) for one in said]
            past.append(Past(tuple(said), judged.unit.offers))
        return tuple(past)

    # -- forgetting -------------------------------------------------------------------------------------------------

    def _prune(self, now_us: int) -> None:
        """Settles units that nothing can reach any more: the oldest ones that are far away in turns and in time."""
        while len(self._units) > KEPT_UNITS:
            oldest = self._units[0]
            stop = max((one.stop_us for one in oldest.unit.observations), default=0)
            if len(self._units) <= MOST_UNITS and now_us - stop <= KEPT_US:
                return
            self._base, self._settled = oldest.after, oldest.unit.number
            del self._units[0]
            for one in oldest.unit.observations:
                self._answers.pop(one.id, None)
