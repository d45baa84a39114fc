"""Guesses that were refused, and taken for the real work before the refusal was known."""

from orchestrator.scheduling.refusals import SPECULATIVE
from orchestrator.scheduling.work import REFUSED, Failed, ReplyText, Speak
from tests.sessions.talk import Talk, plain_meaning
from tests.sessions.test_head_start import foreseen


def guess_refused(talk: Talk, job: str) -> None:
    """The dispatcher's word that it had no time for a guess: it was given before the turn ended, and comes after."""
    talk.jobs.pop(job)
    talk.report(Failed(job, REFUSED, "the language model has no time for guesses now", reason=SPECULATIVE))


def test_head_start_refused_as_a_guess_once_it_is_the_reply_is_asked_for_anew() -> None:
    """Between the refusal and its arrival the turn has ended, and the guess was taken for the reply: the turn has a
    claim to be answered that its guess had not. Nothing is told of it; a refusal of the reply itself is final."""
    for outcome in ("completed", "failed"):
        talk = Talk()
        talk.update(chorale={"events": ["chorale.overload"]})
        job = foreseen(talk)
        talk.hear(400, 0.01)
        assert talk.reply_job() == job
        guess_refused(talk, job)
        anew = talk.jobs[talk.reply_job()]
        assert not anew.speculative
        assert talk.prompt()[-1] == ("user", "Hello.")
        assert not talk.all("chorale.overload")
        if outcome == "completed":
            talk.answer("Fine.")
        else:
            guess_refused(talk, anew.id)
        (done,) = talk.all("response.done")
        assert done["response"]["status"] == outcome
        assert len(talk.all("chorale.overload")) == (outcome == "failed")
        talk.strict.end()


def test_head_start_whose_sound_was_refused_as_a_guess_is_spoken_all_the_same() -> None:
    """The first sentence's sound was begun early and refused; by the time that is known it is due: it is made anew, and
    comes before the second."""
    talk = Talk()
    job = foreseen(talk)
    talk.report(ReplyText(job, "One is here. Two "))
    (early,) = talk.open_jobs(Speak)
    talk.hear(400, 0.01)
    guess_refused(talk, early)
    (anew,) = talk.open_jobs(Speak)
    assert anew != early
    assert not talk.jobs[anew].speculative
    assert talk.jobs[anew].work == Speak(text="One is here.")
    assert talk.jobs[anew].due_us == talk.jobs[anew].created_us
    talk.sounds(500, anew)
    talk.spoke(anew)
    talk.answer("is here.")
    assert talk.last("response.done")["response"]["status"] == "completed"
    assert talk.sound[0].job_id == anew
    assert talk.history()[-1] == ("assistant", "One is here. Two is here.")


def test_head_start_whose_sound_was_refused_with_sentences_behind_it_stays_text() -> None:
    """Made anew its sound would come behind theirs: it is left out, and the client is told in words that it knows."""
    talk = Talk()
    talk.update(chorale={"events": ["chorale.overload"]})
    job = foreseen(talk)
    talk.report(ReplyText(job, "One is here. Two is here. Three "))
    (early,) = talk.open_jobs(Speak)
    talk.hear(400, 0.01)
    (second,) = set(talk.open_jobs(Speak)) - {early}
    guess_refused(talk, early)
    assert talk.open_jobs(Speak) == [second]
    (told,) = talk.all("chorale.overload")
    assert (told["kind"], told["reason"]) == ("speech", "shed")
    talk.answer("is here.")
    assert talk.last("response.done")["response"]["status"] == "completed"


def test_understanding_refused_as_a_guess_once_it_is_wanted_is_asked_for_anew() -> None:
    """What was said is understood though its early understanding was refused; nobody is told that it was not."""
    talk = Talk()
    talk.meaning = lambda text: None
    talk.update(chorale={"events": ["chorale.overload", "chorale.token"]})
    talk.hear(1_000, 0.95)
    talk.hear(200, 0.01)
    talk.transcribed("Hello.")
    (early,) = talk.thoughts
    talk.hear(400, 0.01)
    assert list(talk.thoughts) == [early]
    talk.thoughts.pop(early)
    talk.report(Failed(early, REFUSED, "understanding has no time for guesses now", reason=SPECULATIVE))
    (anew,) = talk.thoughts
    assert anew != early
    assert not talk.all("chorale.overload")
    talk.meaning = plain_meaning
    talk.think()
    assert len(talk.all("chorale.token")) == 1
