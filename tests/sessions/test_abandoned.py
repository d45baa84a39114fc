"""A client that is gone: nothing is made for it for long, nothing that it said is lost, and it may come back."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.clock import US_PER_S
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.work import Replied, Reply, ReplyText, Report, Speak, Transcribe
from orchestrator.sessions import events as on
from orchestrator.sessions.links import LinkKind
from orchestrator.sessions.rules import SessionRules
from tests.fakes.workers import FakeWorkers, obliging
from tests.sessions.agreeing import FIFTEEN, conflict, fits
from tests.sessions.agreeing import talk as conflicting
from tests.sessions.running import House, client, in_house
from tests.sessions.talk import Talk

RULES = replace(SessionRules(), abandoned_us=3 * US_PER_S)


def leave(talk: Talk) -> None:
    talk.step(on.LinkLeft("link"))


def come_back(talk: Talk) -> None:
    talk.step(on.LinkJoined("link", LinkKind.WEBSOCKET))


def answering(rules: SessionRules = RULES) -> Talk:
    """A reply is under way, one sentence of it on its way to sound."""
    talk = Talk(rules=rules)
    talk.typed("Hello?")
    talk.client("response.create")
    talk.writes("One is here. Two ")
    return talk


def test_abandoned_reply_is_taken_back_with_its_sentences() -> None:
    """Three seconds after the last link left nothing of the language model and the synthesiser goes on."""
    talk = answering()
    leave(talk)
    talk.wait(2_999)
    assert talk.open_jobs(Reply)
    assert talk.open_jobs(Speak)
    talk.wait(2)
    assert not talk.jobs
    assert {type(job.work) for job in talk.taken_back} == {Reply, Speak}
    details = talk.last("response.done")["response"]["status_details"]
    assert (details["type"], details["reason"]) == ("cancelled", "client_cancelled")
    talk.strict.end()


def test_abandoned_no_sooner_than_the_last_link_left() -> None:
    """Another link of the session is there: its answer is made to the end."""
    talk = answering()
    talk.step(on.LinkJoined("other", LinkKind.WEBSOCKET))
    leave(talk)
    talk.wait(10_000)
    assert talk.open_jobs(Reply)


def test_abandoned_is_forgotten_when_the_client_comes_back_in_time() -> None:
    """The clock starts anew with each leaving."""
    talk = answering()
    leave(talk)
    talk.wait(2_900)
    come_back(talk)
    talk.wait(10_000)
    assert talk.open_jobs(Reply)
    leave(talk)
    talk.wait(2_900)
    assert talk.open_jobs(Reply)


def test_abandoned_responses_out_of_band_stop_too() -> None:
    """All that runs is for somebody who is gone."""
    talk = answering()
    talk.client("response.create", response={"conversation": "none"})
    leave(talk)
    talk.wait(3_001)
    assert not talk.jobs
    assert [done["response"]["status"] for done in talk.all("response.done")] == ["cancelled"] * 2


def test_abandoned_speech_is_transcribed_all_the_same() -> None:
    """What the user said before he left reaches the conversation (F-T2)."""
    talk = Talk(rules=RULES)
    talk.hear(1_000, 0.95)
    leave(talk)
    talk.wait(5_000)
    (final,) = talk.finals()
    assert isinstance(talk.jobs[final].work, Transcribe)
    talk.transcribed("remember this")
    assert talk.history()[-1] == ("user", "remember this")


def test_abandoned_answer_of_which_nothing_was_heard_is_made_for_who_comes_back() -> None:
    """The server owed an answer to what was said; it still does."""
    talk = Talk(rules=RULES)
    talk.speak()
    talk.transcribed("what time is it")
    talk.writes("It is ")
    leave(talk)
    talk.wait(4_000)
    assert not talk.open_jobs(Reply)
    come_back(talk)
    assert talk.prompt()[-1] == ("user", "what time is it")


def test_abandoned_turn_whose_words_changed_meanwhile_is_answered_once_somebody_is_back() -> None:
    """The client goes while it is answered, and only then the sound says what he meant: the answer to the other words
    is taken back, and the right one is made for who comes back, however much later."""
    one = conflicting(abandoned_us=3 * US_PER_S)
    conflict(one)
    one.wait(1_600)
    assert one.open_jobs(Reply)
    leave(one)
    one.wait(1_000)
    fits(one, -1.0)
    assert not one.open_jobs(Reply)
    one.wait(4_000)
    one.step(on.TimePassed())
    come_back(one)
    assert one.prompt()[-1] == ("user", f"{FIFTEEN}\n{FIFTEEN}")


def test_abandoned_answer_keeps_what_was_heard_of_it() -> None:
    """A sentence had sounded when the connection broke: that is what stays, and no more of it is counted as heard."""
    talk = answering()
    talk.sounds(2_000)
    talk.wait(2_000)
    leave(talk)
    talk.wait(4_000)
    assert talk.history()[-1] == ("assistant", "One is here.")


def test_abandoned_never_where_the_rules_do_not_say_so() -> None:
    """Sessions that were recorded before go on answering until their grace is over."""
    talk = answering(SessionRules())
    leave(talk)
    talk.wait(20_000)
    assert talk.open_jobs(Reply)


@pytest.mark.parametrize("way", ["text", "sound"])
def test_abandoned_work_leaves_the_workers(way: str) -> None:
    """F-L5: a client drops in the middle of an answer; its jobs are cancelled where they run, and their places are
    free at once."""

    def slow(job: Job) -> list[Report]:
        if isinstance(job.work, Reply):
            end: list[Report] = [] if way == "text" else [Replied(job.id, "stop")]
            return [ReplyText(job.id, "One is here. Two is here. "), *end]
        return [] if isinstance(job.work, Speak) else list(obliging(job))

    workers = FakeWorkers(slow)

    async def test(house: House) -> None:
        session, _ = house.open()
        await client(session, "response.create")
        await asyncio.sleep(1)
        running = {job.id for job in workers.jobs}
        assert running
        session.detach("link")
        await asyncio.sleep(3.5)
        assert set(workers.cancelled) == running - finished(workers.jobs, way)
        scheduler = house.dispatcher.statistics().scheduler
        assert sum(scheduler.running.values()) == 0

    in_house(test, workers, rules=replace(RULES, grace_us=30 * US_PER_S))


def finished(jobs: list[Job], way: str) -> set[Any]:
    return set() if way == "text" else {job.id for job in jobs if isinstance(job.work, Reply)}
