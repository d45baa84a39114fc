"""What the model is asked when the user corrects himself: with the new value alone, and the items as they were said."""

from pathlib import Path

import yaml

from modalities.text.facts import facts_and_form
from modalities.tokens.ontology import domain_from
from modalities.tokens.understand import find_slots
from orchestrator.scheduling.work import FactFound, Score, SlotFound, Understood
from orchestrator.sessions.rules import SessionRules
from orchestrator.settings.agreement import consistency_rules
from orchestrator.settings.schema import Settings
from tests.sessions.agreeing import EVENTS, fits
from tests.sessions.talk import Talk

RULES = consistency_rules(Settings())
DOMAIN = domain_from(
    yaml.safe_load((Path(__file__).parents[2] / "configs" / "domains" / "default.yaml").read_text())
)
FIFTY, FIFTEEN = "Set a timer for fifty minutes.", "Set a timer for fifteen minutes."
COMPLETED = "conversation.item.input_audio_transcription.completed"


def meaning(text: str) -> Understood:
    """What the understanding worker reads from a text whose intent it finds by its first words."""
    facts, normal = facts_and_form(text)
    intent = "set_timer" if text.lower().startswith("set a timer") else None
    known = next((one for one in DOMAIN.intents if one.name == intent), None)
    slots = find_slots(text, DOMAIN.slots_of(known))
    return Understood(
        "",
        intent=intent,
        confidence=0.9 if intent else 0.0,
        slots=tuple(SlotFound(one.name, one.value, one.start, one.stop, 1.0) for one in slots),
        normal=normal,
        facts=tuple(FactFound(one.kind, one.value, one.start, one.stop) for one in facts),
    )


def talk() -> Talk:
    one = Talk(rules=SessionRules(consistency=RULES))
    one.meaning = meaning
    one.update(
        output_modalities=["text"],
        audio={"input": {"transcription": {"model": "whisper-1"}}},
        chorale={"typed_turns": True, "events": EVENTS},
    )
    return one


def says(one: Talk, text: str) -> None:
    one.speak()
    one.transcribed(text)


def test_session_asks_with_the_corrected_value_alone() -> None:
    """The sentence before reads with the new value, though its item says what was said; nothing is realigned."""
    one = talk()
    says(one, FIFTY)
    one.answer("Fifty minutes it is.")
    one.wait(3_000)
    says(one, "No, fifteen.")
    if one.open_jobs(Score):
        fits(one, -30.0)  # the sound was no fifteen: he did say fifty
    said = [words for role, words in one.prompt() if role == "user"]
    assert said == [FIFTEEN, "No, fifteen."]
    assert [event["transcript"] for event in one.all(COMPLETED)] == [FIFTY, "No, fifteen."]
    assert one.all("chorale.realigned") == []
    tokens = one.heart.checker.engine.snapshot.tokens
    assert [(token.slot, token.value) for token in tokens] == [("duration", "fifteen minutes")]


def test_session_answers_a_correction_though_nothing_understands_it_in_time() -> None:
    """A dead understanding worker holds a correction up until the deadline, and no longer."""
    one = talk()
    says(one, FIFTY)
    one.answer("Fifty minutes it is.")
    one.wait(3_000)
    one.meaning = lambda text: None
    says(one, "No, fifteen.")
    assert len(one.all("response.created")) == 1
    one.wait(RULES.deadline_us / 1_000 + 100)
    assert len(one.all("response.created")) == 2
    assert [words for role, words in one.prompt() if role == "user"] == [FIFTY, "No, fifteen."]


def test_session_asks_without_what_was_taken_back_in_the_same_breath() -> None:
    """The transcript has every word; the model is asked for Austin alone. What was typed is left as it was typed."""
    one = talk()
    says(one, "What's the weather in Boston, no, Austin?")
    assert one.prompt()[-1] == ("user", "What's the weather in Austin?")
    assert [event["transcript"] for event in one.all(COMPLETED)] == [
        "What's the weather in Boston, no, Austin?"
    ]
    other = talk()
    other.typed("What's the weather in Boston, no, Austin?")
    assert other.prompt()[-1] == ("user", "What's the weather in Boston, no, Austin?")


def test_session_asks_without_the_value_that_lost() -> None:
    """Spoken Boston, typed Austin, and the sound was Boston: the item stays as it was said, and the model reads of
    Austin alone."""
    one = talk()
    one.meaning = city
    one.speak()
    one.typed("in Austin")
    one.transcribed("What's the weather in Boston?")
    while one.open_jobs(Score):
        fits(one, -30.0)
    assert one.prompt()[-1] == ("user", "What's the weather in Austin?\nin Austin")
    assert [event["transcript"] for event in one.all(COMPLETED)] == ["What's the weather in Boston?"]
    tokens = one.heart.checker.engine.snapshot.tokens
    assert [(token.slot, token.value) for token in tokens] == [("city", "Austin")]


def city(text: str) -> Understood:
    """Every text asks for the weather."""
    facts, normal = facts_and_form(text)
    known = next(one for one in DOMAIN.intents if one.name == "get_weather")
    slots = find_slots(text, DOMAIN.slots_of(known))
    return Understood(
        "",
        intent="get_weather",
        confidence=0.9,
        slots=tuple(SlotFound(one.name, one.value, one.start, one.stop, 1.0) for one in slots),
        normal=normal,
        facts=tuple(FactFound(one.kind, one.value, one.start, one.stop) for one in facts),
    )
