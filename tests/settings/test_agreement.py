"""The engine that ships: its judges, its numbers and its domain, in sessions."""

import pytest

from consistency.related import lexicon
from consistency.whitening import shipped
from modalities.text.facts import facts_and_form, polarity
from orchestrator.scheduling.work import FactFound, Reply, Score, Understood
from orchestrator.sessions.rules import SessionRules
from orchestrator.settings.agreement import consistency_rules
from orchestrator.settings.schema import Settings
from tests.sessions.agreeing import EVENTS, fits
from tests.sessions.talk import Talk

RULES = consistency_rules(Settings())


def meaning(text: str) -> Understood:
    """What the understanding worker reads from a text, without its vector."""
    facts, normal = facts_and_form(text)
    return Understood(
        "", normal=normal, facts=tuple(FactFound(f.kind, f.value, f.start, f.stop) for f in facts)
    )


def said_and_typed(said: str, typed: str) -> Talk:
    one = Talk(rules=SessionRules(consistency=RULES))
    one.meaning = meaning
    one.update(output_modalities=["text"], chorale={"typed_turns": True, "events": EVENTS})
    one.speak()
    one.typed(typed)
    one.transcribed(said)
    return one


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("set a timer for fifty minutes", "set a timer for fifteen minutes"),
        ("wake me up at seven am tomorrow", "wake me up at 7 pm tomorrow"),
        ("turn the lights in the kitchen on", "turn the lights in the kitchen off"),
        ("book a table for friday", "book a table for saturday"),
    ],
)
def test_shipped_engine_sees_a_word_that_contradicts(said: str, typed: str) -> None:
    """One word is enough: the turn waits for the sound, and the later word wins where that denies it."""
    one = said_and_typed(said, typed)
    assert one.open_jobs(Score)
    assert one.all("response.created") == []
    fits(one, -30.0)
    assert one.prompt()[-1] == ("user", typed)


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("set a timer for fifteen minutes", "set a timer for 15 minutes"),
        ("wake me up at half past seven", "wake me up at 7:30"),
        ("book a table", "at Luigi's, 7 pm"),
        ("turn on the light", "turn the light on please"),
        ("what's the weather like in Rome", "for tomorrow"),
    ],
)
def test_shipped_engine_lets_harmless_pairs_pass(said: str, typed: str) -> None:
    """The same in other words, and parts of one request, are answered at once with both."""
    one = said_and_typed(said, typed)
    assert one.open_jobs(Score) == []
    assert one.prompt()[-1] == ("user", f"{said}\n{typed}")


def test_shipped_engine_marks_what_it_commits() -> None:
    """Every unit that is committed leaves a digest and fingerprints of 17 bytes (version and print)."""
    one = said_and_typed("turn on the light", "turn the light on please")
    snapshot = one.heart.checker.engine.snapshot
    assert snapshot.number == 1
    assert [len(print) for print in snapshot.prints] == [17, 17]


def test_consistency_settings_reach_the_engine() -> None:
    """Policy, thresholds and times are what the configuration says; a second recogniser is one more rung."""
    wanted = {
        "policy": "ask",
        "suspect": 0.4,
        "freeze": 0.9,
        "connectivity": 0.5,
        "compare_ms": 5000,
        "deadline_ms": 900,
    }
    asr = {"options": {"second": "whisper-base"}}
    rules = consistency_rules(Settings.model_validate({"consistency": wanted, "workers": {"asr": asr}}))
    engine = rules.engine
    assert (engine.policy, rules.asks) == ("ask", True)
    assert (engine.suspect, engine.freeze, engine.connectivity) == (0.4, 0.9, 0.5)
    assert (engine.compare_us, rules.deadline_us) == (5_000_000, 900_000)
    assert engine.rungs == (1, 2, 3)
    assert RULES.engine.rungs == (1, 2)


def test_consistency_switched_off_loads_nobody() -> None:
    """No judges are made where none are wanted."""
    off = consistency_rules(Settings.model_validate({"consistency": {"enabled": False}}))
    assert not off.enabled
    assert off.judge is None
    one = Talk(rules=SessionRules(consistency=off))
    one.update(chorale={"typed_turns": True})
    one.typed("Hello.")
    assert one.open_jobs(Reply)


def test_shipped_engine_has_read_its_tables_before_the_first_turn() -> None:
    """Nobody's first words wait for a dictionary."""
    lexicon.cache_clear()
    polarity.table.cache_clear()
    shipped.cache_clear()
    consistency_rules(Settings())
    assert lexicon.cache_info().currsize == 1
    assert polarity.table.cache_info().currsize == 1
    assert shipped.cache_info().currsize == 1
