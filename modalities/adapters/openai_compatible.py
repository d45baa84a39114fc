"""Replies by any endpoint that speaks OpenAI's chat completions: vLLM, llama-server, Ollama, a hosted API."""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from modalities.adapters.endpoint_stream import StreamReader
from modalities.adapters.tool_form import parameters_of
from modalities.errors import AdapterUnavailable, EndpointFailed, ModalityError, PromptTooLong
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

OPENAI = "https://api.openai.com/v1"
_OPENAI_KEY = "OPENAI_API_KEY"
_NO_KEY = "none"
"""Local servers ask for no key, but the client library insists on one."""

_TALKATIVE = ("httpx", "httpx2")
"""Loggers that write a line for every request, with an address that may carry a password."""

_CONNECT_S = 5.0
_POLL_S = 0.1
"""How long a cancel may go unnoticed while the endpoint is silent."""

_POLLS_FOR_USAGE = 10
"""How often an endpoint may be silent after its finish reason, before it sends its counts or ends the stream."""

_DELAYS_S = (0.25, 1.0)
_LONGEST_DELAY_S = 2.0
"""A turn does not wait longer than this for a busy endpoint: its client is told when to try again."""


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """What a configuration may say. `base_url` ends where ``/chat/completions`` begins; None is OpenAI's own.

    `key_environment` names the environment variable that holds the key. None is ``OPENAI_API_KEY`` for OpenAI's own
    endpoint and no key for any other: that key is nobody else's business. `max_tokens` and `temperature` are for
    prompts that set none; None leaves them to the endpoint. `limit_field` is what the endpoint calls the limit: newer
    hosted models want ``max_completion_tokens``. `timeout_s` is the longest silence of the endpoint. `extra` goes into
    every request's body as it is.
    """

    model: str = ""
    base_url: str | None = None
    key_environment: str | None = None
    max_tokens: int | None = 256
    temperature: float | None = None
    limit_field: str = "max_tokens"
    timeout_s: float = 60.0
    extra: Mapping[str, object] = field(default_factory=dict)


class OpenAiCompatible:
    """A `LanguageModel`; every call is one streamed request on a connection of its own.

    While the endpoint is silent `emit` is asked with an empty text whether the reply is still wanted; a cancel hangs
    up. Failures that may pass are tried again as long as nothing of the reply has come.
    """

    def __init__(self, settings: EndpointSettings | None = None) -> None:
        """Opens no connection yet. Raises `AdapterUnavailable` where the library is missing and `ModalityError`
        where the model's name or the key is."""
        self._settings = settings or EndpointSettings()
        if not self._settings.model:
            raise ModalityError("openai_compatible: set `model` to a name that the endpoint knows")
        self._key = _key(self._settings)
        try:
            import openai
        except ImportError:
            raise AdapterUnavailable("the openai client", "pip install openai") from None
        for name in _TALKATIVE:
            logging.getLogger(name).setLevel(logging.WARNING)
        self._openai = openai
        self._client = openai.OpenAI(
            api_key=self._key or _NO_KEY,
            base_url=self._settings.base_url or OPENAI,
            timeout=openai.Timeout(self._settings.timeout_s, connect=_CONNECT_S),
            max_retries=0,
        )
        self._asks_for_usage = True

    def generate(self, prompt: Prompt, emit: Callable[[ReplyDelta], bool]) -> Completion:
        """Streams one reply. Raises `EndpointFailed`."""
        reply = _Reply(emit, prompt)
        request = self._request(prompt)

        def idle() -> bool:
            return reply.want(emit(TextDelta(""))) and not reply.overdue()

        reader = StreamReader(
            lambda: self._client.chat.completions.create(**self._with_usage(request)),
            self._again,
            (self._openai.OpenAIError, ValueError),
        )
        with reader:
            try:
                for chunk in reader.chunks(idle, _POLL_S):
                    if not reply.take(chunk):
                        break
            except (self._openai.OpenAIError, ValueError) as fault:
                if reply.finish is None:
                    # The library's own errors carry the request, with key and prompt: they go no further.
                    raise self._told(fault) from None
        if reply.wanted and reply.finish is None:
            raise EndpointFailed("the endpoint broke off in the middle of a reply")
        return reply.completion()

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
        }
        optional = {settings.limit_field: limit, "temperature": temperature, "seed": prompt.seed}
        request |= {name: value for name, value in optional.items() if value is not None}
        if prompt.tools and prompt.tool_choice != "none":
            request |= {"tools": _tools(prompt.tools), "tool_choice": _choice(prompt.tool_choice)}
        if settings.extra:
            request["extra_body"] = dict(settings.extra)
        return request

    def _with_usage(self, request: dict[str, Any]) -> dict[str, Any]:
        return request | {"stream_options": {"include_usage": True}} if self._asks_for_usage else request

    def _again(self, fault: Exception, tries: int) -> float | None:
        """Returns in how many seconds a failed request is tried again, None where that would not help."""
        if self._refuses_usage(fault):
            self._asks_for_usage = False
            return 0.0
        if tries > len(_DELAYS_S) or isinstance(fault, self._openai.APITimeoutError):
            return None
        if isinstance(fault, self._openai.APIStatusError):
            if fault.status_code not in (408, 409, 429) and fault.status_code < 500:
                return None
            delay_s = max(_DELAYS_S[tries - 1], _retry_after_s(fault) or 0.0)
            return delay_s if delay_s <= _LONGEST_DELAY_S else None
        return _DELAYS_S[tries - 1] if isinstance(fault, self._openai.APIConnectionError) else None

    def _refuses_usage(self, fault: Exception) -> bool:
        refused = isinstance(fault, self._openai.APIStatusError) and fault.status_code in (400, 422)
        return self._asks_for_usage and refused and "stream_options" in str(fault)

    def _told(self, fault: Exception) -> ModalityError:
        """Returns the failure in words for an operator, without key and prompt."""
        openai, settings = self._openai, self._settings
        place = _without_secrets(settings.base_url or OPENAI)
        if isinstance(fault, openai.APITimeoutError):
            return EndpointFailed(f"{place} said nothing for {settings.timeout_s:g} s")
        if isinstance(fault, openai.APIConnectionError):
            return EndpointFailed(f"no connection to {place}")
        if not isinstance(fault, openai.APIStatusError):
            return EndpointFailed(f"{place} sent what is no reply: {self._excerpt(fault)}")
        status = fault.status_code
        if status == 400 and _is_too_long(fault):
            return PromptTooLong("The prompt is longer than the context of the model. Shorten the messages.")
        if status in (401, 403):
            where = f"from {settings.key_environment or _OPENAI_KEY}" if self._key else "(none is configured)"
            return EndpointFailed(f"{place} refused with {status}: it does not take the key {where}")
        if status == 404:
            return EndpointFailed(
                f"{place} answered 404: it has no model {settings.model!r}, or the address is wrong"
            )
        if status == 429:
            wait_s = _retry_after_s(fault)
            when = "" if wait_s is None else f"; try again in {wait_s:g} s"
            return EndpointFailed(f"{place} has no capacity now (429){when}", wait_s)
        return EndpointFailed(f"{place} refused with {status}: {self._excerpt(fault)}")

    def _excerpt(self, fault: Exception) -> str:
        text = " ".join(str(getattr(fault, "message", fault)).split())
        return (text.replace(self._key, "…") if self._key else text)[:200]


def _is_too_long(fault: Any) -> bool:  # the client's own error type, absent until it is imported
    """Says whether an endpoint refused a prompt for its length: each has its own word for it."""
    told = f"{getattr(fault, 'code', '')} {getattr(fault, 'type', '')} {getattr(fault, 'message', '')}"
    return any(
        word in told
        for word in ("context_length_exceeded", "exceed_context_size_error", "maximum context length")
    )


class _Reply:
    """Puts the chunks of one stream together. `wanted` says whether the caller still waits for it."""

    def __init__(self, emit: Callable[[ReplyDelta], bool], prompt: Prompt) -> None:
        self._emit = emit
        self._calls: dict[int, ToolCall] = {}
        # Until the endpoint counts, which some do not and none does for a cancelled reply: four characters a token.
        self._usage = (sum(len(message.content) for message in prompt.messages) // 4, 0, 0)
        self._silences = 0
        self.finish: str | None = None
        self.wanted = True

    def want(self, wanted: bool) -> bool:
        self.wanted = self.wanted and wanted
        return self.wanted

    def overdue(self) -> bool:
        """Counts one silence; returns whether a finished reply has waited long enough for its counts."""
        self._silences += self.finish is not None
        return self._silences > _POLLS_FOR_USAGE

    def take(self, chunk: Any) -> bool:  # the client's own chunk type, absent until it is imported
        """Takes one chunk; returns whether more is wanted."""
        for choice in (chunk.choices or ())[:1]:
            if choice.delta is not None and not self.want(self._take_delta(choice.delta)):
                return False
            self.finish = choice.finish_reason or self.finish
        if chunk.usage is not None:
            details = chunk.usage.prompt_tokens_details
            cached = (details.cached_tokens or 0) if details is not None else 0
            self._usage = (chunk.usage.prompt_tokens, cached, chunk.usage.completion_tokens)
        return True

    def completion(self) -> Completion:
        """Returns how the reply ended. A call makes it ``tool_calls``, whatever the endpoint says of a named one."""
        finish = "cancelled" if not self.wanted else self.finish
        if finish not in ("length", "cancelled"):
            finish = "tool_calls" if self._calls else "stop"
        given, cached, written = self._usage
        return Completion(finish, given, cached, written, tuple(self._calls[n] for n in sorted(self._calls)))

    def _say(self, delta: ReplyDelta) -> bool:
        given, cached, written = self._usage
        self._usage = (given, cached, written + 1)
        return self._emit(delta)

    def _take_delta(self, delta: Any) -> bool:
        if delta.content and not self._say(TextDelta(delta.content)):
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
            return self._say(ToolCallDelta(index, arguments, call.name, call.call_id))
        self._calls[index] = ToolCall(known.call_id, known.name, known.arguments + arguments)
        return not arguments or self._say(ToolCallDelta(index, arguments))


def _key(settings: EndpointSettings) -> str | None:
    name = settings.key_environment or (_OPENAI_KEY if settings.base_url is None else None)
    if name is None:
        return None
    key = os.environ.get(name, "").strip()
    if not key:
        raise ModalityError(
            f"openai_compatible: the environment variable {name}, which holds the key, is not set"
        )
    return key


def _without_secrets(url: str) -> str:
    """An address may carry a user's name and password."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _retry_after_s(fault: Any) -> float | None:  # the library's status error
    try:
        return max(0.0, float(fault.response.headers.get("retry-after", "")))
    except ValueError:  # absent, or a date
        return None


def _message(message: ChatMessage) -> dict[str, Any]:
    entry: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.images:
        entry["content"] = _parts(message)
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


def _parts(message: ChatMessage) -> list[dict[str, Any]]:
    """Returns the words and the images of a message as parts of its content."""
    words = [{"type": "text", "text": message.content}] if message.content else []
    images = [
        {
            "type": "image_url",
            "image_url": {"url": image.url} | ({"detail": image.detail} if image.detail else {}),
        }
        for image in message.images
    ]
    return words + images


def _tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": parameters_of(tool),
            },
        }
        for tool in tools
    ]


def _choice(choice: str) -> str | dict[str, Any]:
    if choice.startswith("="):
        return {"type": "function", "function": {"name": choice[1:]}}
    return choice
