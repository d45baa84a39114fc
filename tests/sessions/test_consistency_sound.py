"""What sound can still tell in a session: the second recogniser where one is unsure, and slots that were lost."""

import msgspec

from consistency.misheard import Misheard
from consistency.policy import EngineRules
from orchestrator.scheduling.work import (
    Score,
    Scored,
    TextFit,
    Transcribe,
    Transcribed,
    Understood,
    WordFound,
    WordsApart,
)
from orchestrator.sessions.rules import ConsistencyRules
from tests.fakes.judges import ListedDomain, ScriptedDoubt, ScriptedGraph, ScriptedJudge
from tests.sessions.agreeing import FIFTEEN, FIFTY, conflict, fits, meaning, scores, talk, verdicts
from tests.sessions.talk import Talk

COMPLETED = "conversation.item.input_audio_transcription.completed"
SEVERN, SEVEN = "a table at Severn", "a table at seven"
NO_HURRY_US = 10**9


def unsure(rungs: tuple[int, ...]) -> Talk:
    """A session whose first recogniser leaves fifty against fifteen open."""
    judge = ScriptedJudge(
        {(FIFTY, FIFTEEN): ("restatement", 0.8)}, with_sound={(FIFTY, FIFTEEN): ("restatement", 0.7)}
    )
    rules = ConsistencyRules(engine=EngineRules(rungs=rungs), judge=judge, deadline_us=NO_HURRY_US)
    return talk(consistency=rules)


def wanting(doubt: float, both: float = 0.0, rungs: tuple[int, ...] = (1, 2, 3)) -> Talk:
    """A session whose domain wants a time; what was heard is in so much doubt."""
    misheard = Misheard(
        ScriptedDoubt({SEVERN: doubt}, {SEVERN: both}), ListedDomain({"time": {"seven": "7"}})
    )
    rules = ConsistencyRules(
        engine=EngineRules(rungs=rungs), graph=ScriptedGraph(), misheard=misheard, deadline_us=NO_HURRY_US
    )
    one = talk(consistency=rules)
    one.meaning = booking
    return one


def booking(text: str) -> Understood:
    """Everything is about a table."""
    return msgspec.structs.replace(meaning(text), intent="book")


def heard(one: Talk, text: str) -> None:
    """The user speaks, and this is recognised, word by word."""
    one.hear(1_000, 0.95)
    one.hear(700, 0.01)
    job_id = one.finals()[0]
    one.jobs.pop(job_id)
    words = tuple(WordFound(word, n / 4, n / 4 + 0.2, 0.6) for n, word in enumerate(text.split()))
    one.report(Transcribed(job_id, text, words))


def scored(one: Talk, ratio: float) -> Score:
    """The recogniser says how well the texts fit; returns what it was asked."""
    (job_id,) = scores(one)
    work = one.jobs.pop(job_id).work
    assert isinstance(work, Score)
    own = TextFit(work.recognised, work.recognised, -10.0, -1.0, -2.0)
    apart = (WordsApart("Severn", "seven", ratio),)
    one.report(
        Scored(job_id, own, tuple(TextFit(text, text, ratio - 10, -1.0, -2.0, apart) for text in work.texts))
    )
    return work


def listened(one: Talk, text: str) -> tuple[str, Transcribe]:
    """Somebody else has listened; returns the job and what was asked."""
    (job_id,) = one.open_jobs(Transcribe)
    work = one.jobs.pop(job_id).work
    assert isinstance(work, Transcribe)
    one.report(Transcribed(job_id, text, rung=work.rung))
    return job_id, work


def test_second_recogniser_is_asked_only_where_the_first_is_unsure() -> None:
    """First its text, with its other likely texts, then how well what was typed fits under it, beside its own text and
    where it has heard the sound; the verdict waits for both and names what each said."""
    one = unsure((1, 2, 3))
    conflict(one)
    fits(one, -6.0)
    job_id, again = listened(one, FIFTY)
    assert (again.rung, again.alternatives) == (3, 5)
    (score_id,) = scores(one)
    work = one.jobs[score_id].work
    assert isinstance(work, Score)
    assert (work.rung, work.near, work.recognised, work.texts) == (3, job_id, FIFTY, (FIFTEEN,))
    assert one.all("response.created") == []
    scored(one, -2.0)
    assert verdicts(one)[-1] == "accept"
    named = [reason["name"] for reason in one.last("chorale.verdict")["evidence"]]
    assert {"forced_score", "second_score"} <= set(named)


def test_one_recogniser_alone_decides_where_there_is_no_second() -> None:
    """Nothing more is wanted below a conflict."""
    one = unsure((1, 2))
    conflict(one)
    fits(one, -6.0)
    assert verdicts(one)[-1] == "accept"
    assert one.open_jobs(Transcribe) == []


def test_second_recogniser_that_fails_holds_nothing_up() -> None:
    """The verdict is the first one's."""
    one = unsure((1, 2, 3))
    conflict(one)
    fits(one, -6.0)
    (job_id,) = one.open_jobs(Transcribe)
    one.failed(job_id)
    assert verdicts(one)[-1] == "accept"


def test_spoken_turn_in_doubt_waits_for_what_the_sound_says_of_listed_values() -> None:
    """No answer is made of it before; where the sound bears a value out, its word is in the transcript that the client
    gets."""
    one = wanting(doubt=0.8)
    heard(one, SEVERN)
    assert one.all("response.created") == []
    assert scored(one, -1.0).texts == (SEVEN,)
    assert one.last(COMPLETED)["transcript"] == SEVEN
    assert one.prompt()[-1] == ("user", SEVEN)
    tokens = one.heart.checker.engine.snapshot.tokens
    assert [(token.slot, token.value) for token in tokens] == [("time", "7")]


def test_answer_to_a_listed_value_that_nobody_doubted_is_taken_back() -> None:
    """Words that sound like a value and are none do not wait to be understood; once they are, the sound is asked, and
    where it bears the value out, the answer is begun anew."""
    one = wanting(doubt=0.0)
    heard(one, SEVERN)
    assert len(one.all("response.created")) == 1
    scored(one, -1.0)
    assert one.last("chorale.realigned")["transcript"] == SEVEN
    assert one.last("response.done")["response"]["status"] == "cancelled"
    assert one.prompt()[-1] == ("user", SEVEN)
    denied = wanting(doubt=0.0)
    heard(denied, SEVERN)
    scored(denied, -9.0)
    assert denied.prompt()[-1] == ("user", SEVERN)
    assert len(denied.all("response.created")) == 1


def test_spoken_turn_in_doubt_is_heard_by_the_second_recogniser() -> None:
    """Its text stands where it fills the slot and the doubt remains."""
    one = wanting(doubt=0.8, both=0.9)
    heard(one, SEVERN)
    scored(one, -9.0)
    listened(one, SEVEN)
    assert scored(one, -5.0).rung == 3
    assert one.last(COMPLETED)["transcript"] == SEVEN
    assert verdicts(one)[-1] == "accept"
    named = [reason["name"] for reason in one.last("chorale.verdict")["evidence"]]
    assert {"heard_again", "lost_slot"} <= set(named)


def test_spoken_turn_without_doubt_waits_for_nothing() -> None:
    """It is answered before it is understood."""
    one = wanting(doubt=0.0)
    one.meaning = lambda text: None
    heard(one, "what a lovely day")
    assert one.prompt()[-1] == ("user", "what a lovely day")


def test_spoken_turn_of_no_intent_of_the_domain_is_not_looked_into() -> None:
    """It is answered as soon as that is known."""
    one = wanting(doubt=0.8)
    one.meaning = meaning
    heard(one, SEVERN)
    assert one.prompt()[-1] == ("user", SEVERN)
    assert scores(one) == []
