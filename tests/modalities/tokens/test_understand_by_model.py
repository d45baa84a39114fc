"""A language model that is held to a domain's schema, and not believed beyond it."""

import json

import numpy as np
import pytest

from modalities.adapters.scripted import ReplyScript, ScriptedEmbedder, ScriptedLanguageModel
from modalities.ports import Slot
from modalities.tokens.ontology import domain_from
from modalities.tokens.understand_by_model import CONFIDENCE, ModelUnderstander, schema_of, understanding_from

DOMAIN = domain_from(
    {
        "name": "home",
        "intents": {
            "lights_on": {"examples": ["lights on"], "slots": ["room", "note"]},
            "stop": {"examples": ["stop it"]},
        },
        "slots": {
            "room": {"values": {"kitchen": [], "living room": ["lounge"]}},
            "note": {"patterns": ["note (.*)"]},
        },
    }
)
VECTOR = np.ones(2, np.float32)


def answered(answer: object, text: str) -> tuple[str | None, tuple[Slot, ...]] | None:
    found = understanding_from(json.dumps(answer), text, VECTOR, DOMAIN)
    return None if found is None else (found.intent, found.slots)


def test_schema_is_the_domain() -> None:
    """One of its intents or none; its slots, listed values as they are listed."""
    schema = schema_of(DOMAIN)
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert properties["intent"]["enum"] == ["lights_on", "stop", "none"]
    assert properties["slots"]["properties"]["room"]["enum"] == ["kitchen", "living room"]
    assert properties["slots"]["properties"]["note"] == {"type": "string"}
    assert schema["required"] == ["intent", "slots"]


def test_understanding_finds_where_a_value_stands() -> None:
    """Also where it was said in other words."""
    answer = {"intent": "lights_on", "slots": {"room": "living room"}}
    assert answered(answer, "light in the lounge") == (
        "lights_on", (Slot("room", "living room", 13, 19, CONFIDENCE),)
    )  # fmt: skip


def test_understanding_leaves_out_what_a_model_invents() -> None:
    """A value that nobody said, a slot of another intent, what is no text; a listed value stays, as inferred."""
    invented = {"intent": "lights_on", "slots": {"note": "call mom", "door": "front", "room": 7}}
    assert answered(invented, "lights on") == ("lights_on", ())
    assert answered({"intent": "stop", "slots": {"room": "kitchen"}}, "stop in the kitchen") == ("stop", ())
    inferred = answered({"intent": "lights_on", "slots": {"room": "kitchen"}}, "where I cook")
    assert inferred == ("lights_on", (Slot("room", "kitchen", -1, -1, CONFIDENCE / 2),))


def test_understanding_none_is_no_intent() -> None:
    """The model may say that nothing fits."""
    assert answered({"intent": "none", "slots": {}}, "well") == (None, ())


@pytest.mark.parametrize("arguments", ["", "{", "[]", '{"intent": "stop"}', '{"intent": "fly", "slots": {}}'])
def test_understanding_refuses_what_is_no_answer(arguments: str) -> None:
    """Cut off, of another shape, of another domain."""
    assert understanding_from(arguments, "stop", VECTOR, DOMAIN) is None


def test_understander_asks_the_model_and_falls_back_to_examples() -> None:
    """The model's answer where there is one, the nearest example where there is none."""
    call = {"name": "understand", "arguments": {"intent": "lights_on", "slots": {"room": "kitchen"}}}
    model = ScriptedLanguageModel(ReplyScript(tool_calls={"cook": call}))
    understander = ModelUnderstander(ScriptedEmbedder(), model, DOMAIN)
    by_model, by_example = understander.understand(["I cook in the kitchen", "stop it"])
    assert (by_model.intent, [slot.value for slot in by_model.slots]) == ("lights_on", ["kitchen"])
    assert by_example.intent == "stop"
    assert len(by_model.vector) == len(by_example.vector)
