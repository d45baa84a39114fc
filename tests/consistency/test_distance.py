"""The distance of two texts."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consistency.distance import DistanceModel, TextJudge, distance, shipped
from consistency.features import NAMES, compare
from consistency.observation import Observation, Word
from tests.consistency.texts import said, typed

COMMANDS = (
    "set an alarm for seven am tomorrow",
    "turn on the kitchen lights",
    "book a train from boston to austin on friday",
    "remind me to call anna at noon",
    "play the latest song by rush",
    "how is the weather in berlin next tuesday",
)
CONTRADICTIONS = (
    ("set an alarm for fifteen minutes", "set an alarm for fifty minutes"),
    ("wake me at nine am", "wake me at 9 pm"),
    ("what is on my calendar today", "what is on my calendar tomorrow"),
    ("turn on the fan in the bedroom", "turn off the fan in the bedroom"),
    ("send the email to my boss", "don't send the email to my boss"),
    ("lock the front door", "unlock the front door"),
    ("find a train from boston to austin", "find a train from austin to boston"),
)
HARMLESS = (
    ("set an alarm for fifteen minutes", "Please set an alarm for 15 minutes."),
    ("wake me at half past nine in the morning", "wake me at 9:30 am, thanks"),
    ("what s on my calendar today", "What's on my calendar today?"),
    ("turn on the fan in the bedroom", "turn the bedroom fan on"),
    ("play the song again", "play the sonng again"),
)


@pytest.mark.parametrize(("one", "other"), CONTRADICTIONS)
def test_distance_one_word_contradicts(one: str, other: str) -> None:
    """A contradiction of one word lies above the operating point, whichever way round; and somebody is told why."""
    assert distance(said(one), typed(other)) > 0.85
    assert distance(said(other), typed(one)) > 0.85
    found = TextJudge().compare(said(one), typed(other))
    assert found.relation == "restatement"
    assert any(evidence.about for evidence in found.evidence if evidence.name not in ("distance", "relation"))


@pytest.mark.parametrize(("one", "other"), HARMLESS)
def test_distance_other_spellings_are_no_contradiction(one: str, other: str) -> None:
    """Digits, politeness, contractions, slips and another order stay below the suspect's mark."""
    assert distance(said(one), typed(other)) < 0.5


@given(st.sampled_from(COMMANDS))
def test_distance_of_a_text_to_itself_is_small(text: str) -> None:
    """The same words are the same request."""
    assert distance(said(text), typed(text)) < 0.1


def _with(features: tuple[float, ...], name: str, value: float) -> tuple[float, ...]:
    return tuple(value if one == name else old for one, old in zip(NAMES, features, strict=True))


@given(
    st.sampled_from(COMMANDS),
    st.sampled_from(COMMANDS),
    st.sampled_from(
        [
            "number",
            "half_day",
            "day",
            "negation",
            "opposite",
            "polarity",
            "conflicts",
            "roles",
            "fact_lost_first",
        ]
    ),
)
def test_distance_grows_with_contradictions(one: str, other: str, name: str) -> None:
    """One more contradiction never brings two texts nearer, whatever else differs."""
    features = compare(said(one), typed(other)).features
    model = shipped()
    assert model.of(_with(features, name, 0.0)) <= model.of(_with(features, name, 1.0))
    assert model.of(_with(features, name, 1.0)) <= model.of(_with(features, name, 2.0))


@given(st.sampled_from(COMMANDS), st.sampled_from(COMMANDS))
def test_distance_heard_and_typed_may_come_in_either_order(one: str, other: str) -> None:
    """What was heard stands first, whoever came first."""
    assert distance(said(one), typed(other)) == distance(typed(other), said(one))


@given(st.permutations(range(len(NAMES))))
def test_distance_is_the_same_in_any_order_of_summation(order: list[int]) -> None:
    """Weights are summed as integers: their order in the file changes no bit."""
    model = shipped()
    names = [NAMES[at] for at in order]
    weights = {name: model.weights[name] for name in names if name in model.weights}
    shuffled = DistanceModel(model.version, model.bias, weights, model.caps)
    features = compare(said(COMMANDS[0]), typed(COMMANDS[1])).features
    assert shuffled.of(features) == model.of(features)


@given(st.sampled_from(COMMANDS), st.sampled_from(COMMANDS))
def test_distance_is_rounded_and_bounded(one: str, other: str) -> None:
    """In [0, 1], to four decimals, with a fit and without."""
    for model in (shipped(), DistanceModel(0, 0, {}, {})):
        found = distance(said(one), typed(other), model)
        assert 0.0 <= found <= 1.0
        assert found == round(found, 4)


def test_distance_without_a_fit_still_tells_contradictions() -> None:
    """The noisy-or puts contradictions above harmless pairs."""
    bare = DistanceModel(0, 0, {}, {})
    worst = max(distance(said(one), typed(other), bare) for one, other in HARMLESS)
    assert all(distance(said(one), typed(other), bare) > worst for one, other in CONTRADICTIONS)


def test_distance_without_facts_and_vectors_is_a_number() -> None:
    """An observation that only has a text can be compared: no model need have run."""
    one, other = (Observation(name, "text", 0, 0, "lock the door") for name in "ab")
    assert distance(one, other) < 0.1
    assert distance(one, replace(other, text="")) <= 1.0


def test_judge_evidence_names_what_decided() -> None:
    """The weightiest reason stands first behind distance and relation."""
    found = TextJudge().compare(said("wake me at nine am"), typed("wake me at nine pm"))
    assert [one.name for one in found.evidence[:2]] == ["distance", "relation"]
    assert found.evidence[0].value == found.distance
    assert any("am against pm" in one.about for one in found.evidence)


def test_judge_names_the_word_that_the_recogniser_doubted() -> None:
    """Of the words that differ the least sure one is evidence; sure ones, and equal ones, are not."""
    heard = said("fly to austin")
    words = (Word("fly", 0.2, 0, 1), Word("to", 0.9, 1, 2), Word("Austin", 0.41, 2, 3))
    found = TextJudge().compare(replace(heard, words=words), typed("fly to boston"))
    assert [(one.value, one.about) for one in found.evidence if one.name == "confidence"] == [
        (0.41, "austin")
    ]
    assert not [
        one for one in TextJudge().compare(heard, typed("fly to boston")).evidence if one.name == "confidence"
    ]


def test_features_have_one_value_per_name() -> None:
    """The row fits the model's columns, and weights name only columns."""
    assert len(compare(said("a b"), typed("c")).features) == len(NAMES)
    assert set(shipped().weights) <= set(NAMES)
