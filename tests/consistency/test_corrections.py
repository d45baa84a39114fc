"""What a correction takes the place of, with the domains that ship and the facts that the server reads."""

from pathlib import Path

import pytest
import yaml

from consistency.connected import ConnectedTokens
from consistency.corrections import Corrections
from consistency.engine import ConsistencyEngine
from consistency.observation import Fact, Observation, Token
from consistency.ontology import Ontology
from consistency.related import relation
from consistency.verdict import Accept
from modalities.text.facts import facts_and_form, facts_of
from modalities.tokens.ontology import Domain, domain_from
from modalities.tokens.understand import find_slots
from orchestrator.sessions.domain_ontology import ontology_of

FOLDER = Path(__file__).parents[2] / "configs" / "domains"
DOMAINS = {path.stem: domain_from(yaml.safe_load(path.read_text())) for path in FOLDER.glob("*.yaml")}
TIMER = ("default", "set_timer", "Set a timer for fifty minutes.")
WEATHER = ("default", "get_weather", "What's the weather in Boston?")


def booked(people: str = "two", at: str = "Luigi's", day: str = "Friday", time: str = "seven pm") -> str:
    return f"Book a table for {people} at {at} on {day} at {time}."


TABLE = ("restaurant", "book_table", booked())
LIGHTS = ("smart_home", "lights_on", "Turn on the kitchen lights.")
WEEKEND = ("default", "get_weather", "What's the weather in Boston on Friday?")
DIM = ("smart_home", "dim_lights", "Dim the kitchen lights to fifty percent")
CALL = ("default", "set_reminder", "Remind me to call Anna at five on Monday")
FOOD = ("restaurant", "find_restaurant", "Find me an Italian place in Boston")
DOOR = ("smart_home", "lock_door", "Lock the front door.")


def read(text: str) -> tuple[Fact, ...]:
    return tuple(Fact(one.kind, one.value, one.start, one.stop) for one in facts_of(text))


def heard(domain: Domain, text: str, at: float, intent: str | None = None) -> Observation:
    """A text as the understanding worker reports it, had it found this intent."""
    facts, normal = facts_and_form(text)
    known = next((one for one in domain.intents if one.name == intent), None)
    tokens = tuple(
        Token(intent or "", slot.name, slot.value, start=slot.start, stop=slot.stop)
        for slot in find_slots(text, domain.slots_of(known))
    )
    named = tuple(Fact(one.kind, one.value, one.start, one.stop) for one in facts)
    start = round(at * 1_000_000)
    return Observation(
        f"at {at}", "speech", start, start + 1_000_000, text, normal, named, tokens=tokens, intent=intent
    )


@pytest.mark.parametrize(
    ("before", "correction", "slots", "reads"),
    [
        (TIMER, "No, fifteen.", {"duration": "fifteen minutes"}, "Set a timer for fifteen minutes."),
        (TIMER, "I said fifteen", {"duration": "fifteen minutes"}, "Set a timer for fifteen minutes."),
        (TIMER, "fifteen, I meant", {"duration": "fifteen minutes"}, "Set a timer for fifteen minutes."),
        (TIMER, "not fifty, fifteen", {"duration": "fifteen minutes"}, "Set a timer for fifteen minutes."),
        (TIMER, "no I said 15 not 50", {"duration": "15 minutes"}, "Set a timer for 15 minutes."),
        (TIMER, "Actually, half an hour.", {"duration": "half an hour"}, "Set a timer for half an hour."),
        (
            TIMER,
            "It's not fifty, it's fifteen.",
            {"duration": "fifteen minutes"},
            "Set a timer for fifteen minutes.",
        ),
        (TIMER, "No, one hour.", {"duration": "one hour"}, "Set a timer for one hour."),
        (TIMER, "No, I said fifteen, one five", {"duration": "fifteen minutes"}, "Set a timer for fifteen minutes."),
        (WEATHER, "not Boston, Austin", {"city": "Austin"}, "What's the weather in Austin?"),
        (WEATHER, "not in boston, in austin", {"city": "austin"}, "What's the weather in austin?"),
        (WEATHER, "No, Austin.", {"city": "Austin"}, "What's the weather in Austin?"),
        (WEATHER, "No. Austin.", {"city": "Austin"}, "What's the weather in Austin?"),
        (WEATHER, "Austin, I meant.", {"city": "Austin"}, "What's the weather in Austin?"),
        (TABLE, "No, at Nobu", {"restaurant": "Nobu"}, booked(at="Nobu")),
        (TABLE, "for three people, sorry", {"people": "three"}, booked(people="three")),
        (TABLE, "No, for four", {"people": "four"}, booked(people="four")),
        (TABLE, "No, on the nine of March", {"day": "nine of March"}, booked(day="nine of March")),
        (TABLE, "No, in the evening", {"time": "seven in the evening"}, booked(time="seven in the evening")),
        (TABLE, "No, tonight", {"day": "tonight"}, booked(day="tonight")),
        (TABLE, "for six at nine, sorry", {"people": "six", "time": "nine pm"}, booked(people="six", time="nine pm")),
        (TABLE, "I meant Saturday", {"day": "Saturday"}, booked(day="Saturday")),
        (TABLE, "not on Friday, on Saturday", {"day": "Saturday"}, booked(day="Saturday")),
        (TABLE, "No, at eight.", {"time": "eight pm"}, booked(time="eight pm")),
        (TABLE, "make it eight o'clock instead", {"time": "eight pm"}, booked(time="eight pm")),
        (TABLE, "3 people at 8, sorry", {"people": "3", "time": "8 pm"}, booked(people="3", time="8 pm")),
        (FOOD, "No, Indian.", {"cuisine": "Indian"}, "Find me an Indian place in Boston"),
        (CALL, "No, Hannah.", {"task": "call Hannah"}, "Remind me to call Hannah at five on Monday"),
        (
            DIM,
            "No, the bathroom to ten percent",
            {"room": "bathroom", "brightness": "ten percent"},
            "Dim the bathroom lights to ten percent",
        ),
        (LIGHTS, "No, the lights in the office", {"room": "office"}, "Turn on the office lights."),
        (LIGHTS, "No, the bedroom.", {"room": "bedroom"}, "Turn on the bedroom lights."),
        (LIGHTS, "not the kitchen, the hall", {"room": "hallway"}, "Turn on the hallway lights."),
    ],
)  # fmt: skip
def test_correction_takes_the_place_of_the_value_of_its_kind(
    before: tuple[str, str, str], correction: str, slots: dict[str, str], reads: str
) -> None:
    """Its words stand in the slot that it means, and the sentence reads with them; other slots are as they were."""
    name, intent, text = before
    domain = DOMAINS[name]
    first = heard(domain, text, 0.0, intent)
    new = heard(domain, correction, 5.0)
    found = Corrections(ontology_of(domain), read).amend(new, [first])
    assert found is not None
    filled = [token for token in found.new.tokens if token.intent]
    named = {token.slot: token.value for token in filled}
    assert named == slots
    assert {token.intent for token in filled} == {intent}
    (earlier,) = found.earlier
    assert earlier.text == reads
    values = {token.slot: token.value for token in first.tokens} | slots
    assert {token.slot: token.value for token in earlier.tokens} == values
    for token in earlier.tokens:
        assert earlier.text[token.start : token.stop] == token.value
    assert {token.slot for token in found.replaced} == set(slots)


@pytest.mark.parametrize(
    "text",
    [
        "No, thank you.",
        "No thanks, that's all",
        "Not now.",
        "Sorry, what?",
        "Actually, never mind.",
        "fifteen",
        "set another one for ten minutes",
        "No, I want to go home and sleep",
        "no problem",
        "No way, that was two hours ago",
        "No need for two of them",
        "No, I've only got one oven",
        "Actually, my brother has two dogs",
        "No. Great.",
        "No. Stop.",
        "Sorry. What?",
        "Wait. Nothing.",
        "No, Alexa.",
        "Sorry, I have to go to the bathroom",
        "Actually, set another timer for ten minutes too",
    ],
)
def test_correction_is_nothing_where_no_value_is_corrected(text: str) -> None:
    """Thanks, refusals and requests of their own leave what was said as it is."""
    domain = DOMAINS["default"]
    corrections = Corrections(ontology_of(domain), read)
    lights = ("default", "lights_on", LIGHTS[2])
    for name, intent, first in (TIMER, WEATHER, lights):
        assert name == "default"
        assert corrections.amend(heard(domain, text, 5.0), [heard(domain, first, 0.0, intent)]) is None


@pytest.mark.parametrize(
    "text", ["No, that will be all today", "No. Have a great one.", "no, for one person"]
)
def test_correction_takes_no_words_of_parting_and_nothing_that_counts_something_else(text: str) -> None:
    """An hour is no number of people, and "today" at the end of a talk is no day."""
    domain = DOMAINS["restaurant"]
    corrections = Corrections(ontology_of(domain), read)
    first = heard(domain, "Could we come on Friday at eight pm", 0.0, "change_booking")
    assert {token.slot for token in first.tokens} == {"day", "time"}
    assert corrections.amend(heard(domain, text, 5.0), [first]) is None


def test_whole_correction_replaces_every_value_of_a_slot_that_was_filled_twice() -> None:
    """The sentence stays readable: each value is exchanged where it stands."""
    domain = DOMAINS["default"]
    first = heard(domain, "Set an alarm at seven and one at eight, please", 0.0, "set_alarm")
    new = heard(domain, "No, set an alarm at nine", 5.0, "set_alarm")
    found = Corrections(ontology_of(domain), read).amend(new, [first])
    assert found is not None
    assert [one.text for one in found.earlier] == ["Set an alarm at nine and one at nine, please"]
    assert {token.value for token in found.earlier[0].tokens} == {"nine"}


def test_correction_by_a_number_that_is_no_hour_leaves_the_time_alone() -> None:
    """A time is not 45; where no other slot takes the number either, nothing is corrected."""
    domain = DOMAINS["default"]
    alarm = heard(domain, "Wake me up at seven am", 0.0, "set_alarm")
    corrections = Corrections(ontology_of(domain), read)
    assert corrections.amend(heard(domain, "No, 45.", 5.0), [alarm]) is None
    assert corrections.amend(heard(domain, "No, 9.", 5.0), [alarm]) is not None


def test_correction_means_the_value_that_was_said_last() -> None:
    """Of two durations it is the later one's; of two numbers in one sentence the one that sounds alike."""
    domain = DOMAINS["default"]
    corrections = Corrections(ontology_of(domain), read)
    earlier = heard(domain, "Set a timer for fifty minutes.", 0.0, "set_timer")
    later = heard(domain, "Set a timer for sixteen minutes.", 5.0, "set_timer")
    found = corrections.amend(heard(domain, "No, sixty.", 10.0), [earlier, later])
    assert found is not None
    assert [one.text for one in found.earlier] == ["Set a timer for sixty minutes."]
    both = heard(domain, "Set the lights to thirteen percent for fifty minutes", 0.0)
    found = corrections.amend(heard(domain, "thirty, I said", 5.0), [both])
    assert found is not None
    assert found.earlier[0].text == "Set the lights to thirty percent for fifty minutes"


def test_correction_needs_no_domain_for_numbers_and_days() -> None:
    """Where no intents are known, the kinds of values decide."""
    corrections = Corrections(Ontology(), read)
    domain = domain_from({})
    first = heard(domain, "can you do Friday at 7:30", 0.0)
    found = corrections.amend(heard(domain, "no, Saturday", 5.0), [first])
    assert found is not None
    assert found.earlier[0].text == "can you do Saturday at 7:30"


def test_correction_of_a_word_that_no_slot_has_rewords_what_was_said() -> None:
    """What is denied by its name was said, whether it was understood or not."""
    corrections = Corrections(Ontology(), read)
    domain = domain_from({})
    first = heard(domain, "how far is it to Boston", 0.0)
    found = corrections.amend(heard(domain, "not Boston, Austin", 5.0), [first])
    assert found is not None
    assert found.earlier[0].text == "how far is it to Austin"


@pytest.mark.parametrize(
    ("before", "correction", "intent", "reads"),
    [
        (LIGHTS, "No, off!", "lights_off", "Turn off the kitchen lights."),
        (DOOR, "no, unlock it", "unlock_door", "unlock the front door."),
    ],
)
def test_correction_by_an_opposite_turns_the_request_round(
    before: tuple[str, str, str], correction: str, intent: str, reads: str
) -> None:
    """The slots are the other intent's from then on, and nothing of the first one stands."""
    name, was, text = before
    domain = DOMAINS[name]
    first = heard(domain, text, 0.0, was)
    new = heard(domain, correction, 5.0, intent)
    found = Corrections(ontology_of(domain), read).amend(new, [first])
    assert found is not None
    assert {token.intent for token in found.new.tokens} == {intent}
    assert found.replaced == first.tokens
    assert [one.text for one in found.earlier] == [reads]


def test_whole_correction_replaces_the_value_under_whatever_intent() -> None:
    """ "Change it to eight" is another intent; the time that was booked first stands no more all the same."""
    domain = DOMAINS["restaurant"]
    first = heard(domain, TABLE[2], 0.0, "book_table")
    new = heard(domain, "actually, move the booking to half past eight", 5.0, "change_booking")
    found = Corrections(ontology_of(domain), read).amend(new, [first])
    assert found is not None
    assert [(one.intent, one.slot, one.value) for one in found.replaced] == [
        ("book_table", "time", "seven pm")
    ]
    assert [one.text for one in found.earlier] == [TABLE[2]]
    assert "time" not in {token.slot for token in found.earlier[0].tokens}
    denial = heard(domain, "no, move the booking to half past eight", 5.0, "change_booking")
    found = Corrections(ontology_of(domain), read).amend(denial, [first])
    assert found is not None
    assert "half past eight" in found.earlier[0].text
    assert "seven" not in found.earlier[0].text


# -- in the engine ----------------------------------------------------------------------------------------------------


def engine(domain: Domain) -> ConsistencyEngine:
    ontology = ontology_of(domain)
    graph = ConnectedTokens(ontology, read, relation)
    return ConsistencyEngine(graph=graph, read=read, corrections=Corrections(ontology, read))


def test_engine_commits_the_corrected_value_alone() -> None:
    """Slots, the evidence of later turns and what prompts read hold the new value; what was said stays as said."""
    domain = DOMAINS["default"]
    one = engine(domain)
    first = heard(domain, TIMER[2], 0.0, "set_timer")
    one.observe(first, 0, 1)
    before = one.snapshot
    verdict = one.observe(heard(domain, "No, fifteen.", 20.0), 0, 2)
    assert isinstance(verdict, Accept)
    assert [(token.slot, token.value) for token in one.snapshot.tokens] == [("duration", "fifteen minutes")]
    assert one.corrected() == {first.id: "Set a timer for fifteen minutes."}
    assert one.standing()[1][first.id].text == TIMER[2]
    assert "corrected" in {evidence.name for evidence in verdict.evidence}
    assert one.roll_back(1) == before
    assert one.corrected() == {}


@pytest.mark.parametrize(
    ("before", "denial", "left"),
    [
        (WEATHER, "No, not Boston.", [("get_weather", "")]),
        (LIGHTS, "not the kitchen", [("lights_on", "")]),
        (FOOD, "Actually, not Italian", [("find_restaurant", "city"), ("find_restaurant", "")]),
        (WEEKEND, "Not on Friday, please", [("get_weather", "city"), ("get_weather", "")]),
        (WEEKEND, "Not on Sunday? OK.", [("get_weather", "city"), ("get_weather", "day")]),
        (TIMER, "not fifty", [("set_timer", "")]),
        (TIMER, "No, not now.", [("set_timer", "duration")]),
    ],
)
def test_engine_commits_no_value_that_was_denied(
    before: tuple[str, str, str], denial: str, left: list[tuple[str, str]]
) -> None:
    """Where nothing takes its place, what was asked for stands without it; rolled back, it is there again."""
    name, intent, text = before
    one = engine(DOMAINS[name])
    one.observe(heard(DOMAINS[name], text, 0.0, intent), 0, 1)
    first = one.snapshot
    assert isinstance(one.observe(heard(DOMAINS[name], denial, 5.0), 0, 2), Accept)
    assert [(token.intent, token.slot) for token in one.snapshot.tokens] == left
    assert one.roll_back(1) == first


def test_engine_corrects_what_has_been_corrected() -> None:
    """The second correction finds the value of the first."""
    domain = DOMAINS["default"]
    one = engine(domain)
    first = heard(domain, TIMER[2], 0.0, "set_timer")
    for unit, text in enumerate((TIMER[2], "No, fifteen.", "sorry, sixteen"), 1):
        one.observe(heard(domain, text, 5.0 * unit - 5.0, "set_timer" if unit == 1 else None), 0, unit)
    assert [(token.slot, token.value) for token in one.snapshot.tokens] == [("duration", "sixteen minutes")]
    assert one.corrected()[first.id] == "Set a timer for sixteen minutes."


def test_engine_waits_for_the_meaning_of_a_correction() -> None:
    """What may correct something is not answered before it is understood; what corrects nothing is."""
    domain = DOMAINS["default"]
    one = engine(domain)
    correction, request = heard(domain, "No, fifteen.", 5.0), heard(domain, "what time is it", 5.0)
    assert one.stands_alone(correction, 1)
    one.observe(heard(domain, TIMER[2], 0.0, "set_timer"), 0, 1)
    assert not one.stands_alone(correction, 2)
    assert one.stands_alone(request, 2)


def test_engine_corrects_alike_in_whatever_order_it_hears() -> None:
    """The correction arrives first: the state is the same."""
    domain = DOMAINS["default"]
    said = [heard(domain, TIMER[2], 0.0, "set_timer"), heard(domain, "No, fifteen.", 5.0)]
    in_order, turned = engine(domain), engine(domain)
    for unit in (1, 2):
        in_order.observe(said[unit - 1], 0, unit)
    for unit in (2, 1):
        turned.observe(said[unit - 1], 0, unit)
    assert turned.snapshot == in_order.snapshot
    assert turned.corrected() == in_order.corrected()
