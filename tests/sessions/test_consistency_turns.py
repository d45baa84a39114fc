"""A turn in several modalities is answered once they agree, or once it is settled who is right."""

import pytest

from orchestrator.clock import US_PER_MS
from orchestrator.scheduling.work import Reply, Score, Transcribe, Transcribed
from orchestrator.sessions import effects as do
from orchestrator.sessions import events as on
from orchestrator.sessions.rules import ConsistencyRules, SessionRules
from tests.sessions.agreeing import (
    FIFTEEN,
    FIFTY,
    conflict,
    fits,
    recognised_again,
    rules,
    scores,
    talk,
    verdicts,
)
from tests.sessions.talk import Talk

COMPLETED = "conversation.item.input_audio_transcription.completed"


def test_session_answers_nothing_while_a_turn_contradicts_itself() -> None:
    """No response begins before the verdict; the work that leads to it is urgent and goes where the sound was heard."""
    one = talk()
    conflict(one)
    assert one.all("response.created") == []
    (job_id,) = scores(one)
    job = one.jobs[job_id]
    assert job.level == 0
    assert isinstance(job.work, Score)
    assert job.work.texts == (FIFTEEN,)
    assert job.work.recognised == FIFTY
    assert job.work.near
    assert verdicts(one)[-1] == "suspect"
    assert one.all(COMPLETED) == []


def test_session_mends_what_was_misheard_before_anyone_sees_it() -> None:
    """The transcript that is told is the one that fits the sound; the model is asked with it."""
    one = talk()
    spoken, _ = conflict(one)
    fits(one, -1.0)
    assert [event["transcript"] for event in one.all(COMPLETED)] == [FIFTEEN]
    realigned = one.last("chorale.realigned")
    assert (realigned["item_id"], realigned["previous"], realigned["transcript"]) == (spoken, FIFTY, FIFTEEN)
    assert verdicts(one)[-1] == "accept"
    assert one.prompt()[-1] == ("user", f"{FIFTEEN}\n{FIFTEEN}")


def test_session_leaves_out_what_lost() -> None:
    """Where the user said one thing and typed another, the later word is what the model sees; the item stays."""
    one = talk()
    spoken, _ = conflict(one)
    fits(one, -20.0)
    assert one.prompt()[-1] == ("user", FIFTEEN)
    assert one.heart.conversation.get(spoken) is not None
    assert one.all("conversation.item.deleted") == []
    assert one.last(COMPLETED)["transcript"] == FIFTY
    assert one.all("chorale.realigned") == []


def test_session_has_frozen_speech_recognised_again_at_the_next_rung() -> None:
    """A conflict that the sound does not settle goes up the ladder, urgently, over the same extent."""
    one = talk()
    conflict(one)
    work = one.jobs[scores(one)[0]].work
    assert isinstance(work, Score)
    fits(one, -6.0)
    assert len(one.all("chorale.frozen")) == 1
    for rung in (1, 2):
        (job_id,) = one.open_jobs(Transcribe)
        job = one.jobs[job_id]
        assert isinstance(job.work, Transcribe)
        assert (job.level, job.work.rung, job.work.start, job.work.stop) == (0, rung, work.start, work.stop)
        recognised_again(one, FIFTY if rung == 1 else FIFTEEN)
    assert verdicts(one) == ["accept", "suspect", "freeze", "accept"]
    assert one.last(COMPLETED)["transcript"] == FIFTEEN
    assert one.open_jobs(Reply)


def test_session_begins_to_write_before_the_verdict_and_shows_nothing_of_it() -> None:
    """The model may write; no word of it leaves before the turn is accepted."""
    one = talk()
    conflict(one)
    (job_id,) = one.open_jobs(Reply)
    assert one.jobs[job_id].speculative
    one.writes("Fifty minutes, fine.")
    assert one.all("response.created") == []
    fits(one, -1.0)
    (fresh,) = one.open_jobs(Reply)
    assert fresh != job_id
    assert "Fifty" not in str(one.log)


def test_session_uses_what_was_written_where_the_words_stand() -> None:
    """A turn that turns out to agree is answered with what was written meanwhile."""
    one = talk()
    spoken, _ = conflict(one)
    (job_id,) = one.open_jobs(Reply)
    one.writes("Fine.")
    one.failed(scores(one)[0])
    for _ in range(2):
        one.failed(one.open_jobs(Transcribe)[0])
    assert one.heart.conversation.get(spoken) is not None
    assert "response.created" in one.types()
    entry = one.heart.conversation.get(spoken)
    assert entry is not None
    assert entry.left_out
    (now,) = one.open_jobs(Reply)
    assert now != job_id


def test_session_answers_unverified_when_there_is_no_more_time() -> None:
    """After `deadline_us` the turn is answered as it is."""
    one = talk()
    conflict(one)
    one.wait(1_499)
    assert one.all("response.created") == []
    one.wait(2)
    assert len(one.all("response.created")) == 1
    verdict = one.last("chorale.verdict")
    assert (verdict["verdict"], verdict["verified"]) == ("accept", False)
    assert one.last(COMPLETED)["transcript"] == FIFTY


def test_session_waits_for_no_understanding_where_nothing_can_contradict() -> None:
    """A worker that is gone holds up no turn of one modality."""
    one = talk()
    one.meaning = lambda text: None
    one.speak()
    one.transcribed("Hello.")
    assert len(one.all("response.created")) == 1
    one.answer("Hi.")
    one.wait(9_000)
    one.typed("How are you?")
    assert len(one.all("response.created")) == 2


def test_session_waits_for_an_understanding_no_longer_than_the_deadline() -> None:
    """Typed words beside spoken ones wait until they are understood, or until it has taken too long."""
    one = talk()
    one.meaning = lambda text: None
    conflict(one)
    assert one.all("response.created") == []
    one.wait(1_501)
    assert len(one.all("response.created")) == 1


def test_session_that_closes_tells_the_transcripts_that_waited() -> None:
    """Nobody's words are lost for want of a verdict."""
    one = talk(drain_us=100 * US_PER_MS)
    conflict(one)
    one.step(on.DrainAsked(int(one.now_ms * US_PER_MS) + 100 * US_PER_MS))
    one.wait(200)
    assert one.closed is not None
    assert one.last(COMPLETED)["transcript"] == FIFTY
    one.strict.end()


def test_session_holds_no_history_against_what_is_said() -> None:
    """Items that sync a conversation are not said now: they contradict nothing, and nothing waits for them."""
    one = talk(typed_turns=False)
    one.typed(FIFTEEN)
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Sure."}]}
    one.client("conversation.item.create", item=item)
    one.speak()
    one.transcribed(FIFTY)
    assert scores(one) == []
    assert len(one.all("response.created")) == 1


def test_session_counts_typed_text_that_a_plain_client_asks_about() -> None:
    """A user's text at the end of the conversation is said at `response.create`, at the time when it was sent."""
    one = talk(typed_turns=False)
    one.update(audio={"input": {"turn_detection": {"type": "server_vad", "create_response": False}}})
    one.speak()
    one.transcribed(FIFTY)
    one.typed(FIFTEEN)
    assert scores(one) == []
    one.client("response.create", response={"metadata": {"a": "b"}})
    assert len(scores(one)) == 1
    assert len(one.all("response.created")) == 1
    one.writes("early")
    assert one.all("response.output_text.delta") == []
    fits(one, -20.0)
    assert one.prompt()[-1] == ("user", FIFTEEN)
    assert one.last("response.created")["response"]["metadata"] == {"a": "b"}


def test_session_tells_only_those_who_ask() -> None:
    """A plain client sees the catalogue's events alone, whatever is decided."""
    one = Talk(rules=rules())
    one.meaning = talk().meaning
    one.update(output_modalities=["text"], audio={"input": {"transcription": {"model": "x"}}})
    one.speak()
    one.transcribed(FIFTY)
    one.answer("Fine.")
    one.typed(FIFTEEN)
    one.client("response.create")
    fits(one, -1.0)
    assert not [type for type in one.types() if type.startswith("chorale.")]


@pytest.mark.parametrize("early", [True, False])
def test_session_with_an_engine_is_to_plain_voice_what_it_is_without(early: bool) -> None:
    """Spoken turns alone: the same events at the same times, nothing waits."""
    seen = []
    for enabled in (True, False):
        switches = ConsistencyRules(enabled=enabled, judge=rules().consistency.judge)
        one = Talk(rules=SessionRules(early_replies=early, consistency=switches))
        one.update(audio={"input": {"transcription": {"model": "x"}}})
        for text in (FIFTY, FIFTEEN, "no, fifteen"):
            one.hear(1_000, 0.95)
            one.hear(300, 0.01)
            for job_id in one.open_jobs(Transcribe):
                del one.jobs[job_id]
                one.report(Transcribed(job_id, text))
            one.hear(400, 0.01)
            for job_id in one.open_jobs(Transcribe):
                del one.jobs[job_id]
                one.report(Transcribed(job_id, text))
            if one.open_jobs(Reply):
                one.answer("Fine.", ms=200)
            one.wait(500)
        seen.append(
            (one.log, [effect for effect in one.effects if not isinstance(effect, do.Start | do.Cancel)])
        )
    assert seen[0] == seen[1]


def test_session_without_the_engine_answers_at_once() -> None:
    """Switched off, everything is taken as it is."""
    one = Talk(
        rules=SessionRules(consistency=ConsistencyRules(enabled=False, judge=rules().consistency.judge))
    )
    one.update(chorale={"typed_turns": True}, output_modalities=["text"])
    conflict(one)
    assert scores(one) == []
    assert one.prompt()[-1] == ("user", f"{FIFTY}\n{FIFTEEN}")


def test_session_holds_a_fast_pass_against_the_final_one() -> None:
    """A draft of all that was said is one more reading of it: where the sound fits it better, it is adopted. The reply
    does not wait for that."""
    for ratio, text in ((2.0, FIFTEEN), (-2.0, FIFTY)):
        one = talk(early_replies=False)
        one.hear(1_000, 0.95)
        one.update(audio={"input": {"turn_detection": {"type": "semantic_vad", "eagerness": "low"}}})
        while not one.finals():
            for draft in one.open_jobs(Transcribe):
                one.transcribed(FIFTEEN, draft)
            one.hear(96, 0.01)
        one.transcribed(FIFTY)
        assert len(one.all("response.created")) == 1
        (job_id,) = scores(one)
        work = one.jobs[job_id].work
        assert isinstance(work, Score)
        assert (work.texts, work.recognised) == ((FIFTEEN,), FIFTY)
        one.writes("Well")
        fits(one, ratio)
        assert one.prompt()[-1] == ("user", text)
        assert len(one.all("response.created")) == (2 if ratio > 0 else 1)
