"""The engine's question to the graph: new tokens, and what is around them."""

from dataclasses import replace

from consistency.connected import ConnectedTokens, slots_asked_in
from consistency.judge import Past, Surroundings
from consistency.observation import Observation, Token
from consistency.ontology import Ontology
from consistency.related import relation
from orchestrator.settings.agreement import read_facts
from tests.consistency.dialogue import ONTOLOGY, TRAINS, reader, train

GRAPH = ConnectedTokens(ONTOLOGY, reader, relation)


def said(text: str, *tokens: Token) -> Observation:
    return Observation("o1", "text", 0, 1, text, facts=reader(text), tokens=tokens)


def filled(*tokens: Token) -> Observation:
    return Observation("o2", "form", 0, 1, "", tokens=tokens)


def test_check_form_alone_is_evidence_of_itself() -> None:
    """A client that fills a form says nothing, and is believed."""
    token = train("destination", "Austin")
    assert GRAPH.check((token,), Surroundings((filled(token),))).value > 0.8


def test_check_form_against_what_was_said_is_below_the_threshold() -> None:
    """The form has another day than the sentence of the same turn."""
    token = train("day", "March 9")
    found = GRAPH.check((token,), Surroundings((said("on March 7"), filled(token))))
    assert found.value < 0.6
    assert "March 9" in found.evidence[0].about


def test_check_value_read_from_the_text_fits_its_slot() -> None:
    """A pattern of the domain found it there; its form need not be that of the kind."""
    token = Token("find_train", "time", "eight", service="trains", start=3, stop=8)
    assert GRAPH.check((token,), Surroundings((said("at eight", token),))).value > 0.8


def test_check_looks_at_turns_before_and_at_the_question() -> None:
    """A name from an earlier turn holds; the assistant's question decides between two slots of a kind."""
    past = Past((said("my sister lives in Boston"),), ("Where do you want to start, which origin?",))
    around = Surroundings((said("from there"),), (past,), (train("day", "March 7"),))
    assert GRAPH.check((train("origin", "Boston"),), around).value > 0.6
    assert GRAPH.check((train("origin", "Salem"),), around).value < 0.6


def test_check_without_a_domain_holds_nothing_against_names() -> None:
    """Slots work without a domain: only what was said counts."""
    graph = ConnectedTokens(Ontology(), reader, relation)
    assert graph.check((Token("", "place", "Austin"),), Surroundings((said("to Austin"),))).value > 0.8
    assert graph.check((Token("", "place", "Salem"),), Surroundings((said("to Austin"),))).value < 0.6


def test_check_without_tokens_is_one() -> None:
    """Nothing to hold against anybody."""
    assert GRAPH.check((), Surroundings((said("hello"),))).value == 1.0


def test_slots_asked_in_a_question_by_their_words_and_kinds() -> None:
    """By a word of the slot first, else by what the question word asks for; statements ask for nothing."""
    assert slots_asked_in(["How many bags do you have?"], TRAINS) == {"bags"}
    assert slots_asked_in(["At what time?"], TRAINS) == {"time"}
    assert slots_asked_in(["Your bags are booked."], TRAINS) == set()
    assert slots_asked_in(["How many bags?"], None) == set()


def test_check_knows_what_tomorrow_is_where_the_day_is_known() -> None:
    """A form's date is borne out by "tomorrow" on the day before, spoken against a week before, open without a day."""
    graph = ConnectedTokens(ONTOLOGY, read_facts, relation)
    text = "a train to Austin tomorrow"
    spoken = Observation("o1", "text", 0, 1, text, facts=read_facts(text))
    token = train("day", "2026-03-07")
    day_before, week_before, unknown = (
        graph.check((token,), Surroundings((spoken, filled(token)), today=day)).value
        for day in ("2026-03-06", "2026-02-28", "")
    )
    assert week_before < 0.6 < day_before
    assert week_before < unknown <= day_before


def test_check_holds_a_new_intent_against_what_the_words_are_like() -> None:
    """Words that are like the intent bear it out, words that are like another one do not; unmeasured lies between."""
    token = train("day", "March 7")
    ours, other = "intent:trains.find_train", "intent:hotels.find_hotel"
    values = []
    for cosines in ((0.9, 0.1), (0.05, 0.7)):
        like = ((ours, cosines[0]), (other, cosines[1]), ("service:trains", 0.05), ("service:hotels", 0.05))
        spoken = replace(said("on March 7"), likeness=like)
        values.append(GRAPH.check((token,), Surroundings((spoken, filled(token)))).value)
    unmeasured = GRAPH.check((token,), Surroundings((said("on March 7"), filled(token)))).value
    assert values[1] < 0.6 <= unmeasured < values[0]
