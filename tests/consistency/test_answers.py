"""What the engine commits when a question has been answered."""

from consistency.observation import Token
from consistency.verdict import Accept, Ask, Scores
from tests.consistency.saying import said, scored, slot, typed
from tests.consistency.test_engine import FIFTEEN, FIFTY, engine


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
