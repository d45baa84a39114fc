"""What the engine commits when a question has been answered."""

from consistency.observation import Token
from consistency.verdict import Accept, Ask, Scores
from tests.consistency.saying import said, scored, slot, typed
from tests.consistency.test_engine import FIFTEEN, FIFTY, engine
from tests.fakes.judges import ScriptedJudge


def test_engine_asked_about_a_part_keeps_the_rest_of_both_readings() -> None:
    """The answer chooses between two values, and is no slot itself; what only the other reading filled stands, and the
    value that was not meant is withdrawn, even where an earlier unit had committed it."""
    one = engine(policy="ask")
    text = typed(FIFTEEN, 1.0, tokens=(slot("minutes", "15"), slot("name", "pasta")))
    speech = said(FIFTY, 4.0, tokens=(slot("minutes", "50"),))
    one.observe(text, 2_000_000, 1, True)
    assert {token.value for token in one.snapshot.tokens} == {"15", "pasta"}
    one.observe(speech, 5_000_000, 2, True)
    verdict = one.observe(Scores(speech.id, (scored(FIFTEEN, -20.0),)), 5_100_000)
    assert isinstance(verdict, Ask)
    one.observe(said("fifty", 8.0, tokens=(Token("", "number", "loose"),)), 9_000_000, 3, True)
    verdict = one.observe(said("I said so", 9.5, tokens=(Token("", "number", "loose"),)), 11_000_000, 3, True)
    assert isinstance(verdict, Accept)
    assert {(token.slot, token.value) for token in one.snapshot.tokens} == {
        ("minutes", "50"),
        ("name", "pasta"),
    }


def test_engine_does_not_let_the_user_choose_garbled_speech() -> None:
    """What was typed fills a slot, what was heard of it none, and both differ all over: what was typed stands. Speech
    with a value of its own is worth a question."""
    heard, written = "watch the a larm on a half pass ix", "switch the alarm on at 6:30"
    for tokens, asks in (((), False), ((slot("time", "9"),), True)):
        judge = ScriptedJudge({(heard, written): ("restatement", 0.97)})
        one = engine(judge, "ask")
        speech = said(heard, 1.0, tokens=tokens)
        one.observe(speech, 2_000_000, 1, True)
        one.observe(typed(written, 2.5, tokens=(slot("time", "6:30"),)), 3_000_000, 1, True)
        verdict = one.observe(Scores(speech.id, (scored(written, -20.0),)), 3_100_000)
        if asks:
            assert isinstance(verdict, Ask)
        else:
            assert isinstance(verdict, Accept)
            assert verdict.superseded == (speech.id,)
            assert [token.value for token in one.snapshot.tokens] == ["6:30"]
