"""What a chat request asks for, as a reply job; what this server does not do is refused by name."""

import base64
from typing import Any

import pytest
from pydantic import ValidationError

from orchestrator.errors import WireError
from orchestrator.scheduling.work import CallSpec, PromptMessage, Reply, ToolSpec
from orchestrator.sessions.pictures import MOST_PICTURES
from orchestrator.transports.openai_chat import LONGEST_STOP, ChatRequest, reply_of

USER = {"role": "user", "content": "hi"}
WEATHER = {
    "type": "function",
    "function": {"name": "get_weather", "description": "Tells.", "parameters": {"type": "object"}},
}
CALL = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}


PNG = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(100)).decode()
JPEG = "data:image/jpeg;base64," + base64.b64encode(b"\xff\xd8\xff\xe0" + bytes(100)).decode()


def shows(*urls: Any, role: str = "user") -> list[dict[str, Any]]:
    """A message with images around a text."""
    parts = [{"type": "image_url", "image_url": url} for url in urls]
    return [{"role": role, "content": [*parts, {"type": "text", "text": "What is it?"}]}]


def reply(**fields: Any) -> Reply:
    return reply_of(ChatRequest.model_validate({"messages": [USER], **fields}))


def fault(**fields: Any) -> WireError:
    with pytest.raises(WireError) as caught:
        reply(**fields)
    return caught.value


def test_chat_of_every_role_becomes_a_prompt() -> None:
    """Developers speak as the system, parts of text are put together, calls and their outputs keep their ids."""
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
    ]
    assert reply(messages=messages).messages == (
        PromptMessage("system", "Be brief."),
        PromptMessage("user", "one\ntwo"),
        PromptMessage("assistant", "", (CallSpec("c1", "get_weather", "{}"),)),
        PromptMessage("tool", "sunny", (), "c1"),
        PromptMessage("assistant", "no"),
    )


def test_chat_settings_reach_the_job() -> None:
    """The newer name of the limit wins; a prompt that does not fit is told, and no session's prefix is shared."""
    work = reply(
        max_tokens=5, max_completion_tokens=7, temperature=0.5, seed=3, stop=["a", "b"], tools=[WEATHER]
    )
    assert (work.max_tokens, work.temperature, work.seed, work.stop) == (7, 0.5, 3, ("a", "b"))
    assert work.tools == (ToolSpec("get_weather", "Tells.", '{"type":"object"}'),)
    assert work.whole
    assert work.cache_key == ""
    assert reply(stop="x").stop == ("x",)


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        (None, "auto"),
        ("none", "none"),
        ("required", "required"),
        ({"type": "function", "function": {"name": "get_weather"}}, "=get_weather"),
    ],
)
def test_chat_tool_choice_is_the_prompts(given: object, choice: str) -> None:
    """In each of its forms."""
    assert reply(tools=[WEATHER], tool_choice=given).tool_choice == choice


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"audio": {"voice": "x"}}, "audio"),
        ({"functions": []}, "functions"),
        ({"function_call": "auto"}, "function_call"),
        ({"logit_bias": {"50": 1}}, "logit_bias"),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools.0.type"),
        ({"tools": [WEATHER], "tool_choice": {"type": "allowed_tools"}}, "tool_choice"),
    ],
)
def test_chat_that_asks_for_what_is_not_here_is_refused_by_name(fields: dict[str, Any], param: str) -> None:
    """Nothing is left undone in silence."""
    error = fault(**fields)
    assert (error.wire_code, error.param) == ("unsupported_parameter", param)


@pytest.mark.parametrize(
    "fields",
    [
        {"n": 1, "logprobs": False, "top_logprobs": 0, "modalities": ["text"], "logit_bias": {}},
        {"response_format": {"type": "text"}, "top_p": 0.9, "user": "me", "unheard_of": [1]},
        {"stream": False, "stream_options": None},
        {"stream": True, "stream_options": {"include_usage": False}},
    ],
)
def test_chat_that_says_the_usual_is_taken(fields: dict[str, Any]) -> None:
    """Clients write defaults out, and fields that have no effect."""
    assert reply(**fields).messages == (PromptMessage("user", "hi"),)


def test_chat_with_images_shows_them_to_a_model_that_looks() -> None:
    """Each as it came, with the detail that was asked for; the words stand before them."""
    messages = shows({"url": PNG}, {"url": JPEG, "detail": "low"})
    asked = ChatRequest.model_validate({"messages": messages})
    (message,) = reply_of(asked, images=True).messages
    assert message.content == "What is it?"
    assert [(one.url, one.detail) for one in message.images] == [(PNG, ""), (JPEG, "low")]
    assert len({one.name for one in message.images}) == 2


@pytest.mark.parametrize(
    ("messages", "images", "param", "told"),
    [
        (shows({"url": PNG}), False, "messages.0.content.0", "takes text only"),
        (shows({"url": PNG}, role="system"), True, "messages.0.content.0", "Only a user"),
        (shows({"url": "https://example.com/a.png"}), True, "messages.0.content.0.image_url.url", "data URI"),
        (shows({"url": "data:image/png;base64,????"}), True, "messages.0.content.0.image_url.url", "base64"),
        (
            shows({"url": PNG.replace("png", "jpeg")}),
            True,
            "messages.0.content.0.image_url.url",
            "this is no JPEG",
        ),
        (shows(None), True, "messages.0.content.0.image_url", "Missing"),
        (shows({"url": PNG}) * (MOST_PICTURES + 1), True, f"messages.{MOST_PICTURES}.content", "At most"),
        (
            [{"role": "user", "content": [{"type": "input_audio"}]}],
            True,
            "messages.0.content.0",
            "takes text and images",
        ),
    ],
)
def test_chat_with_images_that_cannot_be_shown_names_them(
    messages: list[dict[str, Any]], images: bool, param: str, told: str
) -> None:
    """No address is fetched, nothing is guessed, and none is left out in silence."""
    asked = ChatRequest.model_validate({"messages": messages})
    with pytest.raises(WireError, match=told) as caught:
        reply_of(asked, images)
    assert caught.value.param == param


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": [{"role": "user"}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages.0.content.0"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages.0.content.0"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0.tool_call_id"),
        ({"messages": [{"role": "tool", "tool_call_id": "c9", "content": "x"}]}, "messages.0.tool_call_id"),
        ({"messages": [{"role": "user", "content": "x", "tool_calls": [CALL]}]}, "messages.0.tool_calls"),
        ({"messages": [{"role": "user", "content": "x", "tool_call_id": "c"}]}, "messages.0.tool_call_id"),
        ({"tools": [{"type": "function"}]}, "tools.0.function"),
        ({"tools": [{"function": {"name": "f", "parameters": [1]}}]}, "tools.0.function.parameters"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": {"function": {"name": "other"}}}, "tool_choice"),
        ({"stop": [""]}, "stop"),
        ({"stop": "x" * (LONGEST_STOP + 1)}, "stop"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"stream": False, "stream_options": {}}, "stream_options"),
    ],
)
def test_chat_that_makes_no_sense_names_the_field(fields: dict[str, Any], param: str) -> None:
    """The field as the protocol names it, with the place in its list."""
    assert fault(**fields).param == param


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": [1] * 10_000},
        {"messages": [{"role": "user", "content": [1] * 200}] * 1_000},
        {"messages": [{"role": "assistant", "tool_calls": [1] * 100}] * 1_000},
        {"tools": [1] * 100},
    ],
)
def test_chat_of_nothing_but_faults_is_left_at_the_first(fields: dict[str, Any]) -> None:
    """A body of a megabyte could have a quarter of a million: listing them takes a second of everybody's time."""
    with pytest.raises(ValidationError) as caught:
        reply(**fields)
    assert caught.value.error_count() < 4


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": []},
        {"messages": [{"role": "robot", "content": "x"}]},
        {"temperature": float("nan")},
        {"temperature": 2.1},
        {"seed": 2**63},
        {"max_tokens": 0},
        {"top_p": 1.5},
        {"presence_penalty": 3},
        {"frequency_penalty": -3},
        {"stop": ["a"] * 5},
        {"seed": 10**400},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}] * 300}]},
        {"messages": [{"role": "user", "content": "\ud800"}]},
        {"tools": [{"function": {"name": "f", "parameters": {"\udc00": 1}}}]},
        {"tools": [{"function": {"name": "no spaces"}}]},
    ],
)
def test_chat_out_of_bounds_is_no_request(fields: dict[str, Any]) -> None:
    """Numbers beyond their range, and text that is none, get no further."""
    with pytest.raises(ValidationError):
        reply(**fields)
