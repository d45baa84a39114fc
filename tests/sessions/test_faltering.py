"""What sessions do with work that is refused, or not done in time: the answer goes on where it can, and says so."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.scheduling.work import REFUSED, Failed, Reply, ReplyText, Speak, Transcribe
from orchestrator.sessions.faltering import EXPIRED
from orchestrator.sessions.rules import SessionRules
from tests.sessions.talk import Shown, Talk

TELL: dict[str, Any] = {"chorale": {"events": ["chorale.overload"]}}


def refused(talk: Talk, job_id: str, code: str = REFUSED, **fields: Any) -> list[Shown]:
    """The dispatcher has no room for a job."""
    talk.jobs.pop(job_id, None)
    return talk.report(Failed(job_id, code, "no room for more work now", **fields))


def asked(talk: Talk, **session: Any) -> None:
    """The client asks for an answer."""
    talk.update(**session)
    talk.typed("Hello?")
    talk.client("response.create")


@pytest.mark.parametrize("code", [REFUSED, EXPIRED])
def test_faltering_sentence_stays_text_and_its_response_completes(code: str) -> None:
    """The second of three sentences gets no sound: the others do, and all of the text is said."""
    talk = Talk()
    asked(talk)
    talk.writes("One is here. Two is not. Three is here.")
    talk.finishes()
    first, second, third = talk.open_jobs(Speak)
    refused(talk, second, code)
    for job in (first, third):
        talk.sounds(500, job)
        talk.spoke(job)
    response = talk.last("response.done")["response"]
    assert response["status"] == "completed"
    assert response["output"][0]["content"][0]["transcript"] == "One is here. Two is not. Three is here."
    assert len(talk.sound) == 2
    talk.strict.end()


def test_faltering_answer_without_any_sound_is_complete_as_text() -> None:
    """The synthesiser takes nothing at all: the response ends, completed, and the next one may begin."""
    talk = Talk()
    asked(talk)
    talk.writes("One is here. Two is not. ")
    talk.finishes()
    for job in talk.open_jobs(Speak):
        refused(talk, job)
    assert talk.last("response.done")["response"]["status"] == "completed"
    assert talk.sound == []
    assert talk.history()[-1] == ("assistant", "One is here. Two is not. ")
    talk.client("response.create")
    assert talk.open_jobs(Reply)


def test_faltering_sentence_that_came_in_part_keeps_its_sound() -> None:
    """What was sent of an expired sentence was heard; its response goes on behind it."""
    talk = Talk()
    asked(talk)
    talk.writes("One is here. Two is not. ")
    talk.finishes()
    first, second = talk.open_jobs(Speak)
    talk.sounds(300, first)
    refused(talk, first, EXPIRED)
    talk.sounds(400, second)
    talk.spoke(second)
    assert talk.last("response.done")["response"]["status"] == "completed"
    assert len(talk.sound) == 2


def test_faltering_lets_later_sentences_be_made() -> None:
    """Sentences that waited for their turn are begun when one before them is given up."""
    talk = Talk()
    asked(talk)
    talk.writes("".join(f"This is number {n}. " for n in range(8)))
    before = talk.open_jobs(Speak)
    refused(talk, before[0])
    assert len(talk.open_jobs(Speak)) == len(before)
    assert set(talk.open_jobs(Speak)) - set(before)


def test_faltering_worker_fails_the_response_as_ever() -> None:
    """A synthesiser that broke is no overload: the response says that it failed."""
    talk = Talk()
    asked(talk, **TELL)
    talk.writes("One is here. Two ")
    refused(talk, talk.open_jobs(Speak)[0], "worker_failed")
    assert talk.last("response.done")["response"]["status_details"]["error"]["code"] == "worker_failed"
    assert talk.all("chorale.overload") == []


def test_faltering_reply_fails_with_when_to_try_again() -> None:
    """No model has time: the response fails at once, with the code and the time."""
    talk = Talk()
    asked(talk, **TELL)
    refused(talk, talk.reply_job(), retry_after_s=2.5, reason="shed")
    (told,) = talk.all("chorale.overload")
    done = talk.last("response.done")["response"]
    assert told["reason"] == "shed"
    assert told["kind"] == "llm"
    assert told["retry_after_s"] == 2.5
    assert told["response_id"] == done["id"]
    error = done["status_details"]["error"]
    assert done["status"] == "failed"
    assert error["code"] == REFUSED
    assert error["message"] == "no room for more work now; try again in 2.5 s"


def test_faltering_transcription_fails_with_when_to_try_again() -> None:
    """What was said cannot be written down: the client hears it of the item, once."""
    talk = Talk()
    talk.update(audio={"input": {"transcription": {"model": "x"}}}, **TELL)
    talk.speak()
    while talk.finals():  # an early one is asked for again
        refused(talk, talk.finals()[0], retry_after_s=1.0, reason="queue_full")
    failed = talk.last("conversation.item.input_audio_transcription.failed")
    (told,) = talk.all("chorale.overload")
    assert (told["kind"], told["item_id"]) == ("asr", failed["item_id"])
    assert failed["error"]["code"] == REFUSED
    assert failed["error"]["message"].endswith("try again in 1.0 s")


def test_faltering_understanding_is_told_and_the_answer_comes_all_the_same() -> None:
    """What nobody had time to understand is answered unverified."""
    talk = Talk()
    talk.meaning = lambda text: None
    talk.update(**TELL)
    talk.typed("Hello?")
    talk.client("response.create")
    (job_id,) = talk.thoughts
    talk.thoughts.clear()
    refused(talk, job_id, reason="queue_full")
    (told,) = talk.all("chorale.overload")
    assert told["kind"] == "understand"
    assert told["item_id"] in talk.strict.items
    assert talk.open_jobs(Reply)


def test_faltering_is_told_once_for_the_sentences_of_a_response() -> None:
    """Twenty sentences without sound are one thing to know; the next response is another."""
    talk = Talk()
    talk.update(**TELL)
    for _ in range(2):
        talk.typed("Hello?")
        talk.client("response.create")
        talk.writes("One is here. Two is not. Three is here.")
        talk.finishes()
        for job in talk.open_jobs(Speak):
            refused(talk, job)
    first, second = talk.all("chorale.overload")
    assert first["response_id"] != second["response_id"]


@pytest.mark.parametrize("session", [{}, {"chorale": {"events": ["chorale.verdict"]}}])
def test_faltering_is_told_to_those_who_asked_only(session: dict[str, Any]) -> None:
    """No client sees an event of Chorale's own that it does not know."""
    talk = Talk()
    asked(talk, **session)
    talk.writes("One is here. Two ")
    refused(talk, talk.open_jobs(Speak)[0])
    refused(talk, talk.reply_job())
    assert talk.all("chorale.overload") == []


def test_faltering_draft_is_nobodys_business() -> None:
    """An early transcript that is refused shows nowhere: the final one is asked for as ever."""
    talk = Talk()
    talk.update(**TELL)
    talk.hear(1_000, 0.95)
    for job in talk.open_jobs(Transcribe):
        refused(talk, job)
    talk.hear(700, 0.01)
    talk.transcribed("hello")
    assert talk.all("chorale.overload") == []
    assert talk.open_jobs(Reply)


def test_faltering_fails_the_response_where_the_rules_say_so() -> None:
    """Sessions recorded before sentences could stay text replay as they were."""
    talk = Talk(rules=replace(SessionRules(), gives_way=False))
    asked(talk, **TELL)
    talk.writes("One is here. Two ")
    refused(talk, talk.open_jobs(Speak)[0], retry_after_s=2.0)
    done = talk.last("response.done")["response"]
    assert done["status"] == "failed"
    assert done["status_details"]["error"]["message"] == "no room for more work now"
    assert talk.all("chorale.overload") == []


def test_faltering_sentence_counts_as_heard_with_what_was_heard_behind_it() -> None:
    """Cut in the third sentence: the second, which was only shown, stands before what was heard of it."""
    talk = Talk()
    asked(talk)
    talk.writes("One is here. Two is not. Three is very long indeed and goes on.")
    talk.finishes()
    first, second, third = talk.open_jobs(Speak)
    refused(talk, second)
    talk.sounds(1_000, first)
    talk.spoke(first)
    talk.sounds(4_000, third)
    talk.wait(3_000)
    talk.hear(500, 0.95)
    heard = talk.history()[-1][1]
    assert heard.startswith("One is here. Two is not. Three is")
    assert len(heard) < len("One is here. Two is not. Three is very long indeed and goes on.")


def test_faltering_tells_the_first_of_each_response_though_two_run() -> None:
    """An answer and one out of band lose sentences in turn: each is told of once."""
    talk = Talk()
    asked(talk, **TELL)
    talk.writes("One is here. Two is not. Three is ")
    ours = talk.open_jobs(Speak)
    main = talk.reply_job()
    talk.client("response.create", response={"conversation": "none"})
    (aside,) = set(talk.open_jobs(Reply)) - {main}
    talk.report(ReplyText(aside, "Four is here. Five is not. Six is "))
    theirs = [job for job in talk.open_jobs(Speak) if job not in ours]
    assert len(ours) == 2
    for mine, other in zip(ours, theirs, strict=True):
        refused(talk, mine)
        refused(talk, other)
    told = [event["response_id"] for event in talk.all("chorale.overload")]
    assert len(told) == len(set(told)) == 2
