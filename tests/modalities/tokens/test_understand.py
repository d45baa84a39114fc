"""Intents by the nearest example, slots by patterns."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from modalities.adapters.registry import build
from modalities.tokens.ontology import GENERAL_SLOTS, Domain, domain_from
from modalities.tokens.understand import LONGEST_TEXT, ExampleUnderstander, find_slots

DOMAIN_SETTINGS = yaml.safe_load(
    (Path(__file__).parents[3] / "configs" / "domains" / "default.yaml").read_text()
)
DOMAIN = domain_from(DOMAIN_SETTINGS)


class _Embedder:
    """Texts have the vectors that they are given here."""

    dimensions = 3

    def __init__(self, **vectors: tuple[float, float, float]) -> None:
        self._vectors = vectors

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.array([self._vectors[text] for text in texts], np.float32)
        lengths: NDArray[np.float32] = np.linalg.norm(rows, axis=1, keepdims=True)
        return (rows / lengths).astype(np.float32)


def _domain(**intents: list[str]) -> Domain:
    return domain_from(
        {
            "threshold": 0.6,
            "margin": 0.1,
            "intents": {name: {"examples": examples} for name, examples in intents.items()},
        }
    )


def _slots(intent: str, text: str) -> list[tuple[str, str]]:
    found = next(one for one in DOMAIN.intents if one.name == intent)
    slots = find_slots(text, DOMAIN.slots_of(found))
    assert all(0 <= slot.start < slot.stop <= len(text) for slot in slots)
    return [(slot.name, slot.value) for slot in slots]


def test_understander_tells_how_like_a_text_is_to_everything_described() -> None:
    """An intent is as near as its description or its nearest example, a service as its description."""
    embedder = _Embedder(a=(1, 0, 0), b=(0, 1, 0), told=(0, 0, 1), ours=(0, 0.6, 0.8), text=(0, 0.6, 0.8))
    domain = domain_from(
        {
            "name": "d",
            "description": "ours",
            "intents": {
                "first": {"examples": ["a"], "description": "told"},
                "second": {"examples": ["b"]},
            },
        }
    )
    (found,) = ExampleUnderstander(embedder, domain).understand(["text"])
    assert {name: round(much, 3) for name, much in found.likeness.items()} == {
        "service:d": 1.0,
        "intent:d.first": 0.8,
        "intent:d.second": 0.6,
    }


def test_understander_takes_what_is_a_little_far_where_it_is_clearly_ahead() -> None:
    """Below the threshold by less than `A_LITTLE_FAR`: the lead decides."""
    embedder = _Embedder(a=(1, 0, 0), b=(0, 1, 0), alone=(0.55, 0.1, 0.83), torn=(0.55, 0.53, 0.64))
    understander = ExampleUnderstander(embedder, _domain(first=["a"], second=["b"]))
    alone, torn = understander.understand(["alone", "torn"])
    assert (alone.intent, torn.intent) == ("first", None)


def test_understander_counts_slots_and_opposites_where_vectors_are_alike() -> None:
    """Two intents are equally near: the one that takes the slot, and the one that points the same way."""
    one, other = (1, 0, 0), (1, 0, 0)
    by_slot = domain_from(
        {
            "margin": 0.01,
            "slots": {"hue": {"values": {"red": []}}},
            "intents": {"plain": {"examples": ["a"]}, "colour": {"examples": ["b"], "slots": ["hue"]}},
        }
    )
    embedder = _Embedder(**{"a": one, "b": other, "make it red": (1, 0, 0)})
    (found,) = ExampleUnderstander(embedder, by_slot).understand(["make it red"])
    assert found.intent == "colour"
    by_side = domain_from(
        {"margin": 0.01, "intents": {"on": {"examples": ["lights on"]}, "off": {"examples": ["lights off"]}}}
    )
    embedder = _Embedder(**{"lights on": one, "lights off": other, "turn off all of it": (1, 0, 0)})
    (found,) = ExampleUnderstander(embedder, by_side).understand(["turn off all of it"])
    assert found.intent == "off"


def test_understander_gives_nobody_what_he_forbids() -> None:
    """However near the words are; an intent whose nearest example forbids something too is it."""
    embedder = _Embedder(
        **{
            "unlock it": (1, 0, 0),
            "don't unlock it": (0.99, 0.1, 0),
            "don't wake me": (0, 1, 0),
            "do not wake me up": (0.1, 0.99, 0),
        }
    )
    understander = ExampleUnderstander(embedder, _domain(unlock=["unlock it"], sleep=["don't wake me"]))
    opened, forbidden, asleep = understander.understand(["unlock it", "don't unlock it", "do not wake me up"])
    assert [one.intent for one in (opened, forbidden, asleep)] == ["unlock", None, "sleep"]


def test_slots_are_never_empty() -> None:
    """What stands where a value would, and was taken back, is none."""
    assert _slots("play_music", "play not afraid by Eminem") == []


def test_slots_hold_nothing_that_was_taken_back_or_is_not_wanted() -> None:
    """The value that stands, in its place, and none for what is denied."""
    assert _slots("get_weather", "the weather in Boston, no, Austin tomorrow") == [
        ("city", "Austin"),
        ("day", "tomorrow"),
    ]
    assert _slots("set_alarm", "an alarm at seven am but not on Friday") == [("time", "seven am")]
    assert _slots("set_alarm", "an alarm at seven am.") == [("time", "seven am")]


def test_understander_takes_the_intent_of_the_nearest_example() -> None:
    """The second example of the second intent is nearest: that intent, with its cosine."""
    embedder = _Embedder(a=(1, 0, 0), b=(0, 0, 1), c=(0, 1, 0), text=(0.1, 1, 0))
    understander = ExampleUnderstander(embedder, _domain(first=["a"], second=["b", "c"]))
    (found,) = understander.understand(["text"])
    assert found.intent == "second"
    assert found.confidence == pytest.approx(1 / np.sqrt(1.01))
    assert found.vector == pytest.approx(embedder.embed(["text"])[0])


def test_understander_far_text_has_no_intent() -> None:
    """Below the threshold nothing is claimed, whatever is nearest."""
    embedder = _Embedder(a=(1, 0, 0), b=(0, 1, 0), text=(0.5, 0, 1))
    (found,) = ExampleUnderstander(embedder, _domain(first=["a"], second=["b"])).understand(["text"])
    assert (found.intent, found.confidence) == (None, 0.0)


def test_understander_text_between_two_intents_has_none() -> None:
    """Without a clear lead nothing is claimed."""
    embedder = _Embedder(a=(1, 0, 0), b=(0, 1, 0), text=(1, 0.95, 0))
    (found,) = ExampleUnderstander(embedder, _domain(first=["a"], second=["b"])).understand(["text"])
    assert found.intent is None


def test_understander_lead_is_over_other_intents_not_over_its_own_examples() -> None:
    """Two near examples of one intent do not make it doubtful."""
    embedder = _Embedder(a=(1, 0, 0), b=(1, 0.01, 0), c=(0, 0, 1), text=(1, 0, 0))
    (found,) = ExampleUnderstander(embedder, _domain(first=["a", "b"], second=["c"])).understand(["text"])
    assert found.intent == "first"


def test_understander_without_a_domain_finds_general_slots() -> None:
    """No intents, but numbers and times."""
    embedder = _Embedder(**{"at 7 pm": (1, 0, 0)})
    (found,) = ExampleUnderstander(embedder, domain_from({})).understand(["at 7 pm"])
    assert found.intent is None
    assert [(slot.name, slot.value) for slot in found.slots] == [("time", "7 pm")]


@pytest.mark.parametrize(
    ("intent", "text", "expected"),
    [
        ("set_timer", "Set a timer for ten minutes.", [("duration", "ten minutes")]),
        ("set_timer", "a 5-minute timer", [("duration", "5-minute")]),
        ("set_timer", "timer for an hour and a half", [("duration", "an hour and a half")]),
        ("set_timer", "pasta timer, 1 hour and 20 minutes", [("duration", "1 hour and 20 minutes")]),
        ("cancel_timer", "delete the pasta timer", [("timer_name", "pasta")]),
        ("cancel_timer", "cancel the timer", []),
        ("set_alarm", "Wake me up at 6:30 tomorrow", [("time", "6:30"), ("day", "tomorrow")]),
        ("set_alarm", "Wake me up at 6.30 tomorrow.", [("time", "6.30"), ("day", "tomorrow")]),
        ("set_alarm", "alarm for half past six", [("time", "half past six")]),
        ("set_alarm", "at seven a.m. on Monday", [("time", "seven a.m."), ("day", "Monday")]),
        ("get_weather", "Weather in New York tomorrow?", [("city", "New York"), ("day", "tomorrow")]),
        ("get_weather", "will it rain in paris this weekend", [("city", "paris"), ("day", "this weekend")]),
        ("get_weather", "forecast for Monday", [("day", "Monday")]),
        ("lights_on", "make the lounge warm white", [("room", "living room"), ("color", "warm white")]),
        ("dim_lights", "dim the Kitchen to 30%", [("room", "kitchen"), ("percentage", "30%")]),
        ("play_music", "play Bohemian Rhapsody by Queen please", [("music", "Bohemian Rhapsody by Queen")]),
        ("play_music", "play some music", []),
        ("set_reminder", "remind me to call mom at five", [("task", "call mom"), ("time", "five")]),
        ("tell_time", "what time is it", []),
    ],
)
def test_slots_of_the_shipped_domain(intent: str, text: str, expected: list[tuple[str, str]]) -> None:
    """Spoken and written forms, in the order in which they stand in the text."""
    assert _slots(intent, text) == expected


def test_slots_stand_where_their_offsets_say() -> None:
    """Offsets are characters of the text as it was given, also behind letters that grow in lower case."""
    text = "İİ in the KITCHEN, 30 percent"
    intent = next(one for one in DOMAIN.intents if one.name == "dim_lights")
    room, percentage = find_slots(text, DOMAIN.slots_of(intent))
    assert (text[room.start : room.stop], room.value) == ("KITCHEN", "kitchen")
    assert text[percentage.start : percentage.stop] == "30 percent"


def test_slots_listed_words_count_only_as_whole_words() -> None:
    """ "hallmark" is no hall."""
    assert _slots("lights_on", "the hallmark of redness") == []


@given(st.text(max_size=200))
def test_slots_of_any_text_lie_inside_it_and_do_not_overlap(text: str) -> None:
    """Whatever is typed: no crash, sorted, disjoint."""
    slots = find_slots(text, (*GENERAL_SLOTS, *(DOMAIN.slots or {}).values()))
    places = [(slot.start, slot.stop) for slot in slots]
    assert places == sorted(places)
    assert all(0 <= start < stop <= len(text) for start, stop in places)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(places))


def test_slots_of_an_endless_text_are_those_of_its_beginning() -> None:
    """A pasted book does not hold the worker up."""
    slots = find_slots("x " * LONGEST_TEXT + "at 7 pm", GENERAL_SLOTS)
    assert slots == ()


@pytest.mark.real
def test_understander_real_embedder_knows_the_shipped_domain() -> None:
    """Sentences that are not among the examples find their intent; what belongs to none finds none."""
    understander = ExampleUnderstander(build("embed", "minilm_onnx", {}), DOMAIN)
    meant = {
        "could you set a timer for 12 minutes please": "set_timer",
        "stop that timer": "cancel_timer",
        "wake me at quarter past seven": "set_alarm",
        "is it raining in London": "get_weather",
        "please switch the lights on in the bedroom": "lights_on",
        "kill the lights": "lights_off",
        "play something by the Beatles": "play_music",
        "remind me to buy bread tomorrow": "set_reminder",
        "a bit louder please": "set_volume",
        "what's the time": "tell_time",
        "hi": "greeting",
        "thanks": "thanks",
    }
    found = [one.intent for one in understander.understand(list(meant))]
    right = sum(got == expected for got, expected in zip(found, meant.values(), strict=True))
    assert right >= len(meant) - 1, dict(zip(meant, found, strict=True))
    strange = understander.understand(
        ["the treaty was signed in 1648", "my cat had five kittens", "photosynthesis"]
    )
    assert [one.intent for one in strange] == [None, None, None]
