"""Tool calls by a model without tools: which tool, what was said, and which texts may stand."""

import json

from hypothesis import given
from hypothesis import strategies as st

from modalities.adapters.grammar import after, may_end, shortest
from modalities.adapters.tool_form import (
    best_tool,
    form,
    parameters_of,
    said,
    users_words,
    without_the_unsaid,
)
from modalities.ports import ChatMessage, Tool

WEATHER = Tool(
    "get_weather",
    "Get the weather forecast",
    json.dumps(
        {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "city name"},
                "days": {"type": "integer", "minimum": 1},
                "unit": {"enum": ["celsius", "fahrenheit"]},
            },
            "required": ["city"],
        }
    ),
)
MUSIC = Tool("playMusic", "Play music by an artist")
TIMER = Tool("set_timer", "Start a timer")


def user(*contents: str) -> list[ChatMessage]:
    return [ChatMessage("user", content) for content in contents]


def allows(words: str, text: str, low: int = 0, high: int = 60) -> bool:
    return may_end(after(users_words(words)(low, high), text))


def test_said_reaches_back_for_short_messages_only() -> None:
    """A full sentence stands alone; "and Rome?" needs what was asked before."""
    assert (
        said(user("play some jazz", "what is the weather like in Oslo")) == "what is the weather like in Oslo"
    )
    assert said(user("what is the weather in Oslo tomorrow", "and Rome?")) == (
        "what is the weather in Oslo tomorrow and Rome?"
    )
    assert said([ChatMessage("system", "x")]) == ""


def test_said_is_bounded() -> None:
    """Of a long text the end is taken."""
    assert said(user("start " + "word " * 500 + "end")).split()[-1] == "end"
    assert len(said(user("word " * 500)).split()) < 100


def test_best_tool_shares_most_words() -> None:
    """Names in either style, descriptions and parameters count; without any common word it is the first."""
    tools = (WEATHER, MUSIC, TIMER)
    assert best_tool(tools, "How warm is it in fahrenheit?") is WEATHER
    assert best_tool(tools, "I want to hear some music") is MUSIC
    assert best_tool(tools, "Set a timer for ten minutes") is TIMER
    assert best_tool(tools, "hello") is WEATHER


def test_form_shows_the_tool_and_what_was_said() -> None:
    """The last message carries description, fields with their hints, and the user's words."""
    text = form(WEATHER, parameters_of(WEATHER), "rain in Oslo?")[-1].content
    for part in (
        "Get the weather forecast",
        "city (city name)",
        "whole number",
        "celsius, fahrenheit",
        "rain in Oslo?",
    ):
        assert part in text


def test_parameters_that_are_no_json_object_allow_anything() -> None:
    """A client's broken schema does not stop a call."""
    assert parameters_of(Tool("x", parameters="{")) == {}
    assert parameters_of(Tool("x", parameters="[]")) == {}


def test_unsaid_numbers_and_choices_are_not_asked_for() -> None:
    """Optional numbers need a number, optional choices one of theirs; required parts and texts stay."""
    schema = parameters_of(WEATHER)
    assert list(without_the_unsaid(schema, "weather in Oslo")["properties"]) == ["city"]
    assert list(without_the_unsaid(schema, "weather for three days")["properties"]) == ["city", "days"]
    assert list(without_the_unsaid(schema, "in Celsius please")["properties"]) == ["city", "unit"]
    needed = {**schema, "required": ["days"]}
    assert list(without_the_unsaid(needed, "hello")["properties"]) == ["city", "days"]


def test_users_words_are_runs_of_whole_words() -> None:
    """A text may be any run that begins with a word of content, without punctuation at its end."""
    words = 'Tell Anna, please, that "the Golden Dragon" opens at 7 p.m.!'
    for text in ("Anna", "Golden Dragon", "Tell Anna, please", "7 p.m", "Anna, please, that"):
        assert allows(words, text), text
    for text in ("", "Ann", "the Golden", "Dragon Golden", "please", "Anna,", "Bob"):
        assert not allows(words, text), text


def test_users_words_keep_to_the_length_that_is_asked_for() -> None:
    """Runs of other lengths are left out; where none is left, any text of that length may stand."""
    assert not allows("New York City", "New York City", high=8)
    assert allows("New York City", "New York", high=8)
    assert not allows("New York City", "New", low=5)
    assert allows("of the", "anything at all")
    assert allows("Oslo", "x" * 50, low=50)


@given(st.text(max_size=80), st.integers(0, 30), st.integers(0, 30))
def test_users_words_always_leave_a_text_of_the_length(words: str, low: int, more: int) -> None:
    """Whatever was said, there is a text, and it needs no escape in JSON."""
    text = shortest(users_words(words)(low, low + more))
    assert text is not None
    assert low <= len(text) <= low + more
    assert json.loads(f'"{text}"') == text
