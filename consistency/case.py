"""One unit while it is judged, and what was made of it in the end. Pure data of the engine's own."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from consistency.asking import Question
from consistency.corrections import Amendment
from consistency.finding import Finding
from consistency.observation import Observation, Token
from consistency.policy import Policy, is_near, place
from consistency.slots import kept
from consistency.snapshots import Snapshot
from consistency.units import Unit
from consistency.verdict import Evidence, Freeze, Suspect, Verdict, Want, WantScore

MOST_CANDIDATES = 8
"""Observations that a new one is compared with."""


@dataclass(slots=True)
class Judged:
    """A unit and what was made of it. `adopted` are the readings that stand for ids of this unit or earlier ones."""

    unit: Unit
    verdict: Verdict
    after: Snapshot
    adopted: dict[str, Observation] = field(default_factory=dict)
    superseded: tuple[str, ...] = ()
    asked: Question | None = None
    corrected: dict[str, Observation] = field(default_factory=dict)
    """What this unit corrects, by id, as it reads since."""


@dataclass(slots=True)
class Case:
    """One unit while it is judged. `readings`: what stands of it and of the units before. `settled`: ids that are not
    compared with, since the user has just been asked about them."""

    unit: Unit
    readings: dict[str, Observation]
    policy: Policy
    may_ask: bool = True
    findings: list[Finding] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    adopted: dict[str, Observation] = field(default_factory=dict)
    replaced: list[Observation] = field(default_factory=list)
    superseded: list[str] = field(default_factory=list)
    commits: list[Observation] = field(default_factory=list)
    settled: set[str] = field(default_factory=set)
    opened: tuple[Observation, Observation] | None = None
    corrected: dict[str, Observation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.readings |= {one.id: one for one in self.unit.standing}

    def near(self, new: Observation, within_us: int) -> list[str]:
        """Returns the ids of what this observation may restate or correct, the nearest last."""
        near = [
            key
            for key, one in self.readings.items()
            if key != new.id
            and key not in self.settled
            and place(one) < place(new)
            and is_near(one, new, within_us)
        ]
        return near[-MOST_CANDIDATES:]

    def note(self, finding: Finding, pair: tuple[Observation, Observation] | None = None) -> None:
        """Takes what came of a pair; it counts for the pairs behind it."""
        self.findings.append(finding)
        self.evidence.extend(finding.evidence)
        if finding.adopted is not None:
            key, reading = finding.adopted
            if key in self.readings:
                self.replaced.append(self.readings[key])
                self.readings[key] = self.adopted[key] = reading
        if finding.lost is not None and finding.lost.id in self.readings:
            self.replaced.append(self.readings[finding.lost.id])
            self.readings[finding.lost.id] = finding.lost
            if finding.reads is not None:
                self.corrected[finding.lost.id] = finding.reads
        if finding.loser is not None:
            self.superseded.append(finding.loser.id)
            self.replaced.append(finding.loser)
            self.readings.pop(finding.loser.id, None)
        if finding.state == "open" and self.opened is None:
            self.opened = finding.between or pair

    def amend(self, found: Amendment) -> None:
        """Takes what a correction does: its values are where they belong, what it corrects reads otherwise."""
        self.readings[found.new.id] = found.new
        self.corrected |= {one.id: one for one in (*found.earlier, found.new)}
        self.replaced.append(replace(found.new, tokens=found.replaced))
        self.evidence.append(Evidence("corrected", 1.0, found.about))

    def settle(self, asked: Question, wins: Observation, loses: Observation, answered: bool) -> None:
        """Takes what a question came to. Where it was about a part, the loser's other slots stand. Values that are
        an answer ("ten") have chosen, and fill no slot of their own."""
        self.settled = {asked.a.id, asked.b.id}
        self.replaced.append(loses)
        if asked.of_one_sound and wins is asked.b:
            self.readings[asked.a.id] = self.adopted[asked.a.id] = wins
        elif not asked.of_one_sound:
            self.superseded.append(loses.id)
            self.readings.pop(loses.id, None)
        if asked.names_a_part:
            self.commits.append(replace(loses, tokens=kept(loses, wins)))
        self.commits.append(wins)
        for one in self.unit.standing if answered else ():
            if one.modality != "form" and one.intent is None:
                tokens = tuple(token for token in one.tokens if token.intent)
                self.readings[one.id] = replace(one, tokens=tokens)


def wants_of(verdict: Verdict) -> tuple[Want, ...]:
    """Returns the work that a verdict waits for."""
    return verdict.wants if isinstance(verdict, Suspect | Freeze) else ()


def wanted_texts(units: Iterable[Judged], observation_id: str, rung: int) -> Iterator[str]:
    """Returns the texts that units wait for to be scored under one sound at a rung."""
    for judged in units:
        for want in wants_of(judged.verdict):
            if isinstance(want, WantScore) and (want.observation_id, want.rung) == (observation_id, rung):
                yield from want.texts


def merged(wants: Iterable[Want]) -> tuple[Want, ...]:
    """Returns the wants with everything that is to be scored under one sound in one of them."""
    texts: dict[tuple[str, int], dict[str, None]] = {}
    others: dict[Want, None] = {}
    for want in wants:
        if isinstance(want, WantScore):
            texts.setdefault((want.observation_id, want.rung), {}).update(dict.fromkeys(want.texts))
        else:
            others[want] = None
    return (*(WantScore(key, tuple(named), rung) for (key, rung), named in texts.items()), *others)


def newest_of_each_slot(tokens: Iterable[Token]) -> tuple[Token, ...]:
    """Of one slot of one intent the last one holds; whoever repeats it says nothing new."""
    newest: dict[tuple[str, str, str], Token] = {}
    for one in tokens:
        key = (one.intent, one.slot, one.act)
        newest.pop(key, None)
        newest[key] = one
    return tuple(newest.values())
