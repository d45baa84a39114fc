"""Workers answer in any order: what a conversation has committed in the end, and what a model is told, is the same."""

import random
from zlib import crc32

from hypothesis import given, settings
from hypothesis import strategies as st

from consistency.misheard import Misheard
from consistency.observation import Token
from consistency.policy import EngineRules, Policy
from orchestrator.clock import US_PER_S
from orchestrator.scheduling.work import (
    Failed,
    Report,
    Score,
    Scored,
    SlotFound,
    TextFit,
    Transcribe,
    Transcribed,
    Understood,
    WordFound,
    WordsApart,
)
from orchestrator.sessions.rules import ConsistencyRules, SessionRules
from tests.fakes.judges import DrawnDoubt, DrawnGraph, DrawnJudge, ListedDomain
from tests.sessions.talk import Talk

WORDS = ("set it to fifteen", "set it to fifty", "fifty", "seven", "no, eight", "call mum")
STEPS = st.one_of(
    st.tuples(st.just("speak"), st.integers(16, 40)),
    st.tuples(st.just("type"), st.integers(0, 5)),
    st.tuples(st.just("form"), st.integers(7, 8)),
    st.tuples(st.just("caption"), st.integers(0, 5)),
    st.tuples(st.just("wait"), st.integers(10, 60)),
)


def drawn(*of: object) -> int:
    return crc32(repr(of).encode())


class Slow:
    """A session whose workers answer whenever they are told to, always the same to the same question."""

    def __init__(self, policy: Policy, asks: bool, seed: int) -> None:
        rules = ConsistencyRules(
            engine=EngineRules(policy=policy, suspect=0.3, freeze=0.6, rungs=(1, 2, 3)),
            deadline_us=3_600 * US_PER_S,
            asks=asks,
            judge=DrawnJudge(),
            graph=DrawnGraph(),
            misheard=Misheard(DrawnDoubt(), ListedDomain({"time": {"ten": "10"}, "who": {"tom": "tom"}})),
            fingerprint=lambda one: one.text.encode(),
        )
        self.talk = Talk(rules=SessionRules(consistency=rules, early_replies=False))
        self.talk.meaning = lambda text: None
        self.talk.update(chorale={"typed_turns": True}, output_modalities=["text"])
        self._order = random.Random(seed)

    def do(self, step: str, number: int) -> None:
        match step:
            case "speak":
                self.talk.hear(number * 32, 0.95)
                self.talk.hear(640, 0.01)
            case "type":
                self.talk.typed(WORDS[number])
            case "form":
                self.talk.client("chorale.token", slots=[{"name": "time", "value": str(number)}])
            case "caption":
                spoken = list(self.talk.strict.committed)
                known = [name for name in spoken if self.talk.heart.checker.place(name) is not None]
                if known:
                    self.talk.client("chorale.caption", item_id=known[-1], text=WORDS[number])
            case _:
                self.talk.hear(number * 32, 0.01)

    def answer(self, most: int) -> None:
        """Up to so many answers come in, in an order of their own."""
        for _ in range(most):
            open_jobs = [*self.talk.thoughts, *self.talk.open_jobs(Score), *self.talk.open_jobs(Transcribe)]
            if not open_jobs:
                return
            self.talk.report(self._said(self._order.choice(open_jobs)))

    def _said(self, job_id: str) -> Report:
        if job_id in self.talk.thoughts:
            text = self.talk.thoughts.pop(job_id).text
            chance = drawn(text)
            slots = (SlotFound("time", str(7 + chance % 2), -1, -1, 1.0),) if chance % 3 else ()
            return Understood(job_id, normal=text, slots=slots, intent="book" if slots else None)
        work = self.talk.jobs.pop(job_id).work
        if isinstance(work, Score):
            chances = [(text, drawn(text, work.start, work.rung)) for text in work.texts]
            fits = tuple(
                TextFit(text, text, -10.0 - chance % 200 / 10, -1.0, -2.0, (WordsApart("a", "b", -1.0),))
                for text, chance in chances
            )
            return Scored(job_id, TextFit(work.recognised, work.recognised, -10.0, -1.0, -2.0), fits)
        assert isinstance(work, Transcribe)
        chance = drawn(work.start, work.stop, work.rung)
        if work.rung and chance % 4 == 0:
            return Failed(job_id, "worker_failed", "gone")
        text = WORDS[chance % len(WORDS)]
        words = tuple(WordFound(word, n / 4, n / 4 + 0.2, 0.5) for n, word in enumerate(text.split()))
        return Transcribed(job_id, text, words, rung=work.rung)

    def end(self) -> tuple[tuple[Token, ...], tuple[bytes, ...], list[tuple[str, str]]]:
        """The tokens that hold, the fingerprints of what was said last, and the user's words as a model sees them. (Ids
        count responses too, so digests with ids in them are compared in the engine's own tests.)"""
        while self.talk.thoughts or self.talk.open_jobs(Score) or self.talk.open_jobs(Transcribe):
            self.answer(1)
        said = [(role, words) for role, words in self.talk.history() if role == "user"]
        snapshot = self.talk.heart.checker.engine.snapshot
        return snapshot.tokens, snapshot.prints, said


@given(
    st.lists(STEPS, min_size=1, max_size=6),
    st.sampled_from(["later", "typed", "confirmed"]),
    st.integers(0, 2**20),
    st.lists(st.integers(0, 3), min_size=6, max_size=6),
)
@settings(max_examples=80, deadline=None)
def test_session_commits_the_same_whoever_answers_first(
    steps: list[tuple[str, int]], policy: Policy, seed: int, counts: list[int]
) -> None:
    """The same things said at the same times, answered at once or late and in any order."""
    one, other = Slow(policy, False, 0), Slow(policy, False, seed)
    for step, count in zip(steps, counts, strict=False):
        one.do(*step)
        one.answer(100)
        other.do(*step)
        other.answer(100 if step[0] == "speak" else count)
    assert other.end() == one.end()
