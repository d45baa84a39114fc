"""What the tests of the embedded language model ask it, and what they keep of its replies."""

import json
from typing import Any

from modalities.ports import (
    ChatMessage,
    Completion,
    LanguageModel,
    Prompt,
    ReplyDelta,
    TextDelta,
    Tool,
    ToolCallDelta,
)

SYSTEM = ChatMessage(
    "system",
    "You are a friendly voice assistant. Answer in one or two short, clear sentences, in plain words without lists.",
)
WEATHER = Tool(
    "get_weather",
    "Get the weather forecast",
    json.dumps(
        {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer", "minimum": 1, "maximum": 9},
            },
            "required": ["city"],
        }
    ),
)
TIMER = Tool(
    "set_timer",
    "Start a timer",
    '{"type":"object","properties":{"minutes":{"type":"integer","minimum":1}},"required":["minutes"]}',
)
CONTEXT = 512


class Reply:
    """What a prompt gave: the deltas, when they came, and the completion. Wants no more after `limit` deltas."""

    def __init__(self, model: LanguageModel, prompt: Prompt, limit: int = 10_000) -> None:
        self.deltas: list[ReplyDelta] = []
        self._limit = limit
        self.end: Completion = model.generate(prompt, self._emit)

    def _emit(self, delta: ReplyDelta) -> bool:
        if delta != TextDelta(""):  # which only asks
            self.deltas.append(delta)
        return len(self.deltas) < self._limit

    @property
    def text(self) -> str:
        assert all(isinstance(delta, TextDelta) for delta in self.deltas)
        return "".join(delta.text for delta in self.deltas if isinstance(delta, TextDelta))

    @property
    def arguments(self) -> Any:
        calls = [delta for delta in self.deltas if isinstance(delta, ToolCallDelta)]
        assert len(calls) == len(self.deltas)
        assert [call.name is None for call in calls] == [n > 0 for n in range(len(calls))]
        written = "".join(call.arguments for call in calls)
        assert [call.arguments for call in self.end.tool_calls] == [written]
        assert self.end.finish_reason == "tool_calls"
        return json.loads(written)


def asking(*words: str, **rest: Any) -> Prompt:
    """Returns a prompt in which user and assistant take turns, the user first and last."""
    roles = ("user", "assistant")
    return Prompt((SYSTEM, *(ChatMessage(roles[n % 2], text) for n, text in enumerate(words))), **rest)
