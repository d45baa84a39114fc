"""Tokens that fit their dialogue are well connected; those that do not are below 0.6."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consistency.context import KEPT_INTENTS, KEPT_VALUES, RECENT_TURNS, Context
from consistency.graph import MOST_LOOSE, Chain, Link, connectivity, reliabilities
from consistency.observation import Token
from consistency.rules import Edge
from tests.consistency import dialogue as talk
from tests.consistency.dialogue import GRAPH, after, asks, assistant, hotel, train, user

ROLL_BACK = 0.6


def test_graph_no_tokens_are_fully_connected() -> None:
    """Text alone is never rolled back."""
    assert GRAPH.judge(Context(), user("hello there")).value == 1.0


def test_graph_what_was_said_is_connected() -> None:
    """Values that stand in the utterance, under slots of the intent."""
    tokens = (train("origin", "Boston"), train("destination", "Austin"), train("day", "March 7"))
    assert talk.connectivity("a train from Boston to Austin on March 7", *tokens) > 0.8


def test_graph_legal_change_of_subject_is_no_alarm() -> None:
    """A new service that the utterance speaks of is as good as the old one: the largest component would alarm."""
    context = after(
        user("a train from Boston to Austin", train("origin", "Boston"), train("destination", "Austin")),
        assistant("There is one at 17:30."),
    )
    like = {"service:hotels": 0.6, "intent:hotels.find_hotel": 0.6, "service:trains": 0.1}
    turn = user(
        "fine, and find me a hotel in Austin",
        Token("find_hotel", service="hotels"),
        hotel("city", "Austin"),
        like=like,
    )
    assert GRAPH.judge(context, turn).value > 0.9


def test_graph_change_of_subject_that_nobody_spoke_of_is_rolled_back() -> None:
    """Another service's intent in an utterance that is like the present one."""
    context = after(user("a train to Austin", train("destination", "Austin")))
    like = {"service:hotels": 0.05, "intent:hotels.find_hotel": 0.05, "service:trains": 0.7}
    turn = user("on March 7 please", Token("find_hotel", service="hotels"), hotel("city", "Salem"), like=like)
    assert GRAPH.judge(context, turn).value < ROLL_BACK


def test_graph_misassigned_origin_and_destination_are_rolled_back() -> None:
    """Both values were said; only the prepositions tell which is which."""
    text = "I want to go from Boston to Austin"
    right = talk.connectivity(text, train("origin", "Boston"), train("destination", "Austin"))
    wrong = talk.connectivity(text, train("origin", "Austin"), train("destination", "Boston"))
    assert wrong < ROLL_BACK < right


def test_graph_answer_belongs_to_the_slot_that_was_asked_for() -> None:
    """The user only answers; the assistant's question names the slot."""
    context = after(assistant("Where do you start?", asks("origin")))
    assert talk.connectivity("Boston", train("origin", "Boston"), context=context) > 0.9
    assert talk.connectivity("Boston", train("destination", "Boston"), context=context) < ROLL_BACK


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("I am heading to Austin", train("destination", "Berlin")),
        ("on March 7 please", train("day", "March 9")),
        ("at 17:30", train("time", "11:15")),
        ("for three people", train("travelers", "5")),
        ("first class please", train("class", "second")),
        ("a train on March 7", train("destination", "March 7")),
        ("from Boston please", train("time", "Boston")),
        ("from Boston please", train("class", "Boston")),
        ("from Boston please", train("quiet", "Boston")),
        ("to Austin", train("rooms", "2")),
        ("to Austin", Token("find_hotel", "destination", "Austin", service="trains")),
    ],
    ids=lambda given: given if isinstance(given, str) else f"{given.slot}={given.value}",
)
def test_graph_token_that_does_not_fit_is_rolled_back(text: str, token: Token) -> None:
    """Not said; said otherwise; of another kind; not listed; of another service; of a foreign intent."""
    assert talk.connectivity(text, token) < ROLL_BACK


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("at 5:30 in the evening", train("time", "17:30")),
        ("for three people", train("travelers", "3")),
        ("just myself", train("travelers", "1")),
        ("on the seven of march", train("day", "March 7")),
        ("I prefer LA", train("destination", "Los Angeles, CA")),
        ("to san fran", train("destination", "San Francisco")),
        ("cheap seats will do", train("class", "second")),
        ("a quiet one please", train("quiet", "True")),
        ("to filadelphia", train("destination", "Philadelphia")),
        ("what class is it", Token("find_train", "class", act="request", service="trains")),
    ],
    ids=lambda given: given if isinstance(given, str) else f"{given.slot}={given.value}",
)
def test_graph_other_words_for_a_value_are_no_alarm(text: str, token: Token) -> None:
    """Times by what they are worth, numbers in words, short names, listed words, slips of the pen."""
    assert talk.connectivity(text, token) >= ROLL_BACK


def test_graph_value_from_before_is_evidence() -> None:
    """What was said some turns ago still bears a value out, a figure less than a name."""
    context = after(user("my sister lives in Boston"), assistant("How nice."), user("yes"), assistant("So?"))
    assert talk.connectivity("from there then", train("origin", "Boston"), context=context) > ROLL_BACK
    assert talk.connectivity("from there then", train("origin", "Salem"), context=context) < ROLL_BACK


def test_graph_tells_what_decided() -> None:
    """The weakest token, its weakest edge and why, in words."""
    found = GRAPH.judge(
        Context(), user("to Austin on March 7", train("destination", "Austin"), train("day", "March 9"))
    )
    assert found.weakest is not None
    assert (found.weakest.token.slot, found.weakest.edge) == ("day", "evidence")
    assert "March 9" in found.words
    assert "not said" in found.words


@given(
    st.permutations(
        [train("origin", "Austin"), train("day", "March 9"), train("travelers", "2"), train("class", "first")]
    )
)
def test_graph_order_of_tokens_changes_no_bit(tokens: list[Token]) -> None:
    """Replay feeds tokens in whatever order they come."""
    text = "two of us from Boston on March 7 first class"
    assert GRAPH.judge(Context(), user(text, *tokens)) == GRAPH.judge(
        Context(), user(text, *sorted(tokens, key=repr))
    )
    context = Context().after(user(text, *tokens), talk.ONTOLOGY)
    assert context == Context().after(user(text, *sorted(tokens, key=repr)), talk.ONTOLOGY)


_weights = st.floats(0.01, 1.0)


@given(
    st.lists(
        st.tuples(_weights, _weights, st.lists(_weights, min_size=1, max_size=4)), min_size=1, max_size=6
    )
)
def test_graph_shortest_path_equals_the_product_of_best_edges(
    given_chains: list[tuple[float, float, list[float]]],
) -> None:
    """Dijkstra on -log w is the closed form: e1 times the root of e2 times the best evidence to the power 0.7."""
    chains = [
        Chain(
            (
                Link("intent", Edge(e1)),
                Link("context", Edge(e2), 0.5),
                *(Link("evidence", Edge(one), 0.7, str(index)) for index, one in enumerate(e4)),
            )
        )
        for e1, e2, e4 in given_chains
    ]
    closed = [e1 * math.sqrt(e2) * max(e4) ** 0.7 for e1, e2, e4 in given_chains]
    assert reliabilities(chains) == pytest.approx(closed, abs=1.1e-4)
    for found in itertools.permutations(chains[:3]):
        assert sorted(reliabilities(found)) == sorted(reliabilities(chains[:3]))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_connectivity_lies_between_the_least_and_the_mean(values: list[float]) -> None:
    """0.7 of the mean and 0.3 of the least, rounded to 1e-4."""
    found = connectivity(values)
    assert min(values) - 1e-4 <= found <= sum(values) / len(values) + 1e-4
    assert found == round(found, 4)


def test_context_stays_small_over_many_turns() -> None:
    """What a verdict looks at does not grow, so its cost does not either."""
    context = Context()
    for index in range(500):
        context = context.after(user(f"to town{index}", train("destination", f"town{index}")), talk.ONTOLOGY)
        context = context.after(assistant("When?", asks("day")), talk.ONTOLOGY)
    assert len(context.recent) == RECENT_TURNS
    assert len(context.values) == KEPT_VALUES
    assert len(context.intents) <= KEPT_INTENTS


def test_context_roll_back_is_using_the_older_one() -> None:
    """Contexts are values: a turn whose tokens left leaves its text only."""
    before = after(user("from Boston", train("origin", "Boston")))
    without = before.after(user("to Austin"), talk.ONTOLOGY)
    assert without.values == before.values
    assert without.recent != before.recent


def test_graph_many_tokens_are_compared_as_they_are_written() -> None:
    """A form of very many slots costs no more than their words: only the first are looked for in other spellings."""
    alike = [train("destination", "filadelphia")]
    others = [train("bags", str(index)) for index in range(MOST_LOOSE)]

    def evidence(tokens: list[Token]) -> float:
        found = GRAPH.judge(Context(), user("to Philadelphia", *tokens))
        return next(one.value for one in found.tokens if one.token.slot == "destination")

    assert evidence(alike) > evidence(alike + others)
