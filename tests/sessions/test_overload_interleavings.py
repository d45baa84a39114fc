"""A session with too little room, under any order of events: work is refused at random, clients come and go."""

from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from orchestrator.clock import US_PER_MS
from orchestrator.scheduling.refusals import SPECULATIVE
from orchestrator.scheduling.work import REFUSED, Failed, Reply, Speak
from orchestrator.sessions import events as on
from orchestrator.sessions.faltering import EXPIRED
from orchestrator.sessions.links import LinkKind
from orchestrator.sessions.states import Life
from tests.sessions.agreeing import EVENTS
from tests.sessions.talk import Talk
from tests.sessions.test_machine import SessionMachine

_ABANDONED_MS = 200


class CrowdedMachine(SessionMachine):
    """Plays users, clients and workers against one session of a server that has too much to do.

    Its talk is replayed as every other: a session with refusals is made again to the last byte.
    """

    def __init__(self) -> None:
        super().__init__()
        rules = replace(self.talk.heart._rules, abandoned_us=_ABANDONED_MS * US_PER_MS)
        self.talk = Talk(rules=rules, kind=LinkKind.CALL)
        self.talk.meaning = lambda text: None
        self.is_told = False

    @initialize(is_told=st.booleans())
    def ask_to_be_told(self, is_told: bool) -> None:
        """Some clients want to know what was left out."""
        self.is_told = is_told and not self.is_plain
        if not self.is_plain:
            wanted = [*EVENTS, "chorale.overload"] if self.is_told else EVENTS
            self.talk.update(chorale={"typed_turns": True, "events": wanted})

    @precondition(lambda self: self.talk.jobs or self.talk.thoughts)
    @rule(
        code=st.sampled_from([REFUSED, EXPIRED]),
        reason=st.sampled_from(["queue_full", "tenant_limit", "shed", SPECULATIVE, ""]),
        retry_after_s=st.sampled_from([0.0, 1.5]),
        data=st.data(),
    )
    def refuse(self, code: str, reason: str, retry_after_s: float, data: st.DataObject) -> None:
        """There is no room for one of the jobs that wait, whichever it is."""
        job_id = data.draw(st.sampled_from([*self.talk.jobs, *self.talk.thoughts]))
        job = self.talk.jobs.pop(job_id, None)
        self.talk.thoughts.pop(job_id, None)
        running = {id for id, response in self.talk.strict.responses.items() if not response.done}
        shown = self.talk.report(Failed(job_id, code, "no room now", retry_after_s, reason))
        assert sum(event["type"] == "chorale.overload" for event in shown) <= self.is_told
        if job is not None and isinstance(job.work, Speak):
            # Whose sentence it was goes on, or was complete but for that.
            failed = [
                e for e in shown if e["type"] == "response.done" and e["response"]["status"] == "failed"
            ]
            assert not failed
        elif job is not None and isinstance(job.work, Reply) and not job.speculative:
            done = {e["response"]["id"] for e in shown if e["type"] == "response.done"}
            begun = {e["response"]["id"] for e in shown if e["type"] == "response.created"}
            # Behind those that ran, a turn may be told as failed whose words were lost meanwhile.
            assert done - begun <= running
            assert len(done & begun) <= 1

    @precondition(lambda self: self.talk.heart.life is not Life.CLOSED)
    @rule(ms=st.sampled_from([0, 150, 250, 700]))
    def come_and_go(self, ms: int) -> None:
        """The connection breaks, and is back soon, or not so soon."""
        was_there = "link" in self.talk.heart._attendance
        self.talk.step(on.LinkLeft("link"))
        self.talk.wait(ms)
        if ms > _ABANDONED_MS and was_there:  # who was gone before asks for nothing, but in this machine
            assert not [job for job in self.talk.jobs.values() if isinstance(job.work, Reply | Speak)]
        if self.talk.heart.life is not Life.CLOSED:
            self.talk.step(on.LinkJoined("link", LinkKind.CALL))

    @invariant()
    def overload_is_told_to_who_asked(self) -> None:
        """Nobody else sees it, and nobody a reason that is the server's own affair."""
        told = self.talk.all("chorale.overload")
        assert self.is_told or not told
        assert SPECULATIVE not in [event["reason"] for event in told]

    @invariant()
    def responses_are_done_once(self) -> None:
        """However often its parts were refused."""
        done: list[Any] = [event["response"]["id"] for event in self.talk.all("response.done")]
        assert len(done) == len(set(done))


def test_turn_whose_words_are_lost_is_told_of_behind_the_response_that_its_client_asked_for() -> None:
    """The one is refused for want of room, the other fails: each is done, once."""
    talk = Talk()
    talk.speak()
    talk.client("response.create")
    talk.failed(talk.finals()[0])
    talk.report(Failed(talk.reply_job(), REFUSED, "no room now", 0.0, "queue_full"))
    first, second = (event["response"] for event in talk.all("response.done"))
    assert (first["status"], second["status"]) == ("failed", "failed")
    assert first["id"] != second["id"]


TestCrowdedSession = CrowdedMachine.TestCase
TestCrowdedSession.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
