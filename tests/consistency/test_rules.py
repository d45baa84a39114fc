"""Each edge by itself: a sentence for every rule."""

import pytest

from consistency import rules
from consistency.context_edges import ACTIVE, SAME_INTENT, USED, intent_in_context
from consistency.mentions import value_of
from consistency.observation import Token
from consistency.ontology import SlotSpec, ValueKind
from consistency.related import relation
from tests.consistency.dialogue import (
    GRAPH,
    ONTOLOGY,
    TRAINS,
    after,
    asks,
    assistant,
    hotel,
    reader,
    train,
    user,
)


def test_intent_of_another_service_is_as_good_as_impossible() -> None:
    """e1: the service has the intent, or it has not."""
    intent = TRAINS.intents["find_train"]
    assert rules.intent_of_service(TRAINS, intent, train("day", "x")).weight == 1.0
    assert rules.intent_of_service(TRAINS, None, Token("find_hotel", service="trains")).weight < 0.05
    assert rules.intent_of_service(None, None, Token("whatever")).weight == 1.0


def test_intent_is_near_when_it_is_the_last_one_used_offered_or_of_the_active_service() -> None:
    """e2, from near to far; what the assistant has just offered is as good as the last one."""
    context = after(
        user("to Austin", train("destination", "Austin")), user("a hotel", hotel("city", "Austin"))
    )

    def near(service: str, intent: str) -> float:
        return intent_in_context(context, user("yes"), service, intent, ONTOLOGY).weight

    assert near("hotels", "find_hotel") == SAME_INTENT
    assert near("trains", "find_train") == USED
    assert near("trains", "cancel_train") < USED
    offered = context.after(
        assistant("Shall I cancel it?", Token("cancel_train", service="trains")), ONTOLOGY
    )
    assert intent_in_context(offered, user("yes"), "trains", "cancel_train", ONTOLOGY).weight == SAME_INTENT
    active = after(user("to Austin", train("destination", "Austin")))
    assert intent_in_context(active, user("no"), "trains", "cancel_train", ONTOLOGY).weight == ACTIVE


def test_new_intent_is_as_near_as_the_utterance_is_like_it() -> None:
    """e2: likeness counts against that of the other services, and a vague utterance against nobody."""
    near, far, vague = (
        intent_in_context(after(), user("x", like={"service:hotels": ours, "service:trains": other,
                                                   "intent:hotels.find_hotel": ours, "intent:trains.find_train": other,
                                                   "intent:trains.cancel_train": other}),
                          "hotels", "find_hotel", ONTOLOGY).weight
        for ours, other in ((0.6, 0.1), (0.1, 0.6), (0.02, 0.08))
    )  # fmt: skip
    assert far < 0.3 < 0.6 < vague < near


def test_slot_of_its_intent_of_its_service_of_neither() -> None:
    """e3, in that order; a slot that was asked for or shown is as good as one of the intent."""
    find, cancel = TRAINS.intents["find_train"], TRAINS.intents["cancel_train"]

    def edge(token: Token, intent: object = find, known: bool = False) -> float:
        return rules.slot_of_intent(TRAINS, intent, token, known).weight  # type: ignore[arg-type]

    assert edge(train("day", "x")) == 1.0
    assert edge(train("class", "first"), cancel) == 0.6
    assert edge(train("bags", "2")) == 0.4
    assert edge(train("bags", "2"), known=True) == 0.9
    assert edge(train("day", "x"), None) == rules.UNKNOWN_INTENT
    assert edge(train("rooms", "2")) < 0.05
    assert edge(Token("find_train", "bags", act="request")) == 0.95


@pytest.mark.parametrize(
    ("kind", "fits", "does_not"),
    [
        ("time", "17:30", "Boston"),
        ("date", "march 7", "3"),
        ("number", "3", "march 7"),
        ("place", "Boston", "17:30"),
        ("boolean", "True", "2"),
        ("name", "The Getaway", "True"),
    ],
)
def test_value_of_a_kind_fits_and_another_does_not(kind: ValueKind, fits: str, does_not: str) -> None:
    """e5: what a value looks like, against the kind of its slot."""
    slot = SlotSpec("s", "", kind)
    assert rules.value_of_kind(slot, value_of(fits, reader(fits))).weight == 1.0
    assert rules.value_of_kind(slot, value_of(does_not, reader(does_not))).weight < 0.2


def test_value_of_a_list_is_listed_or_another_word_for_one_that_is() -> None:
    """e5 of categories."""
    slot = SlotSpec("price", "", "category", {"cheap": (), "pricey": ()})
    assert rules.value_of_kind(slot, value_of("Cheap", ())).weight == 1.0
    assert rules.value_of_kind(slot, value_of("inexpensive", ())).weight == 1.0
    assert rules.value_of_kind(slot, value_of("Boston", ())).weight == rules.UNLISTED
    assert rules.value_of_kind(slot, value_of("dontcare", ())).weight == 1.0


def test_request_is_borne_out_by_a_word_of_its_slot_or_by_likeness() -> None:
    """e4 of requests."""
    slot = TRAINS.slots["bags"]
    assert rules.request_in(slot, GRAPH.read("how many bags may I take"), relation, 0.0).weight == 1.0
    assert rules.request_in(slot, GRAPH.read("is it far"), relation, -0.1).weight < 0.4
    assert rules.request_in(slot, GRAPH.read("is it far"), relation, 0.5).weight == 1.0


def test_asked_slot_is_known_for_one_turn() -> None:
    """A question is answered at once or not at all."""
    context = after(assistant("Which bags?", asks("bags")))
    assert context.knows("trains", "bags")
    assert not context.after(user("none"), ONTOLOGY).knows("trains", "bags")
