"""What holds of the engine whatever is said, in whatever order it comes in, and whatever those who measure think."""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from zlib import crc32

from hypothesis import given, settings
from hypothesis import strategies as st

from consistency.case import wants_of
from consistency.corrections import Corrections
from consistency.engine import ConsistencyEngine
from consistency.misheard import Misheard
from consistency.observation import Modality, Observation, Word
from consistency.ontology import IntentSpec, Ontology, ServiceSpec, SlotSpec
from consistency.policy import EngineRules, Policy
from consistency.verdict import Freeze, Reheard, Scores, Verdict, WantScore
from tests.consistency.saying import form, said, scored, slot
from tests.fakes.judges import DrawnDoubt, DrawnGraph, DrawnJudge, ListedDomain

TURN_S = 4.0
WORDS = (
    "set it to fifteen", "set it to fifty", "fifty", "seven", "no, eight", "no, seven", "call mum", "", "at 7", "at 8"
)  # fmt: skip
MODALITIES: tuple[Modality, ...] = ("speech", "text", "caption", "form")
NOW = 1_000_000_000
MOST_ANSWERS = 1_000
"""An engine that wants more of so short a conversation asks the same again and again."""
BOOKS = Ontology(
    {
        "tables": ServiceSpec(
            "tables",
            "",
            {"book": IntentSpec("book", "", ("time",))},
            {"time": SlotSpec("time", "A number", "number")},
        )
    }
)


@dataclass(frozen=True)
class Said:
    """One thing that was said in a unit."""

    unit: int
    observation: Observation


@st.composite
def conversations(draw: st.DrawFn, units: int = 5) -> list[Said]:
    """A few turns of speech, typing, captions and forms, in the order of their times."""
    log = []
    for unit in range(1, units + 1):
        for number in range(draw(st.integers(0, 3))):
            at = unit * TURN_S + draw(st.integers(0, 30)) / 10
            modality: Modality = draw(st.sampled_from(MODALITIES))
            name = f"{unit}.{number}"
            if modality == "form":
                log.append(Said(unit, form(at, id=name, time=draw(st.sampled_from(["7", "8"])))))
                continue
            text = draw(st.sampled_from(WORDS))
            named = "7" if "7" in text else "8" if "8" in text else draw(st.sampled_from("78"))
            tokens = (slot("time", named),) if draw(st.booleans()) else ()
            passes = draw(st.integers(1, 2)) if modality == "speech" else 1
            for revision in range(passes):
                words = text if revision == passes - 1 else draw(st.sampled_from(WORDS))
                one = said(words, at, modality, name, tokens, revision)
                if modality == "speech":
                    one = replace(one, words=(Word(words, 0.5, one.start_us, one.stop_us),), intent="book")
                if draw(st.booleans()):  # it comes twice: before it is understood, and then
                    log.append(Said(unit, replace(one, normal="", facts=(), tokens=(), intent=None)))
                log.append(Said(unit, one))
    return log


def an_engine(policy: Policy = "later") -> ConsistencyEngine:
    return ConsistencyEngine(
        EngineRules(policy=policy, suspect=0.3, freeze=0.6, rungs=(1, 2, 3)),
        DrawnJudge(),
        DrawnGraph(),
        lambda one: one.text.encode(),
        corrections=Corrections(BOOKS, lambda text: said(text, 0.0).facts),
        misheard=Misheard(DrawnDoubt(), ListedDomain({"time": {"ten": "10"}, "who": {"tom": "tom"}})),
    )


def chance(*of: object) -> int:
    return crc32(repr(of).encode())


def answer(
    engine: ConsistencyEngine,
    order: random.Random,
    units: Iterable[int],
    other_from: int = 99,
    most: int = MOST_ANSWERS,
) -> None:
    """Brings what the engine wants, one after the other, until it wants nothing more, or so many answers. From unit
    `other_from` on it is another sound that was heard."""
    units = sorted(set(units))
    for _ in range(most):
        held = (engine.verdict(unit) for unit in units)
        wants = [want for verdict in held if verdict is not None for want in wants_of(verdict)]
        if not wants:
            return
        want = order.choice(wants)
        sound = want.observation_id, int(want.observation_id.partition(".")[0]) >= other_from
        if isinstance(want, WantScore):
            drawn = [(text, chance(text, sound, want.rung)) for text in want.texts]
            scores = tuple(
                replace(scored(text, -(seed % 200) / 10), rung=want.rung, apart=(("a", "b", -1.0),))
                for text, seed in drawn
                if seed % 8
            )
            engine.observe(Scores(want.observation_id, scores, want.texts, want.rung), NOW)
        else:
            seed = chance(sound, want.rung)
            heard = (
                said(WORDS[seed % len(WORDS)], 1.0, id=f"{want.observation_id}#{want.rung}")
                if seed % 4
                else None
            )
            engine.observe(Reheard(want.observation_id, want.rung, heard), NOW)
    assert most < MOST_ANSWERS, "wants never end"


def play(
    engine: ConsistencyEngine, log: list[Said], seed: int = 0, asks: bool = True, other_from: int = 99
) -> None:
    """Says everything, with answers at any time in between."""
    order = random.Random(seed)
    units = [one.unit for one in log]
    for one in log:
        engine.observe(one.observation, NOW, one.unit, asks)
        if order.random() < 0.5:
            answer(engine, order, units, other_from)
    answer(engine, order, units, other_from)


def state(engine: ConsistencyEngine, log: list[Said]) -> tuple[object, list[Verdict | None]]:
    """All that may be seen of an engine."""
    return engine.snapshot, [engine.verdict(unit) for unit in sorted({one.unit for one in log})]


POLICIES: st.SearchStrategy[Policy] = st.sampled_from(["later", "typed", "confirmed", "ask"])


EVENTFUL = {
    "Suspect": 0.3, "Freeze": 0.15, "Ask": 0.15, "RollBack": 0.15, "realigned": 0.1, "superseded": 0.2,
    "form frozen": 0.03, "second recogniser": 0.08, "judged again": 0.08, "recognised again": 0.08,
    "corrected": 0.1, "lost slot": 0.1, "heard again": 0.05,
}  # fmt: skip
"""What has to come up in at least so many of the conversations that the properties are held on."""


def test_conversations_of_these_properties_come_to_what_they_are_about() -> None:
    """A property that nothing tries to break holds of anything: freezes, roll backs, realigned utterances, forms
    against speech, lost slots, second recognisers and latecomers come up often in what is drawn."""
    seen: Counter[str] = Counter()
    drawn: list[int] = []

    @given(conversations(), POLICIES, st.integers(0, 1_000))
    @settings(max_examples=200, deadline=None, database=None, derandomize=True)
    def draw(log: list[Said], policy: Policy, seed: int) -> None:
        watched = Watched(an_engine(policy))
        order = random.Random(seed)
        shuffled = list(log)
        order.shuffle(shuffled)
        play(watched, shuffled, seed)
        drawn.append(seed)
        seen.update(watched.came_up)

    draw()
    shares = {name: seen[name] / len(drawn) for name in EVENTFUL}
    assert {name: share for name, share in shares.items() if share < EVENTFUL[name]} == {}


class Watched(ConsistencyEngine):
    """An engine that notes what its verdicts come to."""

    def __init__(self, engine: ConsistencyEngine) -> None:
        self.__dict__.update(engine.__dict__)
        self.came_up: set[str] = set()

    def observe(
        self, event: Observation | Scores | Reheard, now_us: int, unit: int = 0, asks: bool = False
    ) -> Verdict:
        verdict = super().observe(event, now_us, unit, asks)
        if self.also:
            self.came_up.add("judged again")
        for one in (verdict, *self.also):
            self.came_up |= {type(one).__name__, *_named(one)}
        return verdict


def _named(verdict: Verdict) -> Iterable[str]:
    reasons = {reason.name for reason in verdict.evidence}
    if getattr(verdict, "adopted", ()):
        yield "realigned"
    if getattr(verdict, "superseded", ()):
        yield "superseded"
    names = [reason.name for reason in verdict.evidence]
    if isinstance(verdict, Freeze) and ("forced_score", "slot") in pairwise(names):
        yield "form frozen"
    if "second_score" in reasons:
        yield "second recogniser"
    if "recognised_again" in reasons:
        yield "recognised again"
    if "corrected" in reasons:
        yield "corrected"
    if "lost_slot" in reasons:
        yield "lost slot"
    if "heard_again" in reasons:
        yield "heard again"


@given(conversations(), POLICIES, st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_engine_ends_in_the_same_state_whatever_comes_in_first(
    log: list[Said], policy: Policy, order: random.Random
) -> None:
    """The same things said at the same times commit the same, byte for byte, in any order of arrival."""
    engine = an_engine(policy)
    play(engine, log)
    shuffled = list(log)
    order.shuffle(shuffled)
    other = an_engine(policy)
    play(other, shuffled, order.randrange(1_000))
    assert state(other, log) == state(engine, log)


@given(conversations(), conversations(), POLICIES, st.integers(0, 5))
@settings(max_examples=100, deadline=None)
def test_engine_rolled_back_goes_on_as_if_nothing_had_happened(
    log: list[Said], other: list[Said], policy: Policy, to: int
) -> None:
    """What was said behind a snapshot, and then rolled back to it, leaves no trace."""
    before = [one for one in log if one.unit <= to]
    after = [one for one in log if one.unit > to]
    detour = [one for one in other if one.unit > to]
    engine = an_engine(policy)
    play(engine, before)
    play(engine, detour, seed=1, other_from=to + 1)
    engine.roll_back(to)
    play(engine, after)
    straight = an_engine(policy)
    play(straight, before)
    play(straight, after)
    assert state(engine, log) == state(straight, log)


@given(conversations(), POLICIES, st.integers(1, 5))
@settings(max_examples=100, deadline=None)
def test_engine_reads_nothing_that_came_later(log: list[Said], policy: Policy, upto: int) -> None:
    """What is made of a unit is the same whatever is said behind it."""
    whole, cut = an_engine(policy), an_engine(policy)
    early = [one for one in log if one.unit <= upto]
    play(cut, early)
    play(whole, early)
    for one in log:
        if one.unit > upto:
            whole.observe(one.observation, NOW, one.unit, True)
    for unit in {one.unit for one in early}:
        assert whole.verdict(unit) == cut.verdict(unit)


@given(conversations(), POLICIES)
@settings(max_examples=60, deadline=None)
def test_engine_commits_nothing_of_a_unit_that_waits(log: list[Said], policy: Policy) -> None:
    """As long as work is wanted for a unit, the state behind it is the state before it, and what was said in it reads
    as it was said."""
    engine = an_engine(policy)
    order = random.Random(0)
    units = sorted({one.unit for one in log})
    said_so_far: dict[str, list[Observation]] = {}
    for one in log:
        said_so_far.setdefault(one.observation.id, []).append(one.observation)
        engine.observe(one.observation, NOW, one.unit, True)
        for _ in range(4):
            verdict = engine.verdict(one.unit)
            if verdict is not None and wants_of(verdict):
                assert engine.snapshot.number < one.unit
                reading = engine.reading(one.observation.id)
                assert any(reading is known for known in said_so_far[one.observation.id])
            assert engine.snapshot.number <= one.unit
            answer(engine, order, units, most=1)
