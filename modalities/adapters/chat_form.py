"""A prompt's messages in the form that a model's chat template can write down."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from modalities.ports import ChatMessage

Form = list[dict[str, Any]]  # messages as a chat completions request carries them


@dataclass(frozen=True, slots=True)
class TemplateSkills:
    """What a chat template knows: tool definitions with calls and their outputs, and messages of the role system."""

    tools: bool = False
    system: bool = True


GREETING = ChatMessage("user", "Hello!")
"""Stands for the user where nobody has said anything yet: the assistant speaks first, and greets."""


def chat_form(messages: Sequence[ChatMessage], skills: TemplateSkills) -> Form:
    """Returns the messages for a template with such skills, never empty."""
    if not any(message.role in ("user", "tool") for message in messages):
        messages = (*messages, GREETING)
    if skills.tools:
        return [_native(message) for message in messages]
    told = _tools_told(messages)
    return [_plain(message) for message in (told if skills.system else _system_told(told))]


def strict_form(messages: Sequence[ChatMessage]) -> Form:
    """Returns the messages as user and assistant in turn, the user first: what every template can write."""
    turns: list[ChatMessage] = []
    for message in _system_told(_tools_told(messages or (GREETING,))):
        if turns and turns[-1].role == message.role:
            turns[-1] = replace(turns[-1], content=_lines(turns[-1].content, message.content))
        else:
            turns.append(message)
    if not turns or turns[0].role != "user":
        turns.insert(0, GREETING)
    return [_plain(message) for message in turns]


def _native(message: ChatMessage) -> dict[str, Any]:
    form: dict[str, Any] = {"role": message.role, "content": _encodable(message.content)}
    if message.tool_calls:
        form["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        form["tool_call_id"] = message.tool_call_id
    return form


def _plain(message: ChatMessage) -> dict[str, Any]:
    return {"role": message.role, "content": _encodable(message.content)}


def _encodable(text: str) -> str:
    """Half a surrogate pair, which JSON can carry and UTF-8 cannot, becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def _tools_told(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Leaves calls out and tells their outputs with the question that they answer.

    Measured with a model of 135M parameters: facts before the question are used in most answers; after it, as a system
    message or with the role tool, in few.
    """
    told: list[ChatMessage] = []
    for message in messages:
        if message.role == "tool":
            _tell(told, readable(message.content))
        elif message.content or not message.tool_calls:
            told.append(replace(message, tool_calls=()))
    return told


def _tell(told: list[ChatMessage], fact: str) -> None:
    asked = next((n for n in range(len(told) - 1, -1, -1) if told[n].role == "user"), None)
    if asked is None:
        told.append(ChatMessage("user", fact))
    else:
        told[asked] = replace(told[asked], content=_lines(fact, told[asked].content))


def _system_told(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Puts every system message before what the user says next, else behind what was said last."""
    told: list[ChatMessage] = []
    waiting = ""
    for message in messages:
        if message.role == "system":
            waiting = _lines(waiting, message.content)
        elif message.role == "user" and waiting:
            told.append(replace(message, content=_lines(waiting, message.content)))
            waiting = ""
        else:
            told.append(message)
    return [*told, ChatMessage("user", waiting)] if waiting else told


def _lines(first: str, second: str) -> str:
    return f"{first}\n{second}" if first and second else first or second


def readable(output: str) -> str:
    """Returns a tool's output as words: ``{"sky": "sunny", "wind": 3}`` as ``sky: sunny, wind: 3.``"""
    try:
        words = _words(json.loads(output))
    except ValueError:
        return output
    return f"{words}." if words and words[-1].isalnum() else words


def _words(value: object) -> str:
    match value:
        case dict():
            return ", ".join(
                f"{str(name).replace('_', ' ')}: {_words(inner)}" for name, inner in value.items()
            )
        case list():
            return ", ".join(map(_words, value))
        case bool():
            return "yes" if value else "no"
        case None:
            return "nothing"
        case _:
            return str(value)
