"""Where only the user can tell what he meant he is asked, once, where the server would have answered."""

from orchestrator.scheduling.work import Reply, Speak
from orchestrator.sessions.checking import MOST_SOURCES
from tests.sessions.agreeing import FIFTEEN, FIFTY, conflict, fits, rules, talk
from tests.sessions.talk import Talk

QUESTION = "Sorry, fifty or fifteen?"


def asked(one: Talk) -> str:
    spoken, _ = conflict(one)
    fits(one, -20.0)
    return spoken


def test_session_asks_instead_of_answering() -> None:
    """The question is an ordinary response, made without the model, and stands in the conversation."""
    one = talk(asks=True)
    asked(one)
    assert one.open_jobs(Reply) == []
    (done,) = one.all("response.done")
    assert done["response"]["output"][0]["content"] == [{"type": "output_text", "text": QUESTION}]
    assert one.last("chorale.verdict")["verdict"] == "ask"
    assert one.history()[-1] == ("assistant", QUESTION)


def test_session_takes_the_answer_and_leaves_the_other_reading_out() -> None:
    """The answer settles the turn before: the model sees the reading that stands, the question, and the answer."""
    for answer, stands in (("fifteen", FIFTEEN), ("the first one", FIFTY)):
        one = talk(asks=True)
        asked(one)
        one.wait(3_000)
        one.typed(answer)
        assert one.prompt()[1:] == [("user", stands), ("assistant", QUESTION), ("user", answer)]
        assert one.last("chorale.verdict")["verdict"] == "accept"


def test_session_takes_a_spoken_answer_too() -> None:
    """Speech answers a question as typing does."""
    one = talk(asks=True)
    asked(one)
    one.hear(3_000, 0.01)
    one.speak()
    one.transcribed("fifteen")
    assert one.prompt()[1:] == [("user", FIFTEEN), ("assistant", QUESTION), ("user", "fifteen")]


def test_session_asks_never_twice() -> None:
    """Whoever talks past the question gets the later word."""
    one = talk(asks=True)
    asked(one)
    one.wait(3_000)
    one.typed("never mind that")
    assert one.prompt()[1:] == [("user", FIFTEEN), ("assistant", QUESTION), ("user", "never mind that")]
    one.answer("All right.")
    assert len(one.all("response.done")) == 2


def test_session_asks_by_the_clients_leave() -> None:
    """`chorale.ask` opens the question for a session whose server does not ask by itself."""
    one = talk()
    one.update(chorale={"ask": True})
    assert one.last("session.updated")["session"]["chorale"]["ask"] is True
    asked(one)
    assert one.history()[-1] == ("assistant", QUESTION)


def test_session_asks_nobody_whom_it_would_not_have_answered() -> None:
    """A client that asks for its responses itself gets the later word, and no question."""
    one = talk(asks=True, typed_turns=False)
    one.update(audio={"input": {"turn_detection": {"type": "server_vad", "create_response": False}}})
    one.speak()
    one.transcribed(FIFTY)
    one.typed(FIFTEEN)
    one.client("response.create")
    fits(one, -20.0)
    assert one.prompt()[-1] == ("user", FIFTEEN)


def test_session_forgets_a_question_that_was_never_asked_with_its_verdict() -> None:
    """A client that asks for its response itself leaves the question unasked; it is not kept for the session's life."""
    one = talk(asks=True)
    conflict(one)
    one.client("response.create")
    fits(one, -20.0)
    assert one.last("chorale.verdict")["verdict"] == "ask"
    one.answer("Done.")
    for _ in range(MOST_SOURCES):
        one.wait(10_000)
        one.typed("never mind that")
        one.answer("All right.")
    assert one.last("chorale.verdict")["unit"] == MOST_SOURCES + 1
    assert one.heart.checker.take_question(1) is None


def test_session_takes_an_answer_that_comes_at_once() -> None:
    """A question ends the turn: what is said right behind it is the answer and no part of what is asked about."""
    one = talk(asks=True)
    asked(one)
    one.typed("fifteen")
    assert one.prompt()[1:] == [("user", f"{FIFTEEN}\nfifteen")]
    assert one.last("chorale.verdict")["unit"] == 2


def test_session_speaks_its_question_where_it_speaks() -> None:
    """A spoken session hears the question; a client that asked for no events sees a response like any other."""
    one = Talk(rules=rules(asks=True))
    one.meaning = talk().meaning
    one.update(chorale={"typed_turns": True})
    conflict(one)
    fits(one, -20.0)
    assert [job.work for job in one.jobs.values()] == [Speak(text=QUESTION)]
    one.sounds(900)
    one.spoke()
    assert one.last("response.output_audio_transcript.done")["transcript"] == QUESTION
    assert not [type for type in one.types() if type.startswith("chorale.")]
