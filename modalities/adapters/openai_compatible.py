"""Replies by any endpoint that speaks OpenAI's chat completions: vLLM, llama-server, Ollama, a hosted API."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from modalities.errors import AdapterUnavailable, ModalityError
from modalities.ports import (
    ChatMessage,
    Completion,
    Prompt,
    ReplyDelta,
    TextDelta,
    Tool,
    ToolCall,
    ToolCallDelta,
)

_CONNECT_S = 5.0
_NO_KEY = "none"
"""Local servers ask for no key, but the client library insists on one."""


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """What a configuration may say. `base_url` ends where ``/chat/completions`` begins; None is OpenAI's own.

    `key_environment` names the environment variable that holds the key; where it is unset, none is sent that a server
    could know. `max_tokens` and `temperature` are for prompts that set none; None leaves them to the endpoint.
    `limit_field` is what the endpoint calls the limit: newer hosted models want ``max_completion_tokens``. `timeout_s`
    is the longest silence between two pieces of a reply.
    """

    model: str = ""
    base_url: str | None = None
    key_environment: str = "OPENAI_API_KEY"
    max_tokens: int | None = 256
    temperature: float | None = None
    limit_field: str = "max_tokens"
    timeout_s: float = 60.0


class EndpointFailed(ModalityError):
    """The endpoint refused a request, could not be reached, or broke off in the middle of a reply."""


class OpenAiCompatible:
    """A `LanguageModel`; every call is one streamed request on a connection of its own."""

    def __init__(self, settings: EndpointSettings | None = None) -> None:
        """Opens no connection yet. Raises `AdapterUnavailable` where the library is missing and `ModalityError`
        where no model is named."""
        self._settings = settings or EndpointSettings()
        if not self._settings.model:
            raise ModalityError("openai_compatible: set `model` to a name that the endpoint knows")
        try:
            import openai
        except ImportError:
            raise AdapterUnavailable("the openai client", "pip install openai") from None
        self._openai = openai
        self._client = openai.OpenAI(
            api_key=os.environ.get(self._settings.key_environment) or _NO_KEY,
            base_url=self._settings.base_url or "https://api.openai.com/v1",
            timeout=openai.Timeout(self._settings.timeout_s, connect=_CONNECT_S),
            max_retries=1,
        )

    def generate(self, prompt: Prompt, emit: Callable[[ReplyDelta], bool]) -> Completion:
        """Streams one reply; closes the stream once `emit` answers False. Raises `EndpointFailed`."""
        reply = _Reply(emit)
        try:
            with self._client.chat.completions.create(**self._request(prompt)) as chunks:
                for chunk in chunks:
                    if not reply.take(chunk):
                        return reply.completion("cancelled")
        except self._openai.APIStatusError as refused:
            raise EndpointFailed(f"the endpoint refused a request with {refused.status_code}") from refused
        except self._openai.APIError as broken:
            raise EndpointFailed(f"the endpoint failed: {type(broken).__name__}") from broken
        if reply.finish is None:
            raise EndpointFailed("the endpoint broke off in the middle of a reply")
        return reply.completion(reply.finish)

    def close(self) -> None:
        """Closes idle connections."""
        self._client.close()

    def _request(self, prompt: Prompt) -> dict[str, Any]:
        settings = self._settings
        limit = settings.max_tokens if prompt.max_tokens is None else prompt.max_tokens
        temperature = settings.temperature if prompt.temperature is None else prompt.temperature
        request: dict[str, Any] = {
            "model": settings.model,
            "messages": [_message(message) for message in prompt.messages],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        optional = {settings.limit_field: limit, "temperature": temperature, "seed": prompt.seed}
        request |= {name: value for name, value in optional.items() if value is not None}
        if prompt.tools and prompt.tool_choice != "none":
            request |= {"tools": _tools(prompt.tools), "tool_choice": _choice(prompt.tool_choice)}
        return request


class _Reply:
    """Puts the chunks of one stream together."""

    def __init__(self, emit: Callable[[ReplyDelta], bool]) -> None:
        self._emit = emit
        self._calls: dict[int, ToolCall] = {}
        self._usage = (0, 0, 0)
        self.finish: str | None = None

    def take(self, chunk: Any) -> bool:  # the client's own chunk type, absent until it is imported
        """Takes one chunk; returns whether more is wanted."""
        if chunk.usage is not None:
            details = chunk.usage.prompt_tokens_details
            cached = (details.cached_tokens or 0) if details is not None else 0
            self._usage = (chunk.usage.prompt_tokens, cached, chunk.usage.completion_tokens)
        for choice in chunk.choices[:1]:
            if choice.delta is not None and not self._take_delta(choice.delta):
                return False
            self.finish = choice.finish_reason or self.finish
        return True

    def completion(self, finish: str) -> Completion:
        """Returns how the reply ended. A call makes it ``tool_calls``, whatever the endpoint says of a named one."""
        if finish not in ("length", "cancelled"):
            finish = "tool_calls" if self._calls else "stop"
        given, cached, written = self._usage
        return Completion(finish, given, cached, written, tuple(self._calls[n] for n in sorted(self._calls)))

    def _take_delta(self, delta: Any) -> bool:
        if delta.content and not self._emit(TextDelta(delta.content)):
            return False
        return all(self._take_call(place, piece) for place, piece in enumerate(delta.tool_calls or ()))

    def _take_call(self, place: int, piece: Any) -> bool:
        index = place if piece.index is None else piece.index
        name = piece.function.name if piece.function else None
        arguments = (piece.function.arguments if piece.function else None) or ""
        known = self._calls.get(index)
        if known is None:
            call = ToolCall(piece.id or f"call_{index}", name or "", arguments)
            self._calls[index] = call
            return self._emit(ToolCallDelta(index, arguments, call.name, call.call_id))
        self._calls[index] = ToolCall(known.call_id, known.name, known.arguments + arguments)
        return not arguments or self._emit(ToolCallDelta(index, arguments))


def _message(message: ChatMessage) -> dict[str, Any]:
    entry: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        entry["content"] = message.content or None
        entry["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        entry["tool_call_id"] = message.tool_call_id
    return entry


def _tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": json.loads(tool.parameters),
            },
        }
        for tool in tools
    ]


def _choice(choice: str) -> str | dict[str, Any]:
    if choice.startswith("="):
        return {"type": "function", "function": {"name": choice[1:]}}
    return choice
